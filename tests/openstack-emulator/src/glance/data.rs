//! The data of images: upload, staging, import, download.

use bytes::Bytes;
use serde_json::{Value, json};

use super::types::{self as refuse, IMAGE};
use crate::object::{Kind, Object, ReadFields};
use crate::request::{Answer, ApiAnswer, ApiRequest, ApiResult};
use crate::world::{BackgroundTask, World, stamp};

/// The size and checksum that the reader of the request computed.
fn measured(asked: &ApiRequest) -> (i64, String) {
    let size = asked.header("x-emulator-size").and_then(|size| size.parse().ok());
    let hash = asked.header("x-emulator-sha512").unwrap_or_default();
    (size.unwrap_or_default(), hash.to_owned())
}

/// The image, if its status allows the next one.
fn in_state<'w>(world: &'w World, id: &str, wanted: &str, next: &str) -> ApiResult<&'w Object> {
    let image = world.store.get(Kind::Image, id).ok_or_else(|| IMAGE.missing(id))?;
    if image.text("disk_format").is_empty() || image.text("container_format").is_empty() {
        return Err(refuse::formats_needed());
    }
    match image.text("status") {
        status if status == wanted => Ok(image),
        status => Err(refuse::wrong_status(status, next)),
    }
}

pub(super) fn upload(world: &mut World, asked: &ApiRequest, id: &str) -> ApiResult {
    in_state(world, id, "queued", "saving")?;
    let (size, hash) = measured(asked);
    arrived(world, id, size, hash, asked.body.clone());
    Ok(())
}

pub(super) fn stage(world: &mut World, asked: &ApiRequest, id: &str) -> ApiResult {
    in_state(world, id, "queued", "uploading")?;
    let (size, hash) = measured(asked);
    world.image_bytes.insert(id.to_owned(), asked.body.clone());
    world.store.set(Kind::Image, id, "status", "uploading");
    world.store.keep(Kind::Image, id, "staged", json!([size, hash]));
    Ok(())
}

pub(super) fn import(world: &mut World, asked: &ApiRequest, id: &str) -> ApiResult {
    let given = asked.json()?;
    let method = &given["method"];
    match method.text("name") {
        "web-download" => {
            in_state(world, id, "queued", "importing")?;
            let url = method["uri"].as_str().ok_or_else(refuse::uri_needed)?;
            let parsed = url::Url::parse(url).ok();
            if !parsed.is_some_and(|url| ["http", "https"].contains(&url.scheme())) {
                return Err(refuse::bad_uri(url));
            }
            world.records.fetches.insert(id.to_owned(), url.to_owned());
            world.start(BackgroundTask::Fetch { image: id.to_owned(), url: url.to_owned() });
        }
        "glance-direct" => {
            let image = in_state(world, id, "uploading", "importing")?;
            let staged = image.hidden.list("staged");
            let size = staged.first().and_then(Value::as_i64).unwrap_or_default();
            let hash = staged.last().and_then(Value::as_str).unwrap_or_default();
            let fields = ready(size, hash.to_owned());
            let delay = world.settings.times.image_import;
            world.fated(Kind::Image, id, delay, fields, vec![("status", json!("killed"))]);
        }
        other => return Err(refuse::bad_method(other)),
    }
    world.store.set(Kind::Image, id, "status", "importing");
    Ok(())
}

fn ready(size: i64, hash: String) -> Vec<(&'static str, Value)> {
    vec![
        ("status", json!("active")),
        ("size", json!(size)),
        ("os_hash_algo", json!("sha512")),
        ("os_hash_value", json!(hash)),
        ("updated_at", json!(stamp())),
    ]
}

/// Stores the data of an image and makes the image active.
pub(crate) fn arrived(world: &mut World, id: &str, size: i64, hash: String, bytes: Bytes) {
    let Some(image) = world.store.get_mut(Kind::Image, id) else { return };
    for (field, value) in ready(size, hash) {
        image.set(field, value);
    }
    world.image_bytes.insert(id.to_owned(), bytes);
}

/// Puts an image whose data could not be fetched back into `queued`, as Glance does, so that the client can try again.
pub(crate) fn failed(world: &mut World, id: &str, why: &str) {
    world.store.set(Kind::Image, id, "status", "queued");
    world.store.keep(Kind::Image, id, "import_failure", why);
}

pub(super) fn download(world: &World, image: &Object) -> ApiAnswer {
    if image.text("status") != "active" {
        return Ok(Answer::empty(204));
    }
    let body = world.image_bytes.get(&image.id).cloned().unwrap_or_default();
    if i64::try_from(body.len()).ok() != Some(image.number("size")) {
        return Err(refuse::not_kept());
    }
    let headers = vec![("content-type", "application/octet-stream".to_owned())];
    Ok(Answer { status: 200, headers, body })
}
