//! The resource types of Neutron (neutron-lib, api/definitions).

use crate::object::Kind;
use crate::resource::{ResourceType, test_tables};

#[rustfmt::skip]
pub(super) static TYPES: [ResourceType; 7] = [
    ResourceType { kind: Kind::Network, path: "networks", plural: "networks", single: "network", not_found: ("NetworkNotFound", "Network {} could not be found."), fields: r#"
            always name="" admin_state_up=true shared=false mtu=1442 router:external=false description="" port_security_enabled=true
            always qos_policy_id=null dns_domain=""
            new availability_zone_hints=[] provider:network_type provider:physical_network provider:segmentation_id is_default project_id
            new tenant_id
            never status="ACTIVE" subnets=[] availability_zones=["nova"] ipv4_address_scope=null ipv6_address_scope=null tags=[]
        "# },
    ResourceType { kind: Kind::Subnet, path: "subnets", plural: "subnets", single: "subnet", not_found: ("SubnetNotFound", "Subnet {} could not be found."), fields: r#"
            always name="" gateway_ip=null allocation_pools=[] dns_nameservers=[] host_routes=[] enable_dhcp=true service_types=[]
            always dns_publish_fixed_ip=false description=""
            new network_id=null cidr=null ip_version=4 ipv6_ra_mode=null ipv6_address_mode=null subnetpool_id=null project_id tenant_id
            never tags=[]
        "# },
    ResourceType { kind: Kind::Router, path: "routers", plural: "routers", single: "router", not_found: ("RouterNotFound", "Router {} could not be found"), fields: r#"
            always name="" admin_state_up=true external_gateway_info=null description=""
            new availability_zone_hints=[] flavor_id=null distributed ha project_id tenant_id
            later routes=[]
            never status="ACTIVE" availability_zones=["nova"] tags=[]
        "# },
    ResourceType { kind: Kind::Port, path: "ports", plural: "ports", single: "port", not_found: ("PortNotFound", "Port {} could not be found."), fields: r#"
            always name="" mac_address=null admin_state_up=true device_id="" device_owner="" fixed_ips=[] allowed_address_pairs=[]
            always extra_dhcp_opts=[] security_groups=[] description="" binding:vnic_type="normal" binding:host_id binding:profile
            always port_security_enabled=true dns_name="" dns_domain qos_policy_id=null
            new network_id=null tags=[] project_id tenant_id
            never status="DOWN" dns_assignment=[] qos_network_policy_id=null
        "# },
    ResourceType { kind: Kind::SecurityGroup, path: "security-groups", plural: "security_groups", single: "security_group", not_found: ("SecurityGroupNotFound", "Security group {} does not exist"), fields: r#"
            always name="" description="" stateful=true
            new project_id tenant_id
            never shared=false tags=[]
        "# },
    ResourceType { kind: Kind::SecurityGroupRule, path: "security-group-rules", plural: "security_group_rules", single: "security_group_rule", not_found: ("SecurityGroupRuleNotFound", "Security group rule {} does not exist"), fields: r#"
            new security_group_id=null direction=null ethertype="IPv4" protocol=null port_range_min=null port_range_max=null
            new remote_ip_prefix=null remote_group_id=null remote_address_group_id=null description="" project_id tenant_id
            never normalized_cidr=null
        "# },
    ResourceType { kind: Kind::FloatingIp, path: "floatingips", plural: "floatingips", single: "floatingip", not_found: ("FloatingIPNotFound", "Floating IP {} could not be found"), fields: r#"
            always fixed_ip_address=null port_id=null description="" qos_policy_id=null
            new floating_network_id=null floating_ip_address=null subnet_id dns_domain="" dns_name="" project_id tenant_id
            never router_id=null status="DOWN" port_details=null tags=[]
        "# },
];

/// The type of a kind. Every kind of Neutron has one.
pub(super) fn of(kind: Kind) -> &'static ResourceType {
    TYPES.iter().find(|of| of.kind == kind).unwrap_or(&TYPES[0])
}

/// The fields of a network that only administrators may set.
pub(super) const ADMINS: [&str; 6] = [
    "shared",
    "router:external",
    "provider:network_type",
    "provider:physical_network",
    "provider:segmentation_id",
    "is_default",
];

test_tables!(TYPES.iter());
