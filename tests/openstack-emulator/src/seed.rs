//! The initial contents of a cloud.

use serde_json::json;

use crate::keystone::{grant, plant_catalogue};
use crate::nova::{flavor, plant_hosts};
use crate::object::Kind;
use crate::world::{World, short_id};
use crate::{cidr, glance, neutron};

/// The roles of a new Keystone, and Octavia's roles.
const ROLES: [&str; 7] = [
    "admin",
    "manager",
    "member",
    "reader",
    "service",
    "load-balancer_member",
    "load-balancer_admin",
];

/// The users: name, password, project, roles.
const USERS: [(&str, &str, &str, &[&str]); 5] = [
    ("admin", "admin-secret", "admin", &["admin", "member", "reader", "load-balancer_admin"]),
    ("alice", "alice-secret", "tenant-a", &["member", "reader", "load-balancer_member"]),
    ("nova", "nova-secret", "service", &["service", "member", "reader"]),
    ("bob", "bob-secret", "tenant-b", &["member", "reader", "load-balancer_member"]),
    (
        "clusterd",
        "clusterd-secret",
        "service",
        &["admin", "service", "member", "reader", "load-balancer_member"],
    ),
];

/// The flavors: name, processors, MiB of memory, GiB of disk.
const FLAVORS: [(&str, i64, i64, i64); 6] = [
    ("m1.nano", 1, 128, 1),
    ("m1.tiny", 1, 512, 5),
    ("m1.small", 1, 2048, 20),
    ("m1.medium", 2, 4096, 40),
    ("m1.large", 4, 8192, 80),
    ("m1.xlarge", 8, 16384, 160),
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
    for (number, (name, vcpus, ram, disk)) in FLAVORS.into_iter().enumerate() {
        flavor::add(world, &(number + 1).to_string(), name, vcpus, ram, disk, json!({}));
    }
    flavor::add(
        world,
        "g1",
        "g1.small",
        4,
        16384,
        80,
        json!({"resources:PGPU": "1", "trait:CUSTOM_GPU_NVIDIA_A10": "required"}),
    );
    plant_hosts(world);
    let admin = project(world, "admin");
    glance::plant(world, &admin, "cirros", json!({}));
    glance::plant(
        world,
        &admin,
        "fedora-coreos",
        json!({"os_distro": "fedora-coreos", "os_version": "42"}),
    );
    world.add(Kind::VolumeType, "", json!({"name": "__DEFAULT__", "is_public": true, "description": "Default Volume Type", "extra_specs": {}, "qos_specs_id": null, "os-volume-type-access:is_public": true}));
    let profile = world.add(Kind::LoadBalancerFlavorProfile, "", json!({"name": "single", "provider_name": "amphora", "flavor_data": "{\"loadbalancer_topology\": \"SINGLE\"}"}));
    world.add(
        Kind::LoadBalancerFlavor,
        "",
        json!({"name": "single", "description": "", "enabled": true, "flavor_profile_id": profile}),
    );
    networks(world, &admin);
}

/// The id of the project with this name. Creates the project if it is missing.
pub(crate) fn project(world: &mut World, name: &str) -> String {
    if let Some(project) = world.store.find(Kind::Project, |project| project.text("name") == name) {
        return project.id.clone();
    }
    world.add(Kind::Project, "", json!({
        "id": short_id(), "name": name, "domain_id": "default", "parent_id": "default", "enabled": true, "is_domain": false, "description": "", "tags": [], "options": {},
    }))
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
    let known =
        world.store.find(Kind::User, |user| user.text("name") == name).map(|user| user.id.clone());
    let user = known.unwrap_or_else(|| {
        let object = world.object("", json!({
            "id": short_id(), "name": name, "domain_id": "default", "enabled": true, "password_expires_at": null, "options": {}, "default_project_id": project,
        }));
        let id = object.id.clone();
        world.store.insert(Kind::User, object);
        id
    });
    if let Some(user) = world.store.get_mut(Kind::User, &user) {
        user.keep("password", password);
    }
    world.secrets.push(password.to_owned());
    for role in roles {
        if let Some(role) = world
            .store
            .find(Kind::Role, |one| one.text("name") == *role)
            .map(|role| role.id.clone())
        {
            grant(world, &user, &project, &role);
        }
    }
    (user, project)
}

/// Creates the external network `public` and the shared networks.
fn networks(world: &mut World, project: &str) {
    let outside = ("public".to_owned(), world.external_cidr.clone());
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
        json!([{"start": cidr::at(cidr, 2).to_string(), "end": cidr::last_host(cidr).to_string()}]);
    let body = json!({
        "name": format!("{name}-subnet"), "network_id": network, "cidr": cidr.to_string(), "gateway_ip": cidr::at(cidr, 1).to_string(),
        "allocation_pools": pool, "enable_dhcp": !is_outside,
    });
    let subnet = neutron::add(world, Kind::Subnet, project, &body);
    if let Some(network) = world.store.get_mut(Kind::Network, &network) {
        network.set("subnets", json!([subnet]));
    }
}
