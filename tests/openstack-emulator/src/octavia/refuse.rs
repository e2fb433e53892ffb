//! The errors of Octavia, in its own words.

use crate::request::refusals;

refusals! {
    403 policy(): "Policy does not allow this request to be performed.";
    403 over_quota(what): "Quota has been met for resources: {what}";
    409 immutable(id): "Load Balancer {id} is immutable and cannot be updated.";
    400 unknown(single, key): "Invalid input for field/attribute {single}. Value: '{{\"{key}\": ...}}'. Unknown attribute: {key}";
    400 wrong_choice(field, value, known): "Invalid input for field/attribute {field}. Value: '{value}'. Value should be one of: {known}";
    400 lacking(field): "Invalid input for field/attribute {field}. Mandatory field missing.";
    400 no_parent(): "Validation failure: Must provide at least one of loadbalancer_id, listener_id or pool_id.";
    409 port_used(protocol, port): "Another Listener on this Load Balancer is already using protocol {protocol} and protocol_port {port}";
    409 has_pool(listener, pool): "Listener {listener} already has a default pool: {pool}";
    400 bad_address(address): "Invalid input for field/attribute address. Value: '{address}'. Value should be IPv4 or IPv6 format";
    409 member_twice(address, port): "Another member on this pool is already using ip {address} on protocol_port {port}";
    409 monitored(): "This pool already has a health monitor";
    400 unnamed_pool(): "Validation failure: Pools must be named when they are given beside listeners.";
    400 no_pool(name): "Validation failure: Pool {name} is not among the pools.";
    400 no_flavor(id): "Validation failure: Invalid flavor_id: {id}.";
    409 flavor_used(id): "Flavor {id} is in use and cannot be modified.";
    400 no_port(id): "Port {id} not found.";
    409 vip_used(id): "VIP port {id} is already in use.";
    400 no_subnet(id): "Subnet {id} not found.";
    400 no_network(id): "Network {id} not found.";
    400 no_vip(): "Validation failure: VIP must contain one of: vip_port_id, vip_network_id, vip_subnet_id.";
    400 has_children(id): "Validation failure: Cannot delete Load Balancer {id} - it has children";
}
