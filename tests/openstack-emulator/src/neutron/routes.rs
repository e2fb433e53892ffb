//! Routes Neutron's requests, and implements the behaviour that tables of fields cannot express.

use serde_json::{Value, json};

use super::object::{body, sees, touch};
use super::types::TYPES;
use super::{floating_ip, network, port, quota, refuse, router, security_group, subnet, tag};
use crate::handlers::{Form, Handlers};
use crate::index::PROJECT;
use crate::list::{Lists, Order, PLAIN};
use crate::object::{Fields, Kind, Object, ReadFields};
use crate::page;
use crate::request::{Answer, ApiAnswer, ApiError, ApiRequest, ApiResult};
use crate::resource::{ResourceType, Set};
use crate::store::Condition;
use crate::world::World;

/// The supported extensions, by alias.
const EXTENSIONS: &str = "address-scope agent allowed-address-pairs availability_zone network_availability_zone \
    router_availability_zone binding default-subnetpools dns-integration external-net extra_dhcp_opt extraroute \
    filter-validation net-mtu pagination port-security project-id quotas quota_details router security-group sorting \
    standard-attr-tag standard-attr-revisions";

static HANDLERS: Handlers = Handlers {
    update: "PUT",
    statuses: [201, 200, 204],
    form: Form::Wrapped,
    brief: false,
    lists: Lists {
        controls: "fields limit marker page_reverse sort_key sort_dir tags tags-any not-tags not-tags-any",
        is_filter,
        passes,
        index,
        sees: seen,
        scope,
        order: Order::Id,
        most: |world, asked| match asked.query("limit") {
            Some(_) => world.settings.page_limit,
            None => usize::MAX,
        },
        ..PLAIN
    },
    sees: seen,
    shown,
    create: make,
    change,
    delete,
};

pub(crate) fn answer(world: &mut World, asked: &ApiRequest, path: &[&str]) -> ApiAnswer {
    let method = asked.method.as_str();
    let mut extensions = EXTENSIONS.split_whitespace();
    match (method, path) {
        ("GET", ["extensions"]) => {
            let all: Vec<Value> = extensions.map(extension).collect();
            return Ok(Answer::ok(json!({"extensions": all})));
        }
        ("GET", ["extensions", alias]) if extensions.any(|known| known == *alias) => {
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
    let of = TYPES.iter().find(|of| of.path == *collection).ok_or_else(ApiError::unknown_path)?;
    if method != "GET" {
        asked.writer()?;
    } else if of.kind == Kind::SecurityGroup && !asked.caller.project.is_empty() {
        security_group::default_group(world, &asked.caller.project);
    }
    match (method, rest) {
        ("POST", []) => create(world, asked, of),
        (_, [id, "tags", tags @ ..]) => {
            HANDLERS.find(world, asked, of, id)?;
            tag::answer(world, asked, of, id, tags)
        }
        ("PUT", [id, "add_router_interface"]) if of.kind == Kind::Router => {
            router::attach(world, asked, id)
        }
        ("PUT", [id, "remove_router_interface"]) if of.kind == Kind::Router => {
            router::detach(world, asked, id)
        }
        _ => HANDLERS.answer(world, asked, of, rest),
    }
}

fn extension(alias: &str) -> Value {
    json!({"alias": alias, "name": alias, "description": "", "links": [], "updated": "2015-01-01T00:00:00-00:00"})
}

fn seen(world: &World, asked: &ApiRequest, of: &ResourceType, object: &Object) -> bool {
    sees(world, asked, of.kind, object)
}

/// Refuses to change an object of another project.
fn owned(world: &World, asked: &ApiRequest, of: &ResourceType, id: &str) -> ApiResult {
    let object = world.store.get(of.kind, id).ok_or_else(|| of.missing(id))?;
    if asked.sees(&object.project) {
        return Ok(());
    }
    Err(refuse::not_own("update", of.single))
}

/// An object as the API shows it. A security group contains its rules.
fn shown(world: &World, _: &ApiRequest, of: &ResourceType, object: &Object) -> Value {
    let mut body = object.shown();
    if of.kind == Kind::SecurityGroup {
        let rules = world.store.with_text(Kind::SecurityGroupRule, "security_group_id", &object.id);
        body["security_group_rules"] = json!(rules.map(Object::shown).collect::<Vec<_>>());
    }
    body
}

/// Neutron refuses filters that it does not know.
fn is_filter(_: &ApiRequest, of: &ResourceType, key: &str) -> ApiResult<bool> {
    const COMMON: &str =
        "id name project_id tenant_id description status created_at revision_number";
    if of.has(key) || COMMON.split(' ').any(|common| common == key) {
        return Ok(true);
    }
    Err(refuse::bad_filter(key))
}

fn index<'a>(key: &'a str, values: &[&'a str]) -> Vec<Condition<'a>> {
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

fn scope<'a>(world: &'a World, asked: &'a ApiRequest, of: &ResourceType) -> Option<Condition<'a>> {
    if asked.caller.is_admin() {
        return None;
    }
    let mut said = vec![(PROJECT, asked.caller.project.as_str())];
    if of.kind == Kind::Network {
        said.extend([("shared", "true"), ("router:external", "true")]);
    }
    if of.kind == Kind::Subnet {
        let shared = world.store.with_text(Kind::Network, "shared", "true");
        said.extend(shared.map(|network| ("network_id", network.id.as_str())));
    }
    Some(said)
}

/// Whether an object passes a filter: one of its values, and all values of `fixed_ips`.
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

/// Answers a create of one object or of many.
fn create(world: &mut World, asked: &ApiRequest, of: &ResourceType) -> ApiAnswer {
    let body = asked.json()?;
    let fields = |one: &Value| one.as_object().cloned().ok_or_else(|| refuse::no_body(of.single));
    let Some(many) = body[of.plural].as_array() else {
        let id = make(world, asked, of, &fields(&body[of.single])?)?;
        return HANDLERS.one(world, asked, of, &id, 201);
    };
    let mut ids = Vec::new();
    for one in many {
        match fields(one).and_then(|given| make(world, asked, of, &given)) {
            Ok(id) => ids.push(id),
            Err(problem) => {
                // A bulk create makes all objects or none.
                for id in ids {
                    remove(world, asked, of, &id)?;
                }
                return Err(problem);
            }
        }
    }
    let made = ids.iter().filter_map(|id| world.store.get(of.kind, id));
    let made: Vec<Value> = made.map(|object| shown(world, asked, of, object)).collect();
    Ok(Answer::json(201, json!({of.plural: made})))
}

fn refuse_unknown(of: &ResourceType, given: &Fields, request: Set) -> ApiResult {
    let unknown = of.unknown(given, request);
    if unknown.is_empty() {
        return Ok(());
    }
    let list = unknown.join(", ");
    Err(match unknown.iter().all(|key| of.has(key)) {
        true => refuse::read_only(list),
        false => refuse::unknown(list),
    })
}

fn make(
    world: &mut World,
    asked: &ApiRequest,
    of: &ResourceType,
    given: &Fields,
) -> ApiResult<String> {
    refuse_unknown(of, given, Set::New)?;
    let project = given.text_of("project_id").or_else(|| given.text_of("tenant_id"));
    let project = project.unwrap_or(&asked.caller.project).to_owned();
    if !asked.sees(&project) {
        return Err(refuse::not_for_others(of.single));
    }
    quota::check(world, &project, of.kind, 1)?;
    let body = body(of.kind, &project, given);
    let object = world.object(&project, body);
    let make = match of.path {
        "subnets" => subnet::make,
        "routers" => router::make,
        "ports" => port::create,
        "security-groups" => security_group::make,
        "security-group-rules" => security_group::make_rule,
        "floatingips" => floating_ip::make,
        _ => network::make,
    };
    make(world, asked, object, given)
}

fn change(
    world: &mut World,
    asked: &ApiRequest,
    of: &ResourceType,
    id: &str,
    given: &Fields,
) -> ApiResult {
    owned(world, asked, of, id)?;
    refuse_unknown(of, given, Set::Later)?;
    let wanted = asked.header("if-match").and_then(|text| text.strip_prefix("revision_number="));
    let revision = world.store.get(of.kind, id).map(|object| object.number("revision_number"));
    if let (Some(wanted), Some(revision)) = (wanted, revision)
        && revision.to_string() != wanted
    {
        return Err(refuse::revised(wanted, revision));
    }
    let change = match of.path {
        "networks" => network::change,
        "subnets" => subnet::change,
        "routers" => router::change,
        "ports" => port::change,
        "security-groups" => security_group::change,
        "floatingips" => floating_ip::change,
        _ => return Err(refuse::no_update()),
    };
    change(world, asked, id, given)?;
    touch(world, of.kind, id);
    Ok(())
}

fn delete(world: &mut World, asked: &ApiRequest, of: &ResourceType, id: &str) -> ApiResult {
    owned(world, asked, of, id)?;
    remove(world, asked, of, id)
}

fn remove(world: &mut World, asked: &ApiRequest, of: &ResourceType, id: &str) -> ApiResult {
    let remove = match of.path {
        "subnets" => subnet::delete,
        "routers" => router::delete,
        "ports" => port::delete_asked,
        "security-groups" => security_group::delete,
        "security-group-rules" => security_group::delete_rule,
        "floatingips" => floating_ip::delete,
        _ => network::delete,
    };
    remove(world, id, asked)
}
