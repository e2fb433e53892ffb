//! Routes Designate's requests.

use serde_json::{Value, json};

use super::types::{RECORDSET, ZONE};
use super::{quota, recordset, reverse, zone};
use crate::handlers::{Form, Handlers};
use crate::index::PROJECT;
use crate::list::{Links, Lists, PLAIN};
use crate::object::Object;
use crate::page;
use crate::request::{Answer, ApiAnswer, ApiError, ApiRequest};
use crate::resource::ResourceType;
use crate::world::World;

const HANDLERS: Handlers = Handlers {
    update: "PATCH",
    statuses: [202, 202, 202],
    form: Form::Bare,
    brief: false,
    lists: Lists {
        passes: |one, key, values| values.iter().all(|value| passes(one, key, value)),
        index: |key, values| match (key, values) {
            // Names are stored in lower case.
            ("name", [name])
                if !name.contains('*') && !name.contains(|c: char| c.is_ascii_uppercase()) =>
            {
                vec![vec![("name", *name)]]
            }
            _ => Vec::new(),
        },
        sees: |_, asked, _, one| asked_for(asked).is_none_or(|project| one.project == project),
        scope: |_, asked, _| asked_for(asked).map(|project| vec![(PROJECT, project)]),
        links: Links::Designate,
        ..PLAIN
    },
    sees: |_, asked, _, one| {
        asked.caller.is_admin() || asked_for(asked).is_none_or(|project| one.project == project)
    },
    shown,
    create: |world, asked, _, given| zone::create(world, asked, given),
    change: |world, _, _, id, given| zone::update(world, id, given),
    delete: |world, _, _, id| zone::delete(world, id),
};

/// The recordsets of one zone, which the caller sees if the caller sees the zone.
const RECORDSETS: Handlers = Handlers {
    update: "PUT",
    lists: Lists { sees: |_, _, _, _| true, scope: |_, _, _| None, ..HANDLERS.lists },
    sees: |_, asked, _, one| asked.segments.iter().any(|segment| segment == one.text("zone_id")),
    create: |world, asked, _, given| {
        let zone = asked.segments.get(1).map(String::as_str).unwrap_or_default();
        let zone = HANDLERS.find(world, asked, &ZONE, zone)?.clone();
        recordset::create(world, &zone, given)
    },
    change: |world, _, _, id, given| recordset::update(world, id, given),
    delete: |world, _, _, id| recordset::delete(world, id),
    ..HANDLERS
};

pub(crate) fn answer(world: &mut World, asked: &ApiRequest, path: &[&str]) -> ApiAnswer {
    let method = asked.method.as_str();
    if method != "GET" {
        asked.writer()?;
    }
    match (method, path) {
        ("GET", ["zones", id, "nameservers"]) => {
            HANDLERS.find(world, asked, &ZONE, id)?;
            Ok(Answer::ok(json!({"nameservers": [{"hostname": zone::NAME_SERVER, "priority": 1}]})))
        }
        (_, ["zones", zone, "recordsets", rest @ ..]) => {
            HANDLERS.find(world, asked, &ZONE, zone)?;
            match (method, rest) {
                ("GET", []) => RECORDSETS.list(world, asked, &RECORDSET, Some(("zone_id", zone))),
                _ => RECORDSETS.answer(world, asked, &RECORDSET, rest),
            }
        }
        (_, ["zones", rest @ ..]) => HANDLERS.answer(world, asked, &ZONE, rest),
        ("GET", ["recordsets"]) => HANDLERS.list(world, asked, &RECORDSET, None),
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

/// An object with its links.
fn shown(_: &World, asked: &ApiRequest, _: &ResourceType, object: &Object) -> Value {
    let mut body = object.shown();
    let path = match object.text("zone_id") {
        "" => format!("zones/{}", object.id),
        zone => format!("zones/{zone}/recordsets/{}", object.id),
    };
    body["links"] = json!({"self": format!("{}/v2/{path}", asked.root())});
    body
}

fn passes(one: &Object, key: &str, value: &str) -> bool {
    match key {
        "data" => one.list("records").iter().any(|it| like(value, it.as_str().unwrap_or_default())),
        key => like(value, &page::words(one.body.get(key))),
    }
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
