//! The catalog: regions, services and endpoints, and their form in a token.

mod given;

use serde_json::{Value, json};

use super::{missing, no_links, shown};
use crate::page::equals;
use crate::problem::ApiError;
use crate::request::{Answer, AnswerResult, ApiRequest};
use crate::service::SERVICES;
use crate::store::{Kind, Object};
use crate::world::World;

const INTERFACES: [&str; 3] = ["public", "internal", "admin"];

/// Stands for the address that the client used, in the URLs of the emulator's own services.
const BASE: &str = "%(base)s";

/// The types of objects in the catalog.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Regions,
    Services,
    Endpoints,
}

impl Part {
    /// The type of the objects below this path.
    pub(super) fn at(path: &str) -> Option<Part> {
        [Part::Regions, Part::Services, Part::Endpoints].into_iter().find(|it| it.plural() == path)
    }

    fn kind(self) -> Kind {
        match self {
            Part::Regions => Kind::Region,
            Part::Services => Kind::Service,
            Part::Endpoints => Kind::Endpoint,
        }
    }

    fn plural(self) -> &'static str {
        match self {
            Part::Regions => "regions",
            Part::Services => "services",
            Part::Endpoints => "endpoints",
        }
    }

    fn single(self) -> &'static str {
        self.plural().trim_end_matches('s')
    }

    /// The filters that lists of the type accept.
    fn filters(self) -> &'static [&'static str] {
        match self {
            Part::Regions => &["parent_region_id"],
            Part::Services => &["name", "type"],
            Part::Endpoints => &["interface", "service_id", "region_id"],
        }
    }
}

/// Creates the initial catalog: the emulator's services, and the endpoints of the settings.
pub(crate) fn plant(world: &mut World) {
    let region = world.settings.region.clone();
    world.add(Kind::Region, "", json!({"id": region, "description": "", "parent_region_id": null}));
    for service in SERVICES {
        let url = format!("{BASE}/{}{}", service.prefix(), service.below("%(project_id)s"));
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

/// Answers requests for objects of the catalog.
pub(super) fn answer(
    world: &mut World,
    asked: &ApiRequest,
    part: Part,
    path: &[&str],
) -> AnswerResult {
    let (kind, plural, single) = (part.kind(), part.plural(), part.single());
    let action = match (asked.method.as_str(), path) {
        ("GET", []) => format!("list_{plural}"),
        ("GET", _) => format!("get_{single}"),
        ("POST", _) => format!("create_{single}"),
        ("DELETE", _) => format!("delete_{single}"),
        _ => format!("update_{single}"),
    };
    // Everybody may read regions. A reader of the whole cloud may read services and endpoints (`keystone.common.policies`).
    let reads = asked.method == http::Method::GET
        && (part == Part::Regions || asked.caller.project.is_empty() && asked.caller.may("reader"));
    if !(reads || asked.caller.is_admin()) {
        return Err(ApiError::forbidden(format!(
            "You are not authorized to perform the requested action: identity:{action}."
        )));
    }
    match (asked.method.as_str(), path) {
        ("GET", []) => {
            let wanted =
                asked.query.iter().filter(|(key, _)| part.filters().contains(&key.as_str()));
            let wanted: Vec<_> = wanted.collect();
            let fits = |one: &&Object| {
                wanted.iter().all(|(key, value)| equals(one.body.get(key.as_str()), value))
            };
            let all = world.store.all(kind).filter(fits);
            let all: Vec<Value> = all.map(|one| told(asked, plural, one)).collect();
            Ok(Answer::ok(json!({plural: all, "links": no_links(asked)})))
        }
        ("POST", []) => {
            let object = match part {
                Part::Regions => given::new_region(world, asked)?,
                Part::Services => given::new_service(world, asked)?,
                Part::Endpoints => given::new_endpoint(world, asked)?,
            };
            let answer = told(asked, plural, &object);
            world.store.insert(kind, object);
            Ok(Answer::json(201, json!({single: answer})))
        }
        ("GET", [id]) => {
            let one = world.store.get(kind, id).ok_or_else(|| missing(single, id))?;
            Ok(Answer::ok(json!({single: told(asked, plural, one)})))
        }
        ("PATCH", [id]) => {
            world.store.get(kind, id).ok_or_else(|| missing(single, id))?;
            let given = given::changes(world, asked, part, id)?;
            let one = world.store.get_mut(kind, id).ok_or_else(|| missing(single, id))?;
            one.body.extend(given);
            let one = one.clone();
            Ok(Answer::ok(json!({single: told(asked, plural, &one)})))
        }
        ("DELETE", [id]) => {
            world.store.get(kind, id).ok_or_else(|| missing(single, id))?;
            remove(world, part, id)?;
            Ok(Answer::empty(204))
        }
        _ => Err(ApiError::unknown_path()),
    }
}

/// An object of the catalog as administrators see it.
fn told(asked: &ApiRequest, plural: &str, one: &Object) -> Value {
    let mut body = shown(asked, plural, one);
    if let Some(url) = one.body.get("url").and_then(Value::as_str) {
        body["url"] = json!(url.replace(BASE, &asked.base));
    }
    body
}

fn remove(world: &mut World, part: Part, id: &str) -> Result<(), ApiError> {
    let below = match part {
        Part::Regions => Some("region_id"),
        Part::Services => Some("service_id"),
        Part::Endpoints => None,
    };
    let endpoints = below.map(|field| world.store.ids(Kind::Endpoint, field, id));
    let endpoints = endpoints.unwrap_or_default();
    if part == Part::Regions && !endpoints.is_empty() {
        return Err(ApiError::forbidden(format!(
            "Unable to delete region {id} because it or its child regions have associated endpoints."
        )));
    }
    for endpoint in endpoints {
        world.store.remove(Kind::Endpoint, &endpoint);
    }
    world.store.remove(part.kind(), id);
    Ok(())
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
