//! `/v1/nodes/{node}/vmedia`: the virtual CD drive of a machine.

use axum::response::Response;
use baremetal_core::check_idle;
use http::StatusCode;
use openstack_api::{
    ApiError, Hidden, JsonShape, PathParam, Query, Route, Routes, Shaped, StrictJson, json, shaped,
};
use serde::{Deserialize, Serialize};
use url::Url;
use utoipa::{PartialSchema, ToSchema};

use crate::app::App;
use crate::error::Result;
use crate::request::Request;
use crate::{microversion as since, rule};

/// The device types of Ironic. The service supports the first one only.
const DEVICES: [&str; 3] = ["cdrom", "disk", "floppy"];

pub(crate) fn routes() -> Routes<App> {
    let show = Route::get("Show the virtual CD drive", show)
        .with_rule(rule::READ)
        .refuses([StatusCode::BAD_GATEWAY])
        .returns(JsonShape::list(Drive::shape()))
        .hidden_before(since::SHOW_VIRTUAL_MEDIA, Hidden::Resource);
    let attach = Route::post("Insert an image into the virtual CD drive", attach)
        .with_rule(rule::USE)
        .reads(Body::schema())
        .refuses([StatusCode::BAD_GATEWAY])
        .answers(StatusCode::NO_CONTENT)
        .hidden_before(since::VIRTUAL_MEDIA, Hidden::Path);
    let detach = Route::delete("Empty the virtual CD drive", detach)
        .with_rule(rule::USE)
        .query_parameters(["device_types"])
        .refuses([StatusCode::BAD_GATEWAY])
        .answers(StatusCode::NO_CONTENT)
        .hidden_before(since::VIRTUAL_MEDIA, Hidden::Path);
    Routes::new("nodes").at("/v1/nodes/{node}/vmedia", [show, attach, detach])
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Body {
    /// `cdrom`, the only supported device.
    #[schema(example = "cdrom")]
    device_type: String,
    /// An `http` or `https` URL, from which the BMC reads the image.
    image_url: String,
    /// `http`, the default: the BMC reads the image from its URL.
    #[serde(default)]
    image_download_source: Option<String>,
}

shaped! {
    /// A virtual drive in the form that clients see.
    #[derive(Serialize)]
    struct Drive {
        media_types: Vec<String>,
        inserted: bool,
        image: Option<String>,
    }
}

/// `GET /v1/nodes/{node}/vmedia`: reads the drive from the BMC.
async fn show(request: Request, PathParam(ident): PathParam<String>) -> Result<Response> {
    let node = request.node(&ident).await?;
    let bmc::VirtualDrive { media_types, inserted, image } =
        request.app.conductor.virtual_drive(&node).await?;
    Ok(json(StatusCode::OK, &[Drive { media_types, inserted, image }]))
}

/// `POST /v1/nodes/{node}/vmedia`: inserts the image before the answer is sent.
async fn attach(
    request: Request,
    PathParam(ident): PathParam<String>,
    StrictJson(body): StrictJson<Body>,
) -> Result<StatusCode> {
    check_device("device_type", &body.device_type)?;
    if body.image_download_source.as_deref().is_some_and(|source| source != "http") {
        let problem = "must be http: the BMC reads the image from its URL";
        return Err(ApiError::bad_field("image_download_source", problem).into());
    }
    let wrong = |problem: &str| ApiError::bad_field("image_url", problem);
    let url = Url::parse(&body.image_url).map_err(|_| wrong("is not a URL"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(wrong("must be an http or https URL with a host").into());
    }
    // The URL is shown by the API and by the BMC.
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("must not contain a user name or a password").into());
    }
    let node = request.node(&ident).await?;
    check_idle(&node)?;
    request.app.conductor.check_medium_host(&url)?;
    request.app.conductor.insert_medium(&node, &url).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `DELETE /v1/nodes/{node}/vmedia`: ejects the image before the answer is sent.
async fn detach(
    request: Request,
    PathParam(ident): PathParam<String>,
    mut query: Query,
) -> Result<StatusCode> {
    let devices = query.take("device_types").unwrap_or_default();
    query.finish()?;
    for device in devices.split(',').filter(|device| !device.is_empty()) {
        check_device("device_types", device)?;
    }
    let node = request.node(&ident).await?;
    check_idle(&node)?;
    request.app.conductor.eject_medium(&node).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Refuses a device that is no CD drive.
fn check_device(field: &str, device: &str) -> Result<(), ApiError> {
    match device {
        "cdrom" => Ok(()),
        _ if DEVICES.contains(&device) => {
            Err(ApiError::bad_field(field, format!("{device} is not supported; use cdrom")))
        }
        _ => Err(ApiError::bad_field(field, "must be cdrom, disk or floppy")),
    }
}
