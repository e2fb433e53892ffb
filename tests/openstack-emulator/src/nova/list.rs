//! Lists of servers.

use serde_json::{Value, json};

use super::view;
use crate::index::PROJECT;
use crate::object::{Kind, Object};
use crate::page;
use crate::problem::ApiError;
use crate::request::{Answer, AnswerResult, ApiRequest};
use crate::store::Condition;
use crate::world::World;

pub(super) fn brief(world: &World, asked: &ApiRequest) -> AnswerResult {
    answer(world, asked, |server| view::brief(asked, server))
}

pub(super) fn detail(world: &World, asked: &ApiRequest) -> AnswerResult {
    answer(world, asked, |server| view::detail(world, asked, server))
}

fn answer(world: &World, asked: &ApiRequest, shown: impl Fn(&Object) -> Value) -> AnswerResult {
    let everybody = asked.flag("all_tenants") && asked.query("all_tenants").is_some();
    if everybody && !asked.caller.is_admin() {
        return Err(ApiError::forbidden(
            "Policy doesn't allow os_compute_api:servers:index:get_all_tenants to be performed.",
        ));
    }
    let project =
        asked.query("project_id").or_else(|| asked.query("tenant_id")).filter(|_| everybody);
    let mut said: Vec<Condition<'_>> =
        asked.query.iter().filter_map(|(key, value)| said(key, value)).collect();
    if asked.since(26) {
        said.extend(page::said_tags(asked));
    }
    let of = if everybody { project } else { Some(asked.caller.project.as_str()) };
    said.extend(of.map(|project| vec![(PROJECT, project)]));
    let servers = world.store.narrowed(Kind::Server, &said).into_iter().rev().filter(|server| {
        let mine = if everybody {
            project.is_none_or(|project| project == server.project)
        } else {
            server.project == asked.caller.project
        };
        mine && world.listed(Kind::Server, server) && wanted(asked, server)
    });
    let mut servers: Vec<&Object> = servers.collect();
    let order = page::order(asked);
    let order: Vec<(String, bool)> = order
        .into_iter()
        .map(|(key, down)| (if key == "display_name" { "name".into() } else { key }, down))
        .filter(|(key, _)| key != "created_at")
        .collect();
    page::sort(&mut servers, &order);
    let page = page::cut(asked, servers, world.settings.page_limit)?;
    let rows: Vec<Value> = page.objects.iter().map(|server| shown(server)).collect();
    let mut body = json!({"servers": rows});
    if let Some(links) = page::links(page.next.as_deref()) {
        body["servers_links"] = links;
    }
    Ok(Answer::ok(body))
}

/// The index entry for a filter.
fn said<'a>(key: &str, value: &'a str) -> Option<Condition<'a>> {
    let field = match key {
        "name" | "display_name" => return Some(vec![("name", whole(value)?)]),
        "uuid" | "id" => "id",
        "flavor" => "flavor",
        "image" => "image",
        "key_name" => "key_name",
        "user_id" => "user_id",
        _ => return None,
    };
    (!value.is_empty()).then(|| vec![(field, value)])
}

/// The name in a pattern that matches exactly one name. `None` for any other pattern.
fn whole(pattern: &str) -> Option<&str> {
    pattern.strip_prefix('^')?.strip_suffix('$').filter(|name| !name.contains('\\'))
}

fn wanted(asked: &ApiRequest, server: &Object) -> bool {
    let plain = asked.query.iter().all(|(key, value)| match key.as_str() {
        "name" | "display_name" => found(server.text("name"), value),
        "status" => server.text("status").eq_ignore_ascii_case(value),
        "flavor" => server.note("flavor") == value,
        "image" => server.text("image") == value,
        "key_name" => server.text("key_name") == value,
        "user_id" => server.text("user_id") == value,
        "availability_zone" => server.note("zone") == value,
        "uuid" | "id" => server.id == *value,
        "host" if asked.caller.is_admin() => server.note("host") == value,
        "changes-since" => server.text("updated") >= value.as_str(),
        _ => true,
    });
    plain && (!asked.since(26) || page::tagged(asked, server.list("tags")))
}

/// Whether a name matches Nova's filter: a regular expression, of which `^`, `$` and quoting are supported.
fn found(name: &str, pattern: &str) -> bool {
    let (pattern, start) = pattern.strip_prefix('^').map_or((pattern, false), |rest| (rest, true));
    let (pattern, end) = pattern.strip_suffix('$').map_or((pattern, false), |rest| (rest, true));
    let text = pattern.replace('\\', "");
    match (start, end) {
        (true, true) => name == text,
        (true, false) => name.starts_with(&text),
        (false, true) => name.ends_with(&text),
        (false, false) => name.contains(&text),
    }
}

#[cfg(test)]
mod tests {
    use super::found;

    #[test]
    fn a_name_is_found_by_any_part_of_it_unless_it_is_anchored() {
        assert!(found("web-10", "web-1"));
        assert!(!found("web-10", "^web-1$"));
        assert!(found("web-10", r"^web\-10$"));
        assert!(!found("a-web", "^web"));
    }
}
