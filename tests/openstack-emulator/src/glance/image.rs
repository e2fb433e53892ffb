//! The records of images.

use serde_json::{Value, json};

use super::access::{missing, sees, shown, status};
use crate::object::{Kind, Object};
use crate::page;
use crate::problem::ApiError;
use crate::request::{Answer, AnswerResult, ApiRequest};
use crate::store::Condition;
use crate::world::{World, stamp};

/// The fields that only Glance sets.
const READ_ONLY: &str = "id status created_at updated_at size virtual_size checksum os_hash_algo os_hash_value file self schema";

fn is_read_only(field: &str) -> bool {
    READ_ONLY.split(' ').any(|known| known == field)
}

fn blank(project: &str) -> Value {
    json!({
        "name": null, "status": "queued", "visibility": "shared", "protected": false, "os_hidden": false, "tags": [], "owner": project,
        "min_ram": 0, "min_disk": 0, "size": null, "virtual_size": null, "checksum": null, "os_hash_algo": null, "os_hash_value": null,
        "disk_format": null, "container_format": null, "created_at": stamp(), "updated_at": stamp(),
    })
}

pub(super) fn create(world: &mut World, asked: &ApiRequest) -> AnswerResult {
    let given = asked.json()?;
    let project = asked.caller.project.clone();
    let mut body = blank(&project);
    for (key, value) in
        given.as_object().ok_or_else(|| ApiError::bad("Malformed JSON in request body."))?
    {
        if is_read_only(key) && key != "id" {
            return Err(ApiError::forbidden(format!("Attribute '{key}' is read-only.")));
        }
        check(asked, key, value)?;
        body[key] = value.clone();
    }
    let image = world.object(&project, body);
    if world.store.get(Kind::Image, &image.id).is_some() {
        return Err(ApiError::conflict(format!("Image ID {} already exists!", image.id)));
    }
    let (body, location) = (shown(&image), format!("{}/v2/images/{}", asked.root(), image.id));
    world.store.insert(Kind::Image, image);
    let answer = Answer::json(201, body).with("location", location);
    Ok(answer.with("openstack-image-import-methods", "glance-direct,web-download"))
}

fn check(asked: &ApiRequest, key: &str, value: &Value) -> Result<(), ApiError> {
    let formats =
        ["ami", "ari", "aki", "vhd", "vhdx", "vmdk", "raw", "qcow2", "vdi", "iso", "ploop"];
    match (key, value.as_str()) {
        ("disk_format", Some(format)) if !formats.contains(&format) => Err(ApiError::bad(format!(
            "Invalid value '{format}' for parameter 'disk_format': Value must be one of {formats:?}"
        ))),
        ("visibility", Some("public")) if !asked.caller.is_admin() => {
            Err(ApiError::forbidden("You are not authorized to complete publicize_image action."))
        }
        ("visibility", Some(other))
            if !["public", "private", "shared", "community"].contains(&other) =>
        {
            Err(ApiError::bad(format!(
                "'{other}' is not one of ['community', 'public', 'private', 'shared']"
            )))
        }
        _ => Ok(()),
    }
}

pub(super) fn list(world: &World, asked: &ApiRequest) -> AnswerResult {
    let hidden = asked.query("os_hidden").is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let said = asked.query.iter().filter_map(|(key, value)| said(key, value));
    let said: Vec<Condition<'_>> = said.collect();
    let mut images: Vec<&Object> = world
        .store
        .narrowed(Kind::Image, &said)
        .into_iter()
        .rev()
        .filter(|image| {
            sees(asked, image)
                && image.is("os_hidden") == hidden
                && world.listed(Kind::Image, image)
        })
        .filter(|image| {
            asked.query("visibility").is_some()
                || image.text("visibility") != "community"
                || asked.sees(&image.project)
        })
        .filter(|image| asked.sees(&image.project) || taken(asked, image))
        .filter(|image| asked.query.iter().all(|(key, value)| passes(image, key, value)))
        .collect();
    let mut order = page::order(asked);
    for key in asked.query("sort").into_iter().flat_map(|sort| sort.split(',')) {
        let (key, direction) = key.split_once(':').unwrap_or((key, "desc"));
        order.push((key.to_owned(), direction == "desc"));
    }
    order.retain(|(key, _)| key != "created_at");
    page::sort(&mut images, &order);
    let most = if asked.query("limit").is_some() { world.settings.page_limit } else { 25 };
    let page = page::cut(asked, images, most)?;
    let rows: Vec<Value> = page.objects.iter().map(|image| shown(image)).collect();
    let mut body = json!({"images": rows, "schema": "/v2/schemas/images", "first": "/v2/images"});
    if let Some(next) = page.next {
        // Glance's links are relative.
        body["next"] = json!(next.split_once("/image").map_or(next.as_str(), |(_, path)| path));
    }
    Ok(Answer::ok(body))
}

/// Whether a list shows an image that another project shares: by default only after the caller's project accepted it.
fn taken(asked: &ApiRequest, image: &Object) -> bool {
    let wanted = asked.query("member_status").unwrap_or("accepted");
    let said = status(image, &asked.caller.project);
    said.is_none_or(|said| wanted == "all" || wanted == said)
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
        "limit" | "marker" | "sort" | "sort_key" | "sort_dir" | "os_hidden" | "member_status" => {
            true
        }
        "tag" => image.list("tags").iter().any(|tag| tag == value),
        "visibility" if value == "all" => true,
        "size_min" => value.parse().is_ok_and(|least: i64| image.number("size") >= least),
        "size_max" => value.parse().is_ok_and(|most: i64| image.number("size") <= most),
        _ => match value.strip_prefix("in:") {
            Some(many) => {
                many.split(',').any(|one| page::equals(image.body.get(key), one.trim_matches('"')))
            }
            None => page::equals(image.body.get(key), value),
        },
    }
}

pub(super) fn show(world: &World, _: &ApiRequest, id: &str) -> AnswerResult {
    let image = world.store.get(Kind::Image, id).ok_or_else(|| missing(id))?;
    Ok(Answer::ok(shown(image)))
}

/// Answers `PATCH /images/{id}`: RFC 6902 on top-level fields.
pub(super) fn patch(world: &mut World, asked: &ApiRequest, id: &str) -> AnswerResult {
    let operations = asked.json()?;
    let image = world.store.get_mut(Kind::Image, id).ok_or_else(|| missing(id))?;
    for operation in operations
        .as_array()
        .ok_or_else(|| ApiError::bad("Request body must be a JSON array of operation objects."))?
    {
        let path =
            operation["path"].as_str().and_then(|path| path.strip_prefix('/')).unwrap_or_default();
        let path = path.replace("~1", "/").replace("~0", "~");
        if is_read_only(&path) {
            return Err(ApiError::forbidden(format!("Attribute '{path}' is read-only.")));
        }
        check(asked, &path, &operation["value"])?;
        let there = image.body.contains_key(&path);
        match operation["op"].as_str() {
            Some("add") => image.set(&path, operation["value"].clone()),
            Some("replace") if there => image.set(&path, operation["value"].clone()),
            Some("remove") if there => {
                image.body.remove(&path);
            }
            Some("replace" | "remove") => {
                return Err(ApiError::conflict(format!("Property {path} does not exist.")));
            }
            _ => return Err(ApiError::bad("Operations must be one of add, remove, replace.")),
        }
    }
    image.set("updated_at", stamp());
    Ok(Answer::ok(shown(image)))
}

pub(super) fn delete(world: &mut World, id: &str) -> AnswerResult {
    let image = world.store.get(Kind::Image, id).ok_or_else(|| missing(id))?;
    if image.is("protected") {
        return Err(ApiError::forbidden(format!("Image {id} is protected and cannot be deleted.")));
    }
    world.store.remove(Kind::Image, id);
    world.image_bytes.remove(id);
    Ok(Answer::empty(204))
}

pub(super) fn tag(world: &mut World, id: &str, tag: &str, add: bool) -> AnswerResult {
    let image = world.store.get_mut(Kind::Image, id).ok_or_else(|| missing(id))?;
    let mut tags = image.list("tags").to_vec();
    let there = tags.iter().any(|one| one == tag);
    if !add && !there {
        return Err(ApiError::missing(format!("Tag {tag} not found on image {id}")));
    }
    tags.retain(|one| one != tag);
    if add {
        tags.push(json!(tag));
    }
    image.set("tags", tags);
    Ok(Answer::empty(204))
}

/// Creates an image that exists from the start.
pub(crate) fn plant(world: &mut World, project: &str, name: &str, properties: Value) -> String {
    let mut body = blank(project);
    let fixed = json!({"name": name, "status": "active", "visibility": "public", "disk_format": "qcow2", "container_format": "bare", "size": 1 << 20});
    for (key, value) in
        fixed.as_object().into_iter().flatten().chain(properties.as_object().into_iter().flatten())
    {
        body[key] = value.clone();
    }
    world.add(Kind::Image, project, body)
}

/// Creates the record of an image of a server, in status `queued`.
pub(crate) fn snapshot(world: &mut World, project: &str, name: &str, properties: Value) -> String {
    let mut body = blank(project);
    for (key, value) in properties.as_object().into_iter().flatten() {
        body[key] = value.clone();
    }
    body["name"] = json!(name);
    body["visibility"] = json!("private");
    body["disk_format"] = json!("qcow2");
    body["container_format"] = json!("bare");
    world.add(Kind::Image, project, body)
}
