//! The initial contents of a cloud.

use serde_json::json;

use crate::keystone::{grant, plant_catalogue};
use crate::nova::{flavor, plant_hosts};
use crate::object::Kind;
use crate::world::{World, short_id};
use crate::{cidr, glance, neutron};

/// The roles of a new Keystone, and Octavia's roles.
#[rustfmt::skip]
const ROLES: [&str; 7] = ["admin", "manager", "member", "reader", "service", "load-balancer_member", "load-balancer_admin"];

/// The users: name, password, project, roles.
#[rustfmt::skip]
const USERS: [(&str, &str, &str, &[&str]); 5] = [
    ("admin", "admin-secret", "admin", &["admin", "member", "reader", "load-balancer_admin"]),
    ("alice", "alice-secret", "tenant-a", &["member", "reader", "load-balancer_member"]),
    ("nova", "nova-secret", "service", &["service", "member", "reader"]),
    ("bob", "bob-secret", "tenant-b", &["member", "reader", "load-balancer_member"]),
    ("clusterd", "clusterd-secret", "service", &["admin", "service", "member", "reader", "load-balancer_member"]),
];

/// The flavors: id, name, processors, MiB of memory, GiB of disk, extra specs.
#[rustfmt::skip]
const FLAVORS: [(&str, &str, i64, i64, i64, &str); 7] = [
    ("1", "m1.nano", 1, 128, 1, "{}"),
    ("2", "m1.tiny", 1, 512, 5, "{}"),
    ("3", "m1.small", 1, 2048, 20, "{}"),
    ("4", "m1.medium", 2, 4096, 40, "{}"),
    ("5", "m1.large", 4, 8192, 80, "{}"),
    ("6", "m1.xlarge", 8, 16384, 160, "{}"),
    ("g1", "g1.small", 4, 16384, 80, r#"{"resources:PGPU": "1", "trait:CUSTOM_GPU_NVIDIA_A10": "required"}"#),
];

pub(crate) fn plant(world: &mut World) {
    world.add(Kind::Domain, "", json!({"id": "default", "name": "Default", "enabled": true, "description": "The default domain", "tags": [], "options": {}}));
    for name in ROLES {
        world.add(Kind::Role, "", json!({"id": short_id(), "name": name, "domain_id": null, "description": null, "options": {}}));
    }
    plant_catalogue(world);
    for (name, password, project, roles) in USERS {
        user(world, name, password, project, roles);
    }
    for (id, name, vcpus, ram, disk, extra_specs) in FLAVORS {
        let extra_specs = serde_json::from_str(extra_specs).unwrap_or_default();
        flavor::plant(world, (id, name, vcpus, ram, disk), extra_specs);
    }
    plant_hosts(world);
    let admin = project(world, "admin");
    glance::plant(world, &admin, "cirros", &json!({}));
    let coreos = json!({"os_distro": "fedora-coreos", "os_version": "42"});
    glance::plant(world, &admin, "fedora-coreos", &coreos);
    world.add(Kind::VolumeType, "", json!({"name": "__DEFAULT__", "is_public": true, "description": "Default Volume Type", "extra_specs": {}, "qos_specs_id": null, "os-volume-type-access:is_public": true}));
    let profile = world.add(Kind::LoadBalancerFlavorProfile, "", json!({"name": "single", "provider_name": "amphora", "flavor_data": "{\"loadbalancer_topology\": \"SINGLE\"}"}));
    let flavor =
        json!({"name": "single", "description": "", "enabled": true, "flavor_profile_id": profile});
    world.add(Kind::LoadBalancerFlavor, "", flavor);
    networks(world, &admin);
}

/// The id of the project with this name. Creates the project if it is missing.
pub(crate) fn project(world: &mut World, name: &str) -> String {
    if let Some(project) = world.store.named(Kind::Project, name) {
        return project.id.clone();
    }
    world.add(Kind::Project, "", json!({
        "id": short_id(), "name": name, "domain_id": "default", "parent_id": "default", "enabled": true, "is_domain": false, "description": "", "tags": [], "options": {},
    }))
}

/// Sets a quota of a project with this name. Creates the project if it is missing.
pub(crate) fn set_quota(world: &mut World, project_name: &str, name: &str, limit: i64) {
    let project = project(world, project_name);
    world.quotas.insert((project, name.to_owned()), limit);
}

/// Creates a user with roles in a project, or adds the roles to an existing user.
pub(crate) fn user(
    world: &mut World,
    name: &str,
    password: &str,
    project_name: &str,
    roles: &[&str],
) -> (String, String) {
    let project = project(world, project_name);
    let known = world.store.named(Kind::User, name).map(|user| user.id.clone());
    let user = known.unwrap_or_else(|| world.add(Kind::User, "", json!({
        "id": short_id(), "name": name, "domain_id": "default", "enabled": true, "password_expires_at": null, "options": {}, "default_project_id": project,
    })));
    world.store.keep(Kind::User, &user, "password", password);
    world.secrets.push(password.to_owned());
    for role in roles {
        if let Some(role) = world.store.named(Kind::Role, role).map(|role| role.id.clone()) {
            grant(world, &user, &project, &role);
        }
    }
    (user, project)
}

/// Creates the external network `public` and the shared networks.
fn networks(world: &mut World, project: &str) {
    let outside = ("public".to_owned(), world.records.external_cidr.clone());
    network(world, project, outside, true);
    for shared in world.settings.shared_networks.clone() {
        network(world, project, shared, false);
    }
}

/// Creates one initial network.
fn network(world: &mut World, project: &str, (name, text): (String, String), is_outside: bool) {
    let Some(cidr) = cidr::parse(&text) else { return };
    let body =
        json!({"name": name, "shared": !is_outside, "mtu": 1500, "router:external": is_outside});
    let network = neutron::add(world, Kind::Network, project, &body);
    let pool =
        json!({"start": cidr::at(cidr, 2).to_string(), "end": cidr::last_host(cidr).to_string()});
    let body = json!({
        "name": format!("{name}-subnet"), "network_id": network, "cidr": cidr.to_string(), "gateway_ip": cidr::at(cidr, 1).to_string(),
        "allocation_pools": [pool], "enable_dhcp": !is_outside,
    });
    let subnet = neutron::add(world, Kind::Subnet, project, &body);
    world.store.set(Kind::Network, &network, "subnets", json!([subnet]));
}
