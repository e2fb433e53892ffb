//! Lists of servers and of server groups.

use crate::index::PROJECT;
use crate::list::{Links, Lists, Order, PLAIN};
use crate::object::Object;
use crate::page;
use crate::request::{ApiRequest, ApiResult};
use crate::store::Condition;

pub(super) const SERVERS: Lists = Lists {
    controls: "limit marker sort_key sort_dir all_tenants project_id tenant_id tags tags-any not-tags not-tags-any",
    is_filter: |asked, _, key| Ok(key != "host" || asked.caller.is_admin()),
    passes: |one, key, values| values.iter().all(|value| passes(one, key, value)),
    index: |key, values| values.iter().filter_map(|value| said(key, value)).collect(),
    sees: |_, asked, _, one| project(asked).is_none_or(|project| one.project == project),
    scope: |_, asked, _| project(asked).map(|project| vec![(PROJECT, project)]),
    order: Order::Newest,
    sort: |asked| {
        let order = page::order(asked).into_iter().filter(|(key, _)| key != "created_at");
        let renamed = |key: String| if key == "display_name" { "name".to_owned() } else { key };
        order.map(|(key, is_down)| (renamed(key), is_down)).collect()
    },
    tags_since: 26,
    ..PLAIN
};

/// The lists of server groups, which know no filters and no links.
pub(super) const GROUPS: Lists = Lists {
    controls: "limit",
    is_filter: |_, _, _| Ok(false),
    sees: |_, asked, _, one| everybody(asked) || one.project == asked.caller.project,
    scope: |_, asked, _| {
        (!everybody(asked)).then(|| vec![(PROJECT, asked.caller.project.as_str())])
    },
    sort: |_| Vec::new(),
    links: Links::Never,
    ..PLAIN
};

fn everybody(asked: &ApiRequest) -> bool {
    asked.caller.is_admin() && asked.query("all_projects").is_some()
}

/// Refuses a list of all projects' servers to others than administrators.
pub(super) fn check(asked: &ApiRequest) -> ApiResult {
    let rule = "os_compute_api:servers:index:get_all_tenants";
    asked.allow(!asked.flag("all_tenants") || asked.caller.is_admin(), rule)
}

/// The project whose servers a list shows. `None` for all projects.
fn project(asked: &ApiRequest) -> Option<&str> {
    match asked.flag("all_tenants") {
        true => asked.query("project_id").or_else(|| asked.query("tenant_id")),
        false => Some(&asked.caller.project),
    }
}

/// The index entry for a filter.
fn said<'a>(key: &'a str, value: &'a str) -> Option<Condition<'a>> {
    match key {
        "name" | "display_name" => Some(vec![("name", whole(value)?)]),
        "uuid" | "id" => Some(vec![("id", value)]),
        "flavor" | "image" | "key_name" | "user_id" => page::said(key, &[value]),
        _ => None,
    }
}

/// The name in a pattern that matches exactly one name. `None` for any other pattern.
fn whole(pattern: &str) -> Option<&str> {
    pattern.strip_prefix('^')?.strip_suffix('$').filter(|name| !name.contains('\\'))
}

fn passes(server: &Object, key: &str, value: &str) -> bool {
    match key {
        "name" | "display_name" => found(server.text("name"), value),
        "status" => server.text("status").eq_ignore_ascii_case(value),
        "image" | "key_name" | "user_id" => server.text(key) == value,
        "flavor" | "host" => server.note(key) == value,
        "availability_zone" => server.note("zone") == value,
        "uuid" | "id" => server.id == *value,
        "changes-since" => server.text("updated") >= value,
        _ => true,
    }
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
        for (name, pattern, is_found) in [
            ("web-10", "web-1", true),
            ("web-10", "^web-1$", false),
            ("web-10", r"^web\-10$", true),
            ("a-web", "^web", false),
        ] {
            assert_eq!(found(name, pattern), is_found, "{name} {pattern}");
        }
    }
}
