//! Octavia v2: load balancers and their children.

mod children;
mod full;
mod load_balancer;
mod quota;
mod sort;
mod status;

use serde_json::{Map, Value, json};

use crate::index::PROJECT;
use crate::page;
use crate::problem::ApiError;
use crate::request::{Answer, AnswerResult, ApiRequest};
use crate::store::{Condition, Kind, Object};
use crate::world::{Event, World, bare_stamp};

pub(crate) use load_balancer::settled;
use sort::{ResourceType, SORTS};

pub(crate) fn answer(world: &mut World, asked: &ApiRequest, path: &[&str]) -> AnswerResult {
    if !["load-balancer_member", "load-balancer_admin", "load-balancer_observer"]
        .iter()
        .any(|role| asked.caller.may(role))
    {
        return Err(ApiError::forbidden("Policy does not allow this request to be performed."));
    }
    let path = match path {
        ["lbaas", rest @ ..] | ["octavia", rest @ ..] => rest,
        _ => return Err(ApiError::unknown_path()),
    };
    let method = asked.method.as_str();
    match (method, path) {
        ("GET", ["providers"]) => Ok(Answer::ok(
            json!({"providers": [{"name": "amphora", "description": "The Octavia Amphora driver."}]}),
        )),
        ("GET", ["availabilityzones"]) => Ok(Answer::ok(json!({"availability_zones": []}))),
        (_, ["quotas", rest @ ..]) => quota::answer(world, asked, rest),
        (_, ["flavors", rest @ ..]) => {
            plain(world, asked, "flavor", Kind::LoadBalancerFlavor, rest)
        }
        (_, ["flavorprofiles", rest @ ..]) => {
            plain(world, asked, "flavorprofile", Kind::LoadBalancerFlavorProfile, rest)
        }
        ("GET", ["loadbalancers", id, "status" | "statuses"]) => status::tree(world, asked, id),
        ("GET", ["loadbalancers" | "listeners", _, "stats"]) => {
            let stats = json!({"active_connections": 0, "bytes_in": 0, "bytes_out": 0, "request_errors": 0, "total_connections": 0});
            Ok(Answer::ok(json!({"stats": stats})))
        }
        ("PUT", ["loadbalancers", id, "failover"]) => {
            asked.admin("os_load-balancer_api:loadbalancer:put_failover")?;
            let sort = ResourceType::of("loadbalancers")?;
            find(world, asked, sort, id)?;
            change(world, id, load_balancer::usual(world))?;
            Ok(Answer::empty(202))
        }
        (_, ["pools", pool, "members", rest @ ..]) => {
            find(world, asked, ResourceType::of("pools")?, pool)?;
            children::members(world, asked, pool, rest)
        }
        (_, [collection, rest @ ..]) => {
            let sort = ResourceType::of(collection)?;
            match (method, rest) {
                ("GET", []) => list(world, asked, sort, None),
                ("POST", []) if sort.kind == Kind::LoadBalancer => {
                    load_balancer::create(world, asked)
                }
                ("POST", []) => children::create(world, asked, sort),
                ("GET", [id]) => {
                    let object = find(world, asked, sort, id)?;
                    Ok(Answer::ok(json!({sort.single: page::pick(asked, object.body.clone())})))
                }
                ("PUT", [id]) => {
                    find(world, asked, sort, id)?;
                    children::update(world, asked, sort, id)
                }
                ("DELETE", [id]) => {
                    find(world, asked, sort, id)?;
                    if sort.kind == Kind::LoadBalancer {
                        load_balancer::delete(world, asked, id)
                    } else {
                        children::delete(world, sort, id)
                    }
                }
                _ => Err(ApiError::unknown_path()),
            }
        }
        _ => Err(ApiError::unknown_path()),
    }
}

fn find<'w>(
    world: &'w World,
    asked: &ApiRequest,
    sort: &ResourceType,
    id: &str,
) -> Result<&'w Object, ApiError> {
    world.seen(sort.kind, id, asked).ok_or_else(|| sort.missing(id))
}

/// Lists objects. Members are those of `pool`.
fn list(
    world: &World,
    asked: &ApiRequest,
    sort: &ResourceType,
    pool: Option<&str>,
) -> AnswerResult {
    let about_pages = [
        "fields",
        "limit",
        "marker",
        "page_reverse",
        "sort",
        "sort_key",
        "sort_dir",
        "tags",
        "tags-any",
        "not-tags",
        "not-tags-any",
    ];
    let filters: Vec<&(String, String)> =
        asked.query.iter().filter(|(key, _)| !about_pages.contains(&key.as_str())).collect();
    let mut wanted = page::said_tags(asked);
    wanted.extend(filters.iter().flat_map(|(key, value)| said(key, value)));
    wanted.extend(pool.map(|pool| vec![("pool", pool)]));
    if !asked.caller.is_admin() {
        wanted.push(vec![(PROJECT, &asked.caller.project)]);
    }
    let mut all: Vec<&Object> = world
        .store
        .narrowed(sort.kind, &wanted)
        .into_iter()
        .filter(|one| asked.sees(&one.project) && world.listed(sort.kind, one))
        .filter(|one| pool.is_none_or(|pool| one.note("pool") == pool))
        .filter(|one| filters.iter().all(|(key, value)| passes(one, key, value)))
        .filter(|one| page::tagged(asked, one.list("tags")))
        .collect();
    all.sort_by(|left, right| left.id.cmp(&right.id));
    page::sort(&mut all, &page::order(asked));
    let page = page::cut(asked, all, world.settings.page_limit)?;
    let rows: Vec<Value> =
        page.objects.iter().map(|one| page::pick(asked, one.body.clone())).collect();
    let links = page::links(page.next.as_deref()).unwrap_or_else(|| json!([]));
    Ok(Answer::ok(json!({sort.plural: rows, format!("{}_links", sort.plural): links})))
}

/// The index entry for a filter.
fn said<'a>(key: &'a str, value: &'a str) -> Option<Condition<'a>> {
    match key {
        "loadbalancer_id" | "load_balancer_id" => Some(vec![("balancer", value)]),
        "listener_id" => Some(vec![("listeners", value)]),
        "pool_id" => Some(vec![("pool", value), ("pools", value)]),
        "project_id" | "tenant_id" => Some(vec![(PROJECT, value)]),
        key => page::said(key, &[value]),
    }
}

/// Whether an object passes a filter. Filters may name the ids of parents.
fn passes(one: &Object, key: &str, value: &str) -> bool {
    let refers = |field: &str| one.list(field).iter().any(|other| other["id"] == value);
    match key {
        "loadbalancer_id" | "load_balancer_id" => one.note("balancer") == value,
        "listener_id" => refers("listeners"),
        "pool_id" => one.note("pool") == value || refers("pools"),
        _ => page::equals(one.body.get(key), value),
    }
}

/// Flavors and flavor profiles, which belong to no load balancer.
fn plain(
    world: &mut World,
    asked: &ApiRequest,
    single: &str,
    kind: Kind,
    path: &[&str],
) -> AnswerResult {
    let missing = |id: &str| ApiError::missing(format!("{single} {id} not found."));
    match (asked.method.as_str(), path) {
        ("GET", []) => {
            let all = world
                .store
                .all(kind)
                .filter(|one| asked.query("name").is_none_or(|name| one.text("name") == name));
            let all: Vec<Value> = all.map(Object::shown).collect();
            Ok(Answer::ok(json!({format!("{single}s"): all, format!("{single}s_links"): []})))
        }
        ("GET", [id]) => Ok(Answer::ok(
            json!({single: world.store.get(kind, id).ok_or_else(|| missing(id))?.shown()}),
        )),
        ("POST", []) => {
            asked.admin("os_load-balancer_api:flavor:post")?;
            let given = asked.wrapped(single)?;
            let mut body = json!({"name": "", "description": "", "enabled": true});
            for (key, value) in given {
                body[key] = value;
            }
            let object = world.object("", body);
            let body = object.shown();
            world.store.insert(kind, object);
            Ok(Answer::json(201, json!({single: body})))
        }
        ("DELETE", [id]) => {
            asked.admin("os_load-balancer_api:flavor:delete")?;
            if world
                .store
                .find(Kind::LoadBalancer, |balancer| balancer.text("flavor_id") == *id)
                .is_some()
            {
                return Err(ApiError::conflict(format!(
                    "Flavor {id} is in use and cannot be modified."
                )));
            }
            world.store.remove(kind, id).ok_or_else(|| missing(id))?;
            Ok(Answer::empty(204))
        }
        _ => Err(ApiError::unknown_path()),
    }
}

/// Refuses a change while another one is in progress. Otherwise sets the load balancer to PENDING_UPDATE for this time.
fn change(world: &mut World, balancer: &str, time: u32) -> Result<(), ApiError> {
    let missing = || ApiError::missing(format!("Load Balancer {balancer} not found."));
    let object = world.store.get_mut(Kind::LoadBalancer, balancer).ok_or_else(missing)?;
    if !["ACTIVE"].contains(&object.text("provisioning_status")) {
        return Err(immutable(balancer));
    }
    object.set("provisioning_status", "PENDING_UPDATE");
    object.set("updated_at", bare_stamp());
    world.later(time, Event::Settled(balancer.to_owned()));
    Ok(())
}

fn immutable(balancer: &str) -> ApiError {
    ApiError::conflict(format!("Load Balancer {balancer} is immutable and cannot be updated."))
}

/// The defaults with the given fields. Refuses unknown fields.
fn fill(
    sort: &ResourceType,
    given: &Map<String, Value>,
    known: &[&str],
) -> Result<Value, ApiError> {
    let mut body = (sort.defaults)();
    for (key, value) in given {
        if !known.contains(&key.as_str()) {
            return Err(ApiError::bad(format!(
                "Invalid input for field/attribute {}. Value: '{{{key:?}: ...}}'. Unknown attribute: {key}",
                sort.single
            )));
        }
        body[key] = value.clone();
    }
    Ok(body)
}

/// The children of a load balancer, the lowest types first.
fn below(world: &World, balancer: &str) -> Vec<(Kind, String)> {
    let kinds = SORTS.iter().rev().map(|sort| sort.kind).filter(|kind| *kind != Kind::LoadBalancer);
    kinds
        .flat_map(|kind| {
            world.store.ids(kind, "balancer", balancer).into_iter().map(move |id| (kind, id))
        })
        .collect()
}
