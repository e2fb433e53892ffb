//! The resource types of Neutron: their names, fields and functions.

use serde_json::{Map, Value, json};

use super::{floating_ip, network, port, router, security_group, subnet};
use crate::problem::ApiError;
use crate::request::ApiRequest;
use crate::store::{Kind, Object};
use crate::world::World;

type Make = fn(&mut World, &ApiRequest, Object, &Map<String, Value>) -> Result<String, ApiError>;
type Change = fn(&mut World, &ApiRequest, &str, &Map<String, Value>) -> Result<(), ApiError>;
type Delete = fn(&mut World, &str, &ApiRequest) -> Result<(), ApiError>;

/// A resource type.
pub(super) struct Resource {
    /// The path segment of the type.
    pub(super) path: &'static str,
    /// The key of a list in a body.
    pub(super) plural: &'static str,
    /// The key of one object in a body.
    pub(super) single: &'static str,
    pub(super) kind: Kind,
    /// The name of the not-found exception and its message, in which `{}` stands for the id.
    not_found: (&'static str, &'static str),
    pub(super) defaults: fn() -> Value,
    /// The fields that a create accepts.
    pub(super) create: &'static [&'static str],
    /// The fields that an update accepts.
    pub(super) update: &'static [&'static str],
    pub(super) make: Make,
    pub(super) change: Change,
    pub(super) delete: Delete,
}

impl Resource {
    pub(super) fn missing(&self, id: &str) -> ApiError {
        ApiError::new(404, self.not_found.0, self.not_found.1.replace("{}", id))
    }

    /// Whether lists can be filtered by this field.
    pub(super) fn knows(&self, key: &str) -> bool {
        const COMMON: [&str; 8] = [
            "id",
            "name",
            "project_id",
            "tenant_id",
            "description",
            "status",
            "created_at",
            "revision_number",
        ];
        COMMON.contains(&key) || self.create.contains(&key) || (self.defaults)().get(key).is_some()
    }

    pub(super) fn refuse_unknown(
        &self,
        given: &Map<String, Value>,
        known: &[&str],
    ) -> Result<(), ApiError> {
        let unknown: Vec<&str> =
            given.keys().map(String::as_str).filter(|key| !known.contains(key)).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let everywhere = unknown
            .iter()
            .all(|key| self.create.contains(key) || (self.defaults)().get(key).is_some());
        let list = unknown.join(", ");
        Err(ApiError::new(
            400,
            "HTTPBadRequest",
            if everywhere {
                format!("Cannot update read-only attribute {list}")
            } else {
                format!("Unrecognized attribute(s) '{list}'")
            },
        ))
    }
}

/// All resource types.
pub(super) const RESOURCES: [Resource; 7] = [
    Resource {
        path: "networks",
        plural: "networks",
        single: "network",
        kind: Kind::Network,
        not_found: ("NetworkNotFound", "Network {} could not be found."),
        defaults: || {
            json!({
                "name": "", "admin_state_up": true, "status": "ACTIVE", "subnets": [], "shared": false, "mtu": 1442,
                "availability_zone_hints": [], "availability_zones": ["nova"], "ipv4_address_scope": null, "ipv6_address_scope": null,
                "router:external": false, "description": "", "port_security_enabled": true, "qos_policy_id": null, "dns_domain": "",
                "tags": [],
            })
        },
        create: &[
            "name",
            "admin_state_up",
            "shared",
            "mtu",
            "availability_zone_hints",
            "router:external",
            "description",
            "port_security_enabled",
            "dns_domain",
            "project_id",
            "tenant_id",
            "qos_policy_id",
            "provider:network_type",
            "provider:physical_network",
            "provider:segmentation_id",
            "is_default",
        ],
        update: &[
            "name",
            "admin_state_up",
            "shared",
            "mtu",
            "router:external",
            "description",
            "port_security_enabled",
            "dns_domain",
            "qos_policy_id",
        ],
        make: network::make,
        change: network::change,
        delete: network::delete,
    },
    Resource {
        path: "subnets",
        plural: "subnets",
        single: "subnet",
        kind: Kind::Subnet,
        not_found: ("SubnetNotFound", "Subnet {} could not be found."),
        defaults: || {
            json!({
                "name": "", "network_id": null, "cidr": null, "ip_version": 4, "gateway_ip": null, "allocation_pools": [], "dns_nameservers": [],
                "host_routes": [], "enable_dhcp": true, "ipv6_ra_mode": null, "ipv6_address_mode": null, "service_types": [],
                "subnetpool_id": null, "dns_publish_fixed_ip": false, "description": "", "tags": [],
            })
        },
        create: &[
            "name",
            "network_id",
            "cidr",
            "ip_version",
            "gateway_ip",
            "allocation_pools",
            "dns_nameservers",
            "host_routes",
            "enable_dhcp",
            "ipv6_ra_mode",
            "ipv6_address_mode",
            "service_types",
            "subnetpool_id",
            "dns_publish_fixed_ip",
            "description",
            "project_id",
            "tenant_id",
        ],
        update: &[
            "name",
            "gateway_ip",
            "allocation_pools",
            "dns_nameservers",
            "host_routes",
            "enable_dhcp",
            "service_types",
            "dns_publish_fixed_ip",
            "description",
        ],
        make: subnet::make,
        change: subnet::change,
        delete: subnet::delete,
    },
    Resource {
        path: "routers",
        plural: "routers",
        single: "router",
        kind: Kind::Router,
        not_found: ("RouterNotFound", "Router {} could not be found"),
        defaults: || {
            json!({
                "name": "", "admin_state_up": true, "status": "ACTIVE", "external_gateway_info": null, "description": "",
                "availability_zone_hints": [], "availability_zones": ["nova"], "routes": [], "flavor_id": null, "tags": [],
            })
        },
        create: &[
            "name",
            "admin_state_up",
            "external_gateway_info",
            "description",
            "availability_zone_hints",
            "flavor_id",
            "project_id",
            "tenant_id",
            "distributed",
            "ha",
        ],
        update: &["name", "admin_state_up", "external_gateway_info", "description", "routes"],
        make: router::make,
        change: router::change,
        delete: router::delete,
    },
    Resource {
        path: "ports",
        plural: "ports",
        single: "port",
        kind: Kind::Port,
        not_found: ("PortNotFound", "Port {} could not be found."),
        defaults: || {
            json!({
                "name": "", "network_id": null, "mac_address": null, "admin_state_up": true, "status": "DOWN", "device_id": "",
                "device_owner": "", "fixed_ips": [], "allowed_address_pairs": [], "extra_dhcp_opts": [], "security_groups": [],
                "description": "", "binding:vnic_type": "normal", "port_security_enabled": true, "dns_name": "", "dns_assignment": [],
                "qos_policy_id": null, "qos_network_policy_id": null, "tags": [],
            })
        },
        create: &[
            "name",
            "network_id",
            "mac_address",
            "admin_state_up",
            "device_id",
            "device_owner",
            "fixed_ips",
            "allowed_address_pairs",
            "extra_dhcp_opts",
            "security_groups",
            "description",
            "binding:vnic_type",
            "binding:host_id",
            "binding:profile",
            "port_security_enabled",
            "dns_name",
            "dns_domain",
            "qos_policy_id",
            "tags",
            "project_id",
            "tenant_id",
        ],
        update: &[
            "name",
            "mac_address",
            "admin_state_up",
            "device_id",
            "device_owner",
            "fixed_ips",
            "allowed_address_pairs",
            "extra_dhcp_opts",
            "security_groups",
            "description",
            "binding:vnic_type",
            "binding:host_id",
            "binding:profile",
            "port_security_enabled",
            "dns_name",
            "dns_domain",
            "qos_policy_id",
        ],
        make: port::create,
        change: port::change,
        delete: port::delete_asked,
    },
    Resource {
        path: "security-groups",
        plural: "security_groups",
        single: "security_group",
        kind: Kind::SecurityGroup,
        not_found: ("SecurityGroupNotFound", "Security group {} does not exist"),
        defaults: || json!({"name": "", "description": "", "stateful": true, "shared": false, "tags": []}),
        create: &["name", "description", "stateful", "project_id", "tenant_id"],
        update: &["name", "description", "stateful"],
        make: security_group::make,
        change: security_group::change,
        delete: security_group::delete,
    },
    Resource {
        path: "security-group-rules",
        plural: "security_group_rules",
        single: "security_group_rule",
        kind: Kind::SecurityGroupRule,
        not_found: ("SecurityGroupRuleNotFound", "Security group rule {} does not exist"),
        defaults: || {
            json!({
                "security_group_id": null, "direction": null, "ethertype": "IPv4", "protocol": null, "port_range_min": null,
                "port_range_max": null, "remote_ip_prefix": null, "remote_group_id": null, "remote_address_group_id": null,
                "normalized_cidr": null, "description": "",
            })
        },
        create: &[
            "security_group_id",
            "direction",
            "ethertype",
            "protocol",
            "port_range_min",
            "port_range_max",
            "remote_ip_prefix",
            "remote_group_id",
            "remote_address_group_id",
            "description",
            "project_id",
            "tenant_id",
        ],
        update: &[],
        make: security_group::make_rule,
        change: |_, _, _, _| {
            Err(ApiError::new(405, "", "The method PUT is not allowed for this resource."))
        },
        delete: security_group::delete_rule,
    },
    Resource {
        path: "floatingips",
        plural: "floatingips",
        single: "floatingip",
        kind: Kind::FloatingIp,
        not_found: ("FloatingIPNotFound", "Floating IP {} could not be found"),
        defaults: || {
            json!({
                "floating_network_id": null, "floating_ip_address": null, "fixed_ip_address": null, "port_id": null, "router_id": null,
                "status": "DOWN", "description": "", "dns_domain": "", "dns_name": "", "qos_policy_id": null, "port_details": null, "tags": [],
            })
        },
        create: &[
            "floating_network_id",
            "floating_ip_address",
            "fixed_ip_address",
            "port_id",
            "subnet_id",
            "description",
            "dns_domain",
            "dns_name",
            "qos_policy_id",
            "project_id",
            "tenant_id",
        ],
        update: &["port_id", "fixed_ip_address", "description", "qos_policy_id"],
        make: floating_ip::make,
        change: floating_ip::change,
        delete: floating_ip::delete,
    },
];
