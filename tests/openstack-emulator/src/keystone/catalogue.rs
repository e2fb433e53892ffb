//! The catalog of services and endpoints, and its form in a token.

use serde_json::{Value, json};

use crate::object::{Kind, Object};
use crate::request::ApiRequest;
use crate::service::Service;
use crate::world::World;

pub(super) const INTERFACES: [&str; 3] = ["public", "internal", "admin"];

/// Stands for the address that the client used, in the URLs of the emulator's own services.
pub(super) const BASE: &str = "%(base)s";

/// Creates the initial catalog: the emulator's services, and the endpoints of the settings.
pub(crate) fn plant(world: &mut World) {
    let region = world.settings.region.clone();
    world.add(Kind::Region, "", json!({"id": region, "description": "", "parent_region_id": null}));
    for service in Service::all() {
        let url = format!("{BASE}/{}{}", service.prefix(), service.below());
        for kind in service.types() {
            register(world, service.name(), kind, &url);
        }
    }
    for (kind, url) in world.settings.endpoints.clone() {
        register(world, &kind, &kind, &url);
    }
}

/// Adds a service to the catalog, or changes its URL.
pub(crate) fn register(world: &mut World, name: &str, kind: &str, url: &str) {
    let service = format!("svc-{kind}");
    let region = world.settings.region.clone();
    if world.store.get(Kind::Service, &service).is_none() {
        world.add(
            Kind::Service,
            "",
            json!({"id": service, "name": name, "type": kind, "description": "", "enabled": true}),
        );
    }
    for interface in INTERFACES {
        let id = format!("{service}-{interface}");
        match world.store.get_mut(Kind::Endpoint, &id) {
            Some(endpoint) => endpoint.set("url", url),
            None => drop(world.add(
                Kind::Endpoint,
                "",
                json!({"id": id, "service_id": service, "interface": interface, "region_id": region, "region": region, "url": url, "enabled": true}),
            )),
        }
    }
}

/// The catalog for a user in a project: the enabled services and endpoints.
pub(super) fn catalog(world: &World, asked: &ApiRequest, user: &str, project: &str) -> Value {
    let services = world.store.all(Kind::Service).filter(|one| one.is("enabled"));
    let entries = services.map(|service| {
        let own = |one: &&Object| one.text("service_id") == service.id && one.is("enabled");
        let endpoints = world.store.all(Kind::Endpoint).filter(own).map(|one| {
            json!({
                "id": one.id,
                "interface": one.text("interface"),
                "region": one.body.get("region_id"),
                "region_id": one.body.get("region_id"),
                "url": filled(one.text("url"), &asked.base, user, project),
            })
        });
        let endpoints: Vec<Value> = endpoints.collect();
        json!({"id": service.id, "name": service.text("name"), "type": service.text("type"), "endpoints": endpoints})
    });
    Value::Array(entries.collect())
}

fn filled(url: &str, base: &str, user: &str, project: &str) -> String {
    let url = url.replace("$(", "%(").replace(BASE, base);
    let url = url.replace("%(project_id)s", project).replace("%(tenant_id)s", project);
    url.replace("%(user_id)s", user)
}
