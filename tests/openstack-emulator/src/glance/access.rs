//! The access to images: the callers who may see an image, and the form in which it is shown.

use serde_json::{Value, json};

use crate::object::Object;
use crate::problem::ApiError;
use crate::request::ApiRequest;

/// Whether a project has accepted a shared image. `None` if the image is not shared with the project.
pub(super) fn status<'i>(image: &'i Object, project: &str) -> Option<&'i str> {
    let members = image.hidden.get("members").and_then(Value::as_array)?;
    let own = members.iter().find(|member| member["member_id"] == project)?;
    own["status"].as_str().filter(|_| image.text("visibility") == "shared")
}

pub(super) fn missing(id: &str) -> ApiError {
    ApiError::missing(format!("No image found with ID {id}"))
}

pub(super) fn sees(asked: &ApiRequest, image: &Object) -> bool {
    asked.sees(&image.project)
        || ["public", "community"].contains(&image.text("visibility"))
        || status(image, &asked.caller.project).is_some()
}

/// An image with its links.
pub(super) fn shown(image: &Object) -> Value {
    let mut body = image.shown();
    body["self"] = json!(format!("/v2/images/{}", image.id));
    body["file"] = json!(format!("/v2/images/{}/file", image.id));
    body["schema"] = json!("/v2/schemas/image");
    body
}
