//! The errors of Neutron, with its names and in its words.

use crate::request::refusals;

refusals! {
    409 "OverQuota" over_quota(name): "Quota exceeded for resources: ['{name}'].";
    400 unknown_quota(name): "Unrecognized attribute(s) '{name}'";
    400 "HTTPBadRequest" bad_filter(key): "['{key}'] is invalid attribute for filtering";
    400 "HTTPBadRequest" read_only(fields): "Cannot update read-only attribute {fields}";
    400 "HTTPBadRequest" unknown(fields): "Unrecognized attribute(s) '{fields}'";
    400 no_body(single): "Unable to find '{single}' in request body";
    403 not_own(action, single): "rule:{action}_{single} is disallowed by policy";
    403 not_for_others(single): "(rule:create_{single}) is disallowed by policy";
    403 not_allowed(rule): "({rule}) is disallowed by policy";
    405 no_update(): "The method PUT is not allowed for this resource.";
    412 "RevisionNumberConstraintFailed" revised(wanted, revision): "Constrained to {wanted}, but current revision is {revision}";
    404 "TagNotFound" no_tag(tag): "Tag {tag} could not be found.";
    400 "HTTPBadRequest" bad_tags(why): "Invalid input for tags. Reason: {why}.";
    409 "NetworkInUse" network_in_use(id, ports): "Unable to complete operation on network {id}. There are one or more ports still in use on the network, id(s): {ports}.";
    409 "SubnetInUse" subnet_in_use(id, port): "Unable to complete operation on subnet {id}: One or more ports have an IP allocation from this subnet (port {port}).";
    400 bad_cidr(text): "Invalid input for cidr. Reason: '{text}' is not a valid IP subnet.";
    400 "InvalidInput" other_version(version, text): "Invalid input for operation: ip_version '{version}' does not match the CIDR '{text}'.";
    400 "InvalidInput" overlap(cidr, network): "Invalid input for operation: Requested subnet with cidr: {cidr} for network: {network} overlaps with another subnet.";
    400 "OutOfBoundsAllocationPool" bad_pool(pool, cidr): "The allocation pool {pool} spans beyond the subnet cidr {cidr}.";
    409 "IpAddressGenerationFailure" network_full(network): "No more IP addresses available on network {network}.";
    409 "IpAddressGenerationFailure" subnet_full(subnet): "No more IP addresses available for subnet {subnet}.";
    400 "InvalidIpForNetwork" outside_network(ip): "IP address {ip} is not a valid IP for any of the subnets on the specified network.";
    400 "InvalidIpForSubnet" outside_subnet(ip): "IP address {ip} is not a valid IP for the specified subnet.";
    400 ip_needed(): "Invalid input for fixed_ips. Reason: IP address or subnet_id must be specified";
    400 bad_ip(text): "Invalid input for fixed_ips. Reason: '{text}' is not a valid IP address.";
    400 "InvalidInput" other_network(network, subnet): "Invalid input for operation: Failed to create port on network {network}, because fixed_ips included invalid subnet {subnet}.";
    409 "IpAddressAlreadyAllocated" ip_taken(ip, subnet): "IP address {ip} already allocated in subnet {subnet}.";
    403 foreign_network(project): "Tenant {project} not allowed to create port on this network";
    409 "MacAddressInUse" mac_in_use(network, mac): "Unable to complete operation for network {network}. The mac address {mac} is in use.";
    409 "PortBound" port_bound(id, mac): "Unable to complete operation on port {id}, port is already bound, port type: other, old_mac {mac}";
    409 "ServicePortInUse" owned_port(id, owner): "Port {id} cannot be deleted directly via the port API: has device owner {owner}.";
    409 "PortInUse" port_in_use(id, network, device): "Unable to complete operation on port {id} for network {network}. Port already has an attached device {device}.";
    409 "RouterExternalGatewayInUseByFloatingIp" gateway_in_use(id): "Gateway cannot be updated for router {id}, since a gateway to external network is required by one or more floating IPs.";
    400 "BadRequest" bad_router(why): "Bad router request: {why}.";
    404 "RouterInterfaceNotFoundForSubnet" no_interface(id, subnet): "Router {id} has no interface on subnet {subnet}";
    404 "RouterInterfaceNotFound" no_interface_port(id, port): "Router {id} does not have an interface with id {port}";
    409 "RouterInterfaceInUseByFloatingIP" interface_in_use(subnet, id): "Router interface for subnet {subnet} on router {id} cannot be deleted, as it is required by one or more floating IPs.";
    409 "RouterInUse" router_in_use(id): "Router {id} still has ports";
    400 "BadRequest" bad_floating_ip(why): "Bad floatingip request: {why}.";
    409 "FloatingIPPortAlreadyAssociated" associated(ip, id, port, address, network): "Cannot associate floating IP {ip} ({id}) with port {port} using fixed IP {address}, as that fixed IP already has a floating IP on external network {network}.";
    404 "ExternalGatewayForFloatingIPNotFound" no_way_out(network, subnet, port): "External network {network} is not reachable from subnet {subnet}. Therefore, cannot associate Port {port} with a Floating IP.";
    409 "SecurityGroupDefaultAlreadyExists" default_exists(): "Default security group already exists.";
    409 "SecurityGroupInUse" group_in_use(id): "Security Group {id} in use.";
    409 "SecurityGroupCannotRemoveDefault" default_stays(): "Insufficient rights for removing default security group.";
    400 "HTTPBadRequest" bad_direction(given): "Invalid input for direction. Reason: '{given}' is not in ['ingress', 'egress'].";
    400 "SecurityGroupMultipleRemoteEntites" two_remotes(): "Only one of remote_ip_prefix or remote_group_id may be provided.";
    409 "SecurityGroupRuleExists" rule_exists(id): "Security group rule already exists. Rule id is {id}.";
    400 "SecurityGroupRuleInvalidProtocol" bad_protocol(given, known): "Security group rule protocol {given} not supported. Only protocol values {known} and integer representations [0 to 255] are supported.";
    400 "SecurityGroupProtocolRequiredWithPorts" protocol_needed(): "Must also specify protocol if port range is given.";
    400 "SecurityGroupInvalidPortRange" bad_ports(): "For TCP/UDP protocols, port_range_min must be <= port_range_max";
    400 "HTTPBadRequest" bad_prefix(given): "Invalid input for remote_ip_prefix. Reason: '{given}' is not a valid CIDR.";
    400 "SecurityGroupRuleParameterConflict" other_ethertype(ethertype, cidr): "Conflicting value ethertype {ethertype} for CIDR {cidr}";
}
