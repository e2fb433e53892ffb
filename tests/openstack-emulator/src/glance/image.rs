//! The records of images, and the callers who may see them.

use serde_json::{Value, json};

use super::types::{self as refuse, IMAGE};
use crate::list::{Links, Lists, Order, PLAIN};
use crate::object::{ChangeLists, Fields, Kind, Object, ReadFields};
use crate::page;
use crate::request::{ApiRequest, ApiResult};
use crate::resource::Set;
use crate::store::Condition;
use crate::world::{World, stamp};

const FORMATS: [&str; 11] =
    ["ami", "ari", "aki", "vhd", "vhdx", "vmdk", "raw", "qcow2", "vdi", "iso", "ploop"];

pub(super) const LISTS: Lists = Lists {
    controls: "limit marker sort sort_key sort_dir os_hidden member_status",
    passes: |one, key, values| values.iter().all(|value| passes(one, key, value)),
    index: |key, values| values.iter().filter_map(|value| said(key, value)).collect(),
    sees: |_, asked, _, one| {
        sees(asked, one) && one.is("os_hidden") == asked.flag("os_hidden") && is_listed(asked, one)
    },
    order: Order::Newest,
    sort: |asked| {
        let sorts = asked.query("sort").into_iter().flat_map(|sort| sort.split(','));
        let sorts = sorts.map(|key| key.split_once(':').unwrap_or((key, "desc")));
        let sorts = sorts.map(|(key, direction)| (key.to_owned(), direction == "desc"));
        let all = page::order(asked).into_iter().chain(sorts);
        all.filter(|(key, _)| key != "created_at").collect()
    },
    most: |world, asked| match asked.query("limit") {
        Some(_) => world.settings.page_limit,
        None => 25,
    },
    links: Links::Glance,
    ..PLAIN
};

/// Whether a project has accepted a shared image. `None` if the image is not shared with the project.
fn status<'i>(image: &'i Object, project: &str) -> Option<&'i str> {
    let mut members = image.hidden.list("members").iter();
    let own = members.find(|member| member["member_id"] == project)?;
    own["status"].as_str().filter(|_| image.text("visibility") == "shared")
}

pub(super) fn sees(asked: &ApiRequest, image: &Object) -> bool {
    asked.sees(&image.project)
        || ["public", "community"].contains(&image.text("visibility"))
        || status(image, &asked.caller.project).is_some()
}

/// Whether a list shows an image of another project: an image that other projects share only if the request names their kind, and by default
/// an image that was shared with the caller's project only after the project accepted it.
fn is_listed(asked: &ApiRequest, image: &Object) -> bool {
    let wanted = asked.query("member_status").unwrap_or("accepted");
    let said = status(image, &asked.caller.project);
    let is_taken = said.is_none_or(|said| wanted == "all" || wanted == said);
    let is_open = asked.query("visibility").is_some() || image.text("visibility") != "community";
    asked.sees(&image.project) || (is_open && is_taken)
}

/// The index entry for a filter. `None` if no index has it.
fn said<'a>(key: &'a str, value: &'a str) -> Option<Condition<'a>> {
    match key {
        "tag" => Some(vec![("tags", value)]),
        "name" | "id" if !value.starts_with("in:") => page::said(key, &[value]),
        _ => None,
    }
}

fn passes(image: &Object, key: &str, value: &str) -> bool {
    match key {
        "tag" => image.body.lists("tags", value),
        "visibility" if value == "all" => true,
        "size_min" => value.parse().is_ok_and(|least: i64| image.number("size") >= least),
        "size_max" => value.parse().is_ok_and(|most: i64| image.number("size") <= most),
        _ => {
            let is = |wanted: &str| page::equals(image.body.get(key), wanted);
            match value.strip_prefix("in:") {
                Some(many) => many.split(',').any(|one| is(one.trim_matches('"'))),
                None => is(value),
            }
        }
    }
}

/// An image with its links.
pub(super) fn shown(image: &Object) -> Value {
    let mut body = image.shown();
    body["self"] = json!(format!("/v2/images/{}", image.id));
    body["file"] = json!(format!("/v2/images/{}/file", image.id));
    body["schema"] = json!("/v2/schemas/image");
    body
}

/// Stores an image of a project with these fields.
fn insert(world: &mut World, project: &str, given: &Fields) -> String {
    let mut body = IMAGE.filled(given);
    body["owner"] = given.get("owner").cloned().unwrap_or_else(|| json!(project));
    body["created_at"] = json!(stamp());
    body["updated_at"] = json!(stamp());
    world.add(Kind::Image, project, body)
}

pub(super) fn create(world: &mut World, asked: &ApiRequest, given: &Fields) -> ApiResult<String> {
    for (key, value) in given {
        check(asked, key, value, Set::New)?;
    }
    let id = given.text("id");
    if world.store.get(Kind::Image, id).is_some() {
        return Err(refuse::exists(id));
    }
    Ok(insert(world, &asked.caller.project, given))
}

/// Refuses a field that only Glance sets, and a wrong value.
fn check(asked: &ApiRequest, key: &str, value: &Value, request: Set) -> ApiResult {
    if IMAGE.has(key) && !IMAGE.sets(key, request) {
        return Err(refuse::read_only(key));
    }
    match (key, value.as_str()) {
        ("disk_format", Some(format)) if !FORMATS.contains(&format) => {
            Err(refuse::bad_format(format, format!("{FORMATS:?}")))
        }
        ("visibility", Some("public")) if !asked.caller.is_admin() => Err(refuse::not_public()),
        ("visibility", Some(other))
            if !["public", "private", "shared", "community"].contains(&other) =>
        {
            Err(refuse::bad_visibility(other))
        }
        _ => Ok(()),
    }
}

/// Answers `PATCH /images/{id}`: RFC 6902 on top-level fields.
pub(super) fn patch(world: &mut World, asked: &ApiRequest, id: &str) -> ApiResult {
    let operations = asked.json()?;
    let image = world.store.get_mut(Kind::Image, id).ok_or_else(|| IMAGE.missing(id))?;
    for operation in operations.as_array().ok_or_else(refuse::no_list)? {
        let path = operation.text("path").strip_prefix('/').unwrap_or_default();
        let path = path.replace("~1", "/").replace("~0", "~");
        check(asked, &path, &operation["value"], Set::Later)?;
        let there = image.body.contains_key(&path);
        match operation["op"].as_str() {
            Some("add") => image.set(&path, operation["value"].clone()),
            Some("replace") if there => image.set(&path, operation["value"].clone()),
            Some("remove") if there => drop(image.body.remove(&path)),
            Some("replace" | "remove") => return Err(refuse::no_property(path)),
            _ => return Err(refuse::bad_operation()),
        }
    }
    image.set("updated_at", stamp());
    Ok(())
}

pub(super) fn delete(world: &mut World, id: &str) -> ApiResult {
    if world.store.get(Kind::Image, id).is_some_and(|image| image.is("protected")) {
        return Err(refuse::protected(id));
    }
    world.store.remove(Kind::Image, id);
    world.image_bytes.remove(id);
    Ok(())
}

/// Adds a tag with `PUT`, or removes it with `DELETE`.
pub(super) fn tag(world: &mut World, asked: &ApiRequest, id: &str, tag: &str) -> ApiResult {
    let image = world.store.get_mut(Kind::Image, id).ok_or_else(|| IMAGE.missing(id))?;
    let adds = asked.method == http::Method::PUT;
    if !adds && !image.body.lists("tags", tag) {
        return Err(refuse::no_tag(tag, id));
    }
    image.body.drop_from("tags", |one| one == tag);
    if adds {
        image.body.push_to("tags", tag);
    }
    Ok(())
}

/// Creates a public image that exists from the start.
pub(crate) fn plant(world: &mut World, project: &str, name: &str, properties: &Value) {
    let fixed = json!({"name": name, "status": "active", "visibility": "public", "disk_format": "qcow2", "container_format": "bare", "size": 1 << 20});
    let all = [&fixed, properties].into_iter().filter_map(Value::as_object).flatten();
    let all = all.map(|(key, value)| (key.clone(), value.clone())).collect();
    insert(world, project, &all);
}

/// Creates the record of an image of a server, in status `queued`.
pub(crate) fn snapshot(
    world: &mut World,
    project: &str,
    name: &str,
    properties: &Fields,
) -> String {
    let mut given = properties.clone();
    for (key, value) in [
        ("name", name),
        ("visibility", "private"),
        ("disk_format", "qcow2"),
        ("container_format", "bare"),
    ] {
        given.insert(key.to_owned(), json!(value));
    }
    insert(world, project, &given)
}
