//! The data of images: upload, staging, import, download.

use bytes::Bytes;
use serde_json::{Value, json};

use super::access::missing;
use crate::object::Kind;
use crate::problem::ApiError;
use crate::request::{Answer, AnswerResult, ApiRequest};
use crate::world::{BackgroundTask, World, stamp};

/// The size and checksum that the reader of the request computed.
fn measured(asked: &ApiRequest) -> (i64, String) {
    let size =
        asked.header("x-emulator-size").and_then(|size| size.parse().ok()).unwrap_or_default();
    (size, asked.header("x-emulator-sha512").unwrap_or_default().to_owned())
}

fn in_state(world: &World, id: &str, wanted: &str, next: &str) -> Result<(), ApiError> {
    let image = world.store.get(Kind::Image, id).ok_or_else(|| missing(id))?;
    if image.text("disk_format").is_empty() || image.text("container_format").is_empty() {
        return Err(ApiError::bad(
            "Properties disk_format, container_format must be set prior to saving data.",
        ));
    }
    if image.text("status") != wanted {
        return Err(ApiError::conflict(format!(
            "Image status transition from {} to {next} is not allowed",
            image.text("status")
        )));
    }
    Ok(())
}

pub(super) fn upload(world: &mut World, asked: &ApiRequest, id: &str) -> AnswerResult {
    in_state(world, id, "queued", "saving")?;
    let (size, hash) = measured(asked);
    arrived(world, id, size, hash, asked.body.clone());
    Ok(Answer::empty(204))
}

pub(super) fn stage(world: &mut World, asked: &ApiRequest, id: &str) -> AnswerResult {
    in_state(world, id, "queued", "uploading")?;
    let (size, hash) = measured(asked);
    world.image_bytes.insert(id.to_owned(), asked.body.clone());
    if let Some(image) = world.store.get_mut(Kind::Image, id) {
        image.set("status", "uploading");
        image.keep("staged", json!([size, hash]));
    }
    Ok(Answer::empty(204))
}

pub(super) fn import(world: &mut World, asked: &ApiRequest, id: &str) -> AnswerResult {
    let given = asked.json()?;
    let method = &given["method"];
    match method["name"].as_str() {
        Some("web-download") => {
            in_state(world, id, "queued", "importing")?;
            let url = method["uri"].as_str().ok_or_else(|| {
                ApiError::bad("URI is required if import method is 'web-download'")
            })?;
            let parsed = url::Url::parse(url).ok();
            if !parsed.is_some_and(|url| ["http", "https"].contains(&url.scheme())) {
                return Err(ApiError::bad(format!(
                    "URI for web-download does not pass filtering: {url}"
                )));
            }
            world.fetches.insert(id.to_owned(), url.to_owned());
            world.start(BackgroundTask::Fetch { image: id.to_owned(), url: url.to_owned() });
        }
        Some("glance-direct") => {
            in_state(world, id, "uploading", "importing")?;
            let image = world.store.get(Kind::Image, id).ok_or_else(|| missing(id))?;
            let staged = image.hidden.get("staged").cloned().unwrap_or_default();
            let fields = ready(
                staged[0].as_i64().unwrap_or_default(),
                staged[1].as_str().unwrap_or_default().to_owned(),
            );
            let delay = world.settings.times.image_import;
            world.fated(Kind::Image, id, delay, fields, vec![("status", json!("killed"))]);
        }
        other => {
            return Err(ApiError::bad(format!(
                "Unknown import method name '{}'.",
                other.unwrap_or_default()
            )));
        }
    }
    if let Some(image) = world.store.get_mut(Kind::Image, id) {
        image.set("status", "importing");
    }
    Ok(Answer::empty(202))
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
    if let Some(image) = world.store.get_mut(Kind::Image, id) {
        image.set("status", "queued");
        image.keep("import_failure", why);
    }
}

pub(super) fn download(world: &World, id: &str) -> AnswerResult {
    let image = world.store.get(Kind::Image, id).ok_or_else(|| missing(id))?;
    if image.text("status") != "active" {
        return Ok(Answer::empty(204));
    }
    let bytes = world.image_bytes.get(id).cloned().unwrap_or_default();
    let kept = i64::try_from(bytes.len()).ok() == Some(image.number("size"));
    if !kept {
        return Err(ApiError::new(
            410,
            "",
            "The emulator keeps no bytes of an image as large as this one.",
        ));
    }
    let headers = vec![("content-type", "application/octet-stream".to_owned())];
    Ok(Answer { status: 200, headers, body: bytes })
}
