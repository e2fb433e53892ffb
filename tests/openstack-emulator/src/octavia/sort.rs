//! The resource types of Octavia: their names and fields.

use serde_json::{Value, json};

use crate::problem::ApiError;
use crate::store::Kind;

/// A resource type.
pub(super) struct ResourceType {
    pub(super) path: &'static str,
    pub(super) plural: &'static str,
    pub(super) single: &'static str,
    word: &'static str,
    pub(super) kind: Kind,
    pub(super) defaults: fn() -> Value,
    /// The fields that a create accepts.
    pub(super) create: &'static [&'static str],
    /// The fields that an update accepts.
    pub(super) update: &'static [&'static str],
}

impl ResourceType {
    pub(super) fn of(path: &str) -> Result<&'static ResourceType, ApiError> {
        SORTS.iter().find(|sort| sort.path == path).ok_or_else(ApiError::unknown_path)
    }

    pub(super) fn missing(&self, id: &str) -> ApiError {
        ApiError::missing(format!("{} {id} not found.", self.word))
    }
}

/// All resource types, the highest first.
pub(super) static SORTS: [ResourceType; 5] = [
    ResourceType {
        path: "loadbalancers",
        plural: "loadbalancers",
        single: "loadbalancer",
        word: "Load Balancer",
        kind: Kind::LoadBalancer,
        defaults: || {
            json!({
                "name": "", "description": "", "provisioning_status": "PENDING_CREATE", "operating_status": "OFFLINE", "admin_state_up": true,
                "vip_address": null, "vip_port_id": null, "vip_subnet_id": null, "vip_network_id": null, "vip_qos_policy_id": null,
                "additional_vips": [], "listeners": [], "pools": [], "provider": "amphora", "flavor_id": null, "availability_zone": null,
                "vip_vnic_type": "normal", "tags": [],
            })
        },
        create: &[
            "name",
            "description",
            "admin_state_up",
            "vip_address",
            "vip_port_id",
            "vip_subnet_id",
            "vip_network_id",
            "vip_qos_policy_id",
            "additional_vips",
            "listeners",
            "pools",
            "provider",
            "flavor_id",
            "availability_zone",
            "project_id",
            "tags",
            "vip_sg_ids",
        ],
        update: &[
            "name",
            "description",
            "admin_state_up",
            "vip_qos_policy_id",
            "tags",
            "vip_sg_ids",
        ],
    },
    ResourceType {
        path: "listeners",
        plural: "listeners",
        single: "listener",
        word: "Listener",
        kind: Kind::Listener,
        defaults: || {
            json!({
                "name": "", "description": "", "provisioning_status": "PENDING_CREATE", "operating_status": "OFFLINE", "admin_state_up": true,
                "protocol": null, "protocol_port": null, "connection_limit": -1, "default_tls_container_ref": null, "sni_container_refs": [],
                "default_pool_id": null, "l7policies": [], "insert_headers": {}, "timeout_client_data": 50000, "timeout_member_connect": 5000,
                "timeout_member_data": 50000, "timeout_tcp_inspect": 0, "client_ca_tls_container_ref": null, "client_authentication": "NONE",
                "client_crl_container_ref": null, "allowed_cidrs": null, "tls_ciphers": null, "tls_versions": null, "alpn_protocols": null,
                "loadbalancers": [], "tags": [],
            })
        },
        create: &[
            "name",
            "description",
            "admin_state_up",
            "protocol",
            "protocol_port",
            "connection_limit",
            "default_pool_id",
            "default_pool",
            "loadbalancer_id",
            "insert_headers",
            "timeout_client_data",
            "timeout_member_connect",
            "timeout_member_data",
            "timeout_tcp_inspect",
            "allowed_cidrs",
            "l7policies",
            "project_id",
            "tags",
            "default_tls_container_ref",
            "sni_container_refs",
        ],
        update: &[
            "name",
            "description",
            "admin_state_up",
            "connection_limit",
            "default_pool_id",
            "insert_headers",
            "timeout_client_data",
            "timeout_member_connect",
            "timeout_member_data",
            "timeout_tcp_inspect",
            "allowed_cidrs",
            "tags",
        ],
    },
    ResourceType {
        path: "pools",
        plural: "pools",
        single: "pool",
        word: "Pool",
        kind: Kind::Pool,
        defaults: || {
            json!({
                "name": "", "description": "", "provisioning_status": "PENDING_CREATE", "operating_status": "OFFLINE", "admin_state_up": true,
                "protocol": null, "lb_algorithm": null, "session_persistence": null, "members": [], "healthmonitor_id": null, "listeners": [],
                "loadbalancers": [], "tls_enabled": false, "tls_container_ref": null, "ca_tls_container_ref": null, "crl_container_ref": null,
                "tls_ciphers": null, "tls_versions": null, "alpn_protocols": null, "tags": [],
            })
        },
        create: &[
            "name",
            "description",
            "admin_state_up",
            "protocol",
            "lb_algorithm",
            "session_persistence",
            "listener_id",
            "loadbalancer_id",
            "members",
            "healthmonitor",
            "project_id",
            "tags",
            "tls_enabled",
        ],
        update: &[
            "name",
            "description",
            "admin_state_up",
            "lb_algorithm",
            "session_persistence",
            "tags",
            "tls_enabled",
        ],
    },
    ResourceType {
        path: "members",
        plural: "members",
        single: "member",
        word: "Member",
        kind: Kind::Member,
        defaults: || {
            json!({
                "name": "", "provisioning_status": "PENDING_CREATE", "operating_status": "NO_MONITOR", "admin_state_up": true, "address": null,
                "protocol_port": null, "weight": 1, "backup": false, "subnet_id": null, "monitor_address": null, "monitor_port": null,
                "vnic_type": "normal", "tags": [],
            })
        },
        create: &[
            "name",
            "admin_state_up",
            "address",
            "protocol_port",
            "weight",
            "backup",
            "subnet_id",
            "monitor_address",
            "monitor_port",
            "project_id",
            "tags",
        ],
        update: &[
            "name",
            "admin_state_up",
            "weight",
            "backup",
            "monitor_address",
            "monitor_port",
            "tags",
        ],
    },
    ResourceType {
        path: "healthmonitors",
        plural: "healthmonitors",
        single: "healthmonitor",
        word: "Health Monitor",
        kind: Kind::HealthMonitor,
        defaults: || {
            json!({
                "name": "", "provisioning_status": "PENDING_CREATE", "operating_status": "OFFLINE", "admin_state_up": true, "type": null,
                "delay": null, "timeout": null, "max_retries": null, "max_retries_down": 3, "http_method": null, "url_path": null,
                "expected_codes": null, "http_version": null, "domain_name": null, "pools": [], "tags": [],
            })
        },
        create: &[
            "name",
            "admin_state_up",
            "type",
            "delay",
            "timeout",
            "max_retries",
            "max_retries_down",
            "http_method",
            "url_path",
            "expected_codes",
            "http_version",
            "domain_name",
            "pool_id",
            "project_id",
            "tags",
        ],
        update: &[
            "name",
            "admin_state_up",
            "delay",
            "timeout",
            "max_retries",
            "max_retries_down",
            "http_method",
            "url_path",
            "expected_codes",
            "http_version",
            "domain_name",
            "tags",
        ],
    },
];
