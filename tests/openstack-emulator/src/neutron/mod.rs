//! Neutron v2.0: networks and the objects in them.

mod address;
mod floating_ip;
mod network;
mod port;
mod quota;
mod resource;
mod router;
mod security_group;
mod subnet;
mod tag;

use serde_json::{Map, Value, json};

use crate::index::PROJECT;
use crate::page;
use crate::problem::ApiError;
use crate::request::{Answer, AnswerResult, ApiRequest};
use crate::store::{Condition, Kind, Object};
use crate::world::{World, stamp};

pub(crate) use address::{allocate, release};
pub(crate) use port::{delete as delete_port, make as make_port, removed as port_gone};
pub(crate) use quota::check as check_quota;
use resource::{RESOURCES, Resource};
pub(crate) use security_group::{default_group, group_called};

/// The supported extensions, by alias.
const EXTENSIONS: [&str; 24] = [
    "address-scope",
    "agent",
    "allowed-address-pairs",
    "availability_zone",
    "network_availability_zone",
    "router_availability_zone",
    "binding",
    "default-subnetpools",
    "dns-integration",
    "external-net",
    "extra_dhcp_opt",
    "extraroute",
    "filter-validation",
    "net-mtu",
    "pagination",
    "port-security",
    "project-id",
    "quotas",
    "quota_details",
    "router",
    "security-group",
    "sorting",
    "standard-attr-tag",
    "standard-attr-revisions",
];

pub(crate) fn answer(world: &mut World, asked: &ApiRequest, path: &[&str]) -> AnswerResult {
    let method = asked.method.as_str();
    match (method, path) {
        ("GET", ["extensions"]) => {
            let all = EXTENSIONS.map(extension);
            return Ok(Answer::ok(json!({"extensions": all})));
        }
        ("GET", ["extensions", alias]) if EXTENSIONS.contains(alias) => {
            return Ok(Answer::ok(json!({"extension": extension(alias)})));
        }
        ("GET", ["availability_zones"]) => {
            let zone = |resource: &str| json!({"name": "nova", "resource": resource, "state": "available"});
            return Ok(Answer::ok(
                json!({"availability_zones": [zone("network"), zone("router")]}),
            ));
        }
        ("GET", ["agents"]) => return Ok(Answer::ok(json!({"agents": []}))),
        (_, ["quotas", rest @ ..]) => return quota::answer(world, asked, rest),
        _ => {}
    }
    let [collection, rest @ ..] = path else { return Err(ApiError::unknown_path()) };
    let resource = RESOURCES
        .iter()
        .find(|resource| resource.path == *collection)
        .ok_or_else(ApiError::unknown_path)?;
    if method != "GET" {
        asked.writer()?;
    }
    match (method, rest) {
        ("GET", []) => list(world, asked, resource),
        ("POST", []) => create(world, asked, resource),
        ("GET", [id]) => {
            ensure_default_group(world, asked, resource);
            let object = visible(world, asked, resource, id)?;
            let body = shown(world, object, resource);
            Ok(Answer::ok(json!({resource.single: page::pick(asked, body)})))
        }
        ("PUT", [id]) => update(world, asked, resource, id),
        ("DELETE", [id]) => {
            visible(world, asked, resource, id)?;
            owned(world, asked, resource, id)?;
            (resource.delete)(world, id, asked)?;
            Ok(Answer::empty(204))
        }
        (_, [id, "tags", tags @ ..]) => {
            visible(world, asked, resource, id)?;
            tag::answer(world, asked, resource, id, tags)
        }
        ("PUT", [id, "add_router_interface"]) if resource.kind == Kind::Router => {
            router::attach(world, asked, id)
        }
        ("PUT", [id, "remove_router_interface"]) if resource.kind == Kind::Router => {
            router::detach(world, asked, id)
        }
        _ => Err(ApiError::unknown_path()),
    }
}

fn extension(alias: &str) -> Value {
    json!({"alias": alias, "name": alias, "description": "", "links": [], "updated": "2015-01-01T00:00:00-00:00"})
}

/// Whether the caller sees an object: objects of the own project, and networks and subnets that are shared or external.
fn sees(world: &World, asked: &ApiRequest, kind: Kind, object: &Object) -> bool {
    if asked.sees(&object.project) {
        return true;
    }
    if kind == Kind::Subnet {
        let network = world.store.get(Kind::Network, object.text("network_id"));
        return network.is_some_and(|network| network.is("shared"));
    }
    kind == Kind::Network && (object.is("shared") || object.is("router:external"))
}

fn visible<'w>(
    world: &'w World,
    asked: &ApiRequest,
    resource: &Resource,
    id: &str,
) -> Result<&'w Object, ApiError> {
    let object = world
        .store
        .get(resource.kind, id)
        .filter(|object| sees(world, asked, resource.kind, object));
    object.ok_or_else(|| resource.missing(id))
}

/// Refuses to change an object of another project.
fn owned(world: &World, asked: &ApiRequest, resource: &Resource, id: &str) -> Result<(), ApiError> {
    let object = world.store.get(resource.kind, id).ok_or_else(|| resource.missing(id))?;
    if asked.sees(&object.project) {
        return Ok(());
    }
    Err(ApiError::forbidden(format!("rule:update_{} is disallowed by policy", resource.single)))
}

fn ensure_default_group(world: &mut World, asked: &ApiRequest, resource: &Resource) {
    if resource.kind == Kind::SecurityGroup && !asked.caller.project.is_empty() {
        let project = asked.caller.project.clone();
        default_group(world, &project);
    }
}

/// An object as the API shows it. A security group contains its rules.
fn shown(world: &World, object: &Object, resource: &Resource) -> Map<String, Value> {
    let mut body = object.body.clone();
    if resource.kind == Kind::SecurityGroup {
        let rules = world.store.with_text(Kind::SecurityGroupRule, "security_group_id", &object.id);
        let rules: Vec<Value> = rules.map(Object::shown).collect();
        body.insert("security_group_rules".into(), json!(rules));
    }
    body
}

fn list(world: &mut World, asked: &ApiRequest, resource: &Resource) -> AnswerResult {
    ensure_default_group(world, asked, resource);
    let mut filters: Vec<(&str, Vec<&str>)> = Vec::new();
    for (key, value) in &asked.query {
        let about_pages = [
            "fields",
            "limit",
            "marker",
            "page_reverse",
            "sort_key",
            "sort_dir",
            "tags",
            "tags-any",
            "not-tags",
            "not-tags-any",
        ];
        if about_pages.contains(&key.as_str()) {
            continue;
        }
        if !resource.knows(key) {
            return Err(ApiError::new(
                400,
                "HTTPBadRequest",
                format!("['{key}'] is invalid attribute for filtering"),
            ));
        }
        match filters.iter_mut().find(|(known, _)| known == key) {
            Some((_, values)) => values.push(value),
            None => filters.push((key, vec![value])),
        }
    }
    let mut wanted = page::said_tags(asked);
    wanted.extend(filters.iter().flat_map(|(key, values)| said(key, values)));
    wanted.extend(seen_by(world, asked, resource.kind));
    let mut objects: Vec<&Object> = world
        .store
        .narrowed(resource.kind, &wanted)
        .into_iter()
        .filter(|object| filters.iter().all(|(key, values)| passes(object, key, values)))
        .filter(|object| {
            sees(world, asked, resource.kind, object) && world.listed(resource.kind, object)
        })
        .filter(|object| page::tagged(asked, object.list("tags")))
        .collect();
    objects.sort_by(|left, right| left.id.cmp(&right.id));
    let order = page::order(asked);
    page::sort(&mut objects, &order);
    if asked.flag("page_reverse") && asked.query("page_reverse").is_some() {
        objects.reverse();
    }
    let paged = asked.query("limit").is_some();
    let most = if paged { world.settings.page_limit } else { usize::MAX };
    let page = page::cut(asked, objects, most)?;
    let rows: Vec<Value> = page
        .objects
        .iter()
        .map(|object| page::pick(asked, shown(world, object, resource)))
        .collect();
    let mut body = json!({resource.plural: rows});
    if let Some(links) = page::links(page.next.as_deref()) {
        body[format!("{}_links", resource.plural)] = links;
    }
    Ok(Answer::ok(body))
}

/// The index entries for a filter.
fn said<'a>(key: &'a str, values: &[&'a str]) -> Vec<Condition<'a>> {
    match key {
        "fixed_ips" => {
            let parts = values.iter().map(|value| value.split_once('=').unwrap_or(("", value)));
            let whole = parts.filter(|(field, _)| *field != "ip_address_substr");
            whole.map(|(_, wanted)| vec![(key, wanted)]).collect()
        }
        // The index has the project under one name only.
        "project_id" | "tenant_id" => vec![values.iter().map(|id| (PROJECT, *id)).collect()],
        key => page::said(key, values).into_iter().collect(),
    }
}

/// The index entry for objects that the caller sees. `None` if the caller sees all objects.
fn seen_by<'a>(world: &'a World, asked: &'a ApiRequest, kind: Kind) -> Option<Condition<'a>> {
    if asked.caller.is_admin() {
        return None;
    }
    let mut said = vec![(PROJECT, asked.caller.project.as_str())];
    if kind == Kind::Network {
        said.extend([("shared", "true"), ("router:external", "true")]);
    }
    if kind == Kind::Subnet {
        let shared = world.store.with_text(Kind::Network, "shared", "true");
        said.extend(shared.map(|network| ("network_id", network.id.as_str())));
    }
    Some(said)
}

/// Whether an object passes a filter.
fn passes(object: &Object, key: &str, values: &[&str]) -> bool {
    if key == "fixed_ips" {
        return values.iter().all(|value| {
            let (field, wanted) = value.split_once('=').unwrap_or(("ip_address", value));
            object.list("fixed_ips").iter().any(|ip| match field {
                "ip_address_substr" => {
                    ip["ip_address"].as_str().is_some_and(|ip| ip.contains(wanted))
                }
                field => ip[field] == wanted,
            })
        });
    }
    values.iter().any(|value| page::equals(object.body.get(key), value))
}

fn create(world: &mut World, asked: &ApiRequest, resource: &Resource) -> AnswerResult {
    let body = asked.json()?;
    if let Some(many) = body[resource.plural].as_array() {
        let mut ids = Vec::new();
        for one in many {
            match make(world, asked, resource, one) {
                Ok(id) => ids.push(id),
                Err(problem) => {
                    // A bulk create makes all objects or none.
                    for id in ids {
                        (resource.delete)(world, &id, asked)?;
                    }
                    return Err(problem);
                }
            }
        }
        let made = ids.iter().filter_map(|id| world.store.get(resource.kind, id));
        let made: Vec<Value> =
            made.map(|object| Value::Object(shown(world, object, resource))).collect();
        return Ok(Answer::json(201, json!({resource.plural: made})));
    }
    let id = make(world, asked, resource, &body[resource.single])?;
    let object = world.store.get(resource.kind, &id).ok_or_else(|| resource.missing(&id))?;
    Ok(Answer::json(201, json!({resource.single: shown(world, object, resource)})))
}

fn make(
    world: &mut World,
    asked: &ApiRequest,
    resource: &Resource,
    given: &Value,
) -> Result<String, ApiError> {
    let Some(given) = given.as_object() else {
        return Err(ApiError::bad(format!("Unable to find '{}' in request body", resource.single)));
    };
    resource.refuse_unknown(given, resource.create)?;
    let own = |key: &str| given.get(key).and_then(Value::as_str);
    let project =
        own("project_id").or_else(|| own("tenant_id")).unwrap_or(&asked.caller.project).to_owned();
    if !asked.sees(&project) {
        return Err(ApiError::forbidden(format!(
            "(rule:create_{}) is disallowed by policy",
            resource.single
        )));
    }
    check_quota(world, &project, resource.kind, 1)?;
    let mut body = (resource.defaults)();
    let now = stamp();
    for (key, value) in [
        ("created_at", json!(now)),
        ("updated_at", json!(now)),
        ("revision_number", json!(1)),
        ("project_id", json!(project)),
        ("tenant_id", json!(project)),
    ] {
        body[key] = value;
    }
    for (key, value) in given {
        body[key] = value.clone();
    }
    let object = world.object(&project, body);
    (resource.make)(world, asked, object, given)
}

fn update(world: &mut World, asked: &ApiRequest, resource: &Resource, id: &str) -> AnswerResult {
    visible(world, asked, resource, id)?;
    owned(world, asked, resource, id)?;
    let given = asked.wrapped(resource.single)?;
    resource.refuse_unknown(&given, resource.update)?;
    if let Some(wanted) =
        asked.header("if-match").and_then(|text| text.strip_prefix("revision_number="))
    {
        let object = world.store.get(resource.kind, id).ok_or_else(|| resource.missing(id))?;
        if object.number("revision_number").to_string() != wanted {
            return Err(ApiError::new(
                412,
                "RevisionNumberConstraintFailed",
                format!(
                    "Constrained to {wanted}, but current revision is {}",
                    object.number("revision_number")
                ),
            ));
        }
    }
    (resource.change)(world, asked, id, &given)?;
    touch(world, resource.kind, id);
    let object = world.store.get(resource.kind, id).ok_or_else(|| resource.missing(id))?;
    Ok(Answer::ok(json!({resource.single: shown(world, object, resource)})))
}

/// Raises the revision number and updates `updated_at` of an object.
pub(crate) fn touch(world: &mut World, kind: Kind, id: &str) {
    if let Some(object) = world.store.get_mut(kind, id) {
        let revision = object.number("revision_number") + 1;
        object.set("revision_number", revision);
        object.set("updated_at", stamp());
    }
}

/// Copies the given fields into an object.
fn merge(world: &mut World, kind: Kind, id: &str, given: &Map<String, Value>) {
    if let Some(object) = world.store.get_mut(kind, id) {
        for (key, value) in given {
            object.set(key, value.clone());
        }
    }
}
