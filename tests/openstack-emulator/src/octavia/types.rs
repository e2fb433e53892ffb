//! The resource types of Octavia (octavia, api/v2/types).

use serde_json::{Value, json};

use crate::object::{Fields, Kind};
use crate::request::{ApiError, ApiResult};
use crate::resource::{ResourceType, test_tables};
use crate::world::bare_stamp;

/// The types of load balancers and their children, the highest first.
#[rustfmt::skip]
pub(super) static TYPES: [ResourceType; 5] = [
    ResourceType { kind: Kind::LoadBalancer, path: "loadbalancers", plural: "loadbalancers", single: "loadbalancer", not_found: ("", "Load Balancer {} not found."), fields: r#"
            always name="" description="" admin_state_up=true vip_qos_policy_id=null vip_sg_ids tags=[]
            new vip_address=null vip_port_id=null vip_subnet_id=null vip_network_id=null additional_vips=[] listeners=[] pools=[]
            new provider="amphora" flavor_id=null availability_zone=null project_id
            never provisioning_status="PENDING_CREATE" operating_status="OFFLINE" vip_vnic_type="normal"
        "# },
    ResourceType { kind: Kind::Listener, path: "listeners", plural: "listeners", single: "listener", not_found: ("", "Listener {} not found."), fields: r#"
            always name="" description="" admin_state_up=true connection_limit=-1 default_pool_id=null insert_headers={}
            always timeout_client_data=50000 timeout_member_connect=5000 timeout_member_data=50000 timeout_tcp_inspect=0
            always allowed_cidrs=null tags=[]
            new protocol?TCP|HTTP|HTTPS|TERMINATED_HTTPS|UDP|SCTP|PROMETHEUS|PROXY protocol_port! default_tls_container_ref=null
            new sni_container_refs=[] default_pool- l7policies=[] loadbalancer_id- pool_id- project_id
            never provisioning_status="PENDING_CREATE" operating_status="OFFLINE" client_ca_tls_container_ref=null
            never client_authentication="NONE" client_crl_container_ref=null tls_ciphers=null tls_versions=null alpn_protocols=null
            never loadbalancers=[]
        "# },
    ResourceType { kind: Kind::Pool, path: "pools", plural: "pools", single: "pool", not_found: ("", "Pool {} not found."), fields: r#"
            always name="" description="" admin_state_up=true lb_algorithm?ROUND_ROBIN|LEAST_CONNECTIONS|SOURCE_IP|SOURCE_IP_PORT
            always session_persistence=null tls_enabled=false tags=[]
            new protocol?TCP|HTTP|HTTPS|PROXY|PROXYV2|UDP|SCTP members=[] healthmonitor- loadbalancer_id- listener_id- pool_id- project_id
            never provisioning_status="PENDING_CREATE" operating_status="OFFLINE" healthmonitor_id=null listeners=[] loadbalancers=[]
            never tls_container_ref=null ca_tls_container_ref=null crl_container_ref=null tls_ciphers=null tls_versions=null
            never alpn_protocols=null
        "# },
    ResourceType { kind: Kind::Member, path: "members", plural: "members", single: "member", not_found: ("", "Member {} not found."), fields: r#"
            always name="" admin_state_up=true weight=1 backup=false monitor_address=null monitor_port=null tags=[]
            new address=null protocol_port! subnet_id=null pool_id- project_id
            never provisioning_status="PENDING_CREATE" operating_status="NO_MONITOR" vnic_type="normal"
        "# },
    ResourceType { kind: Kind::HealthMonitor, path: "healthmonitors", plural: "healthmonitors", single: "healthmonitor", not_found: ("", "Health Monitor {} not found."), fields: r#"
            always name="" admin_state_up=true delay! timeout! max_retries! max_retries_down=3 http_method=null url_path=null
            always expected_codes=null http_version=null domain_name=null tags=[]
            new type?HTTP|HTTPS|PING|TCP|TLS-HELLO|UDP-CONNECT|SCTP pool_id- project_id
            never provisioning_status="PENDING_CREATE" operating_status="OFFLINE" pools=[]
        "# },
];

/// Flavors and flavor profiles, which belong to no load balancer.
#[rustfmt::skip]
pub(super) static FLAVORS: [ResourceType; 2] = [
    ResourceType { kind: Kind::LoadBalancerFlavor, path: "flavors", plural: "flavors", single: "flavor", not_found: ("", "flavor {} not found."), fields: FLAVOR },
    ResourceType { kind: Kind::LoadBalancerFlavorProfile, path: "flavorprofiles", plural: "flavorprofiles", single: "flavorprofile", not_found: ("", "flavorprofile {} not found."), fields: FLAVOR },
];

const FLAVOR: &str =
    r#"new name="" description="" enabled=true flavor_profile_id provider_name flavor_data"#;

/// The body of a new object of a project, with the given fields.
pub(super) fn new_body(of: &ResourceType, project: &str, given: &Fields) -> Value {
    let mut body = of.filled(given);
    body["project_id"] = json!(project);
    body["created_at"] = json!(bare_stamp());
    body["updated_at"] = Value::Null;
    body
}

/// The type below a path segment.
pub(super) fn at(path: &str) -> ApiResult<&'static ResourceType> {
    TYPES.iter().find(|of| of.path == path).ok_or_else(ApiError::unknown_path)
}

test_tables!(TYPES.iter().chain(&FLAVORS));
