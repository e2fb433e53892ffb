//! Designate v2: zones, recordsets, and names of floating IPs.

mod quota;
mod recordset;
mod reverse;
mod zone;

use serde_json::{Value, json};

use crate::index::PROJECT;
use crate::page;
use crate::problem::ApiError;
use crate::request::{Answer, AnswerResult, ApiRequest};
use crate::store::{Condition, Kind, Object};
use crate::world::World;

pub(crate) use zone::gone as zone_gone;

pub(crate) fn answer(world: &mut World, asked: &ApiRequest, path: &[&str]) -> AnswerResult {
    let method = asked.method.as_str();
    if method != "GET" {
        asked.writer()?;
    }
    match (method, path) {
        ("GET", ["zones"]) => list(world, asked, "zones", owned(world, asked, Kind::Zone)),
        ("POST", ["zones"]) => zone::create(world, asked),
        ("GET", ["zones", id]) => {
            let zone = zone::find(world, asked, id)?;
            Ok(Answer::ok(shown(asked, zone)))
        }
        ("PATCH", ["zones", id]) => zone::update(world, asked, id),
        ("DELETE", ["zones", id]) => zone::delete(world, asked, id),
        ("GET", ["zones", id, "nameservers"]) => {
            zone::find(world, asked, id)?;
            Ok(Answer::ok(json!({"nameservers": [{"hostname": zone::NAME_SERVER, "priority": 1}]})))
        }
        (_, ["zones", id, "recordsets", rest @ ..]) => recordset::answer(world, asked, id, rest),
        ("GET", ["recordsets"]) => {
            list(world, asked, "recordsets", owned(world, asked, Kind::Recordset))
        }
        (_, ["reverse", "floatingips", rest @ ..]) => reverse::answer(world, asked, rest),
        (_, ["quotas", rest @ ..]) => quota::answer(world, asked, rest),
        ("GET", ["limits"]) => quota::limits(world, asked),
        ("GET", ["tsigkeys" | "tlds" | "blacklists" | "pools" | "service_statuses"]) => {
            asked.admin("find").map_err(|_| ApiError::forbidden("Forbidden"))?;
            Ok(Answer::ok(json!({path[0]: [], "links": {}, "metadata": {"total_count": 0}})))
        }
        _ => Err(ApiError::unknown_path()),
    }
}

/// The project whose objects the request is about: the caller's, or another one that an administrator names. `None` means all projects.
fn asked_for(asked: &ApiRequest) -> Option<&str> {
    let admin = asked.caller.is_admin();
    let all =
        asked.header("x-auth-all-projects").is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let sudo =
        asked.header("x-auth-sudo-project-id").or_else(|| asked.header("x-auth-sudo-tenant-id"));
    match sudo.filter(|_| admin) {
        Some(project) => Some(project),
        None => (!(admin && all)).then_some(asked.caller.project.as_str()),
    }
}

/// Whether `object` belongs to the project of the request.
fn own(asked: &ApiRequest, object: &Object) -> bool {
    asked_for(asked).is_none_or(|project| object.project == project)
}

/// The objects of a kind that the request is about, filtered by name if the request has such a filter.
fn owned<'w>(world: &'w World, asked: &ApiRequest, kind: Kind) -> Vec<&'w Object> {
    let name = whole_name(asked);
    let mut wanted: Vec<Condition<'_>> = Vec::new();
    wanted.extend(asked_for(asked).map(|project| vec![(PROJECT, project)]));
    wanted.extend(name.as_deref().map(|name| vec![("name", name)]));
    let mut found = world.store.narrowed(kind, &wanted);
    found.retain(|one| own(asked, one) && world.listed(kind, one));
    found
}

/// The name in the filter of a list, in lower case as names are stored. `None` if the filter is a pattern.
fn whole_name(asked: &ApiRequest) -> Option<String> {
    asked.query("name").filter(|name| !name.contains('*')).map(str::to_ascii_lowercase)
}

/// An object with its links.
fn shown(asked: &ApiRequest, object: &Object) -> Value {
    let mut body = object.shown();
    let zone = object.text("zone_id");
    let path = if zone.is_empty() {
        format!("zones/{}", object.id)
    } else {
        format!("zones/{zone}/recordsets/{}", object.id)
    };
    body["links"] = json!({"self": format!("{}/v2/{path}", asked.root())});
    body
}

fn list(
    world: &World,
    asked: &ApiRequest,
    plural: &str,
    mut objects: Vec<&Object>,
) -> AnswerResult {
    let about_pages = ["limit", "marker", "sort_key", "sort_dir"];
    let filters: Vec<&(String, String)> =
        asked.query.iter().filter(|(key, _)| !about_pages.contains(&key.as_str())).collect();
    objects.retain(|one| {
        filters.iter().all(|(key, value)| match key.as_str() {
            "data" => one
                .list("records")
                .iter()
                .any(|record| record.as_str().is_some_and(|record| like(value, record))),
            key => like(value, &page::words(one.body.get(key))),
        })
    });
    page::sort(&mut objects, &page::order(asked));
    let total = objects.len();
    let page = page::cut(asked, objects, world.settings.page_limit)
        .map_err(|problem| ApiError { kind: "marker_not_found".into(), ..problem })?;
    let rows: Vec<Value> = page.objects.iter().map(|one| shown(asked, one)).collect();
    let mut links = json!({"self": format!("{}{}", asked.base, asked.path)});
    if let Some(next) = page.next {
        links["next"] = json!(next);
    }
    Ok(Answer::ok(json!({plural: rows, "links": links, "metadata": {"total_count": total}})))
}

/// Matches one of Designate's filters, in which `*` stands for anything.
fn like(pattern: &str, text: &str) -> bool {
    if !pattern.contains('*') {
        return pattern.eq_ignore_ascii_case(text);
    }
    crate::glob::matches(
        &pattern.replace('*', "**").to_ascii_lowercase(),
        &text.to_ascii_lowercase(),
    )
}
