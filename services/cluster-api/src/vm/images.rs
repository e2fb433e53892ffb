//! `GET /bedplate/v1/images`: the images that VMs can boot.

use axum::response::Response;
use http::StatusCode;
use openstack_api::{JsonShape, Route, Routes, Rule, json_field};
use serde::Serialize;

use crate::app::App;
use crate::error::Result;
use crate::request::Request;

pub(super) fn routes() -> Routes<App> {
    let list = Route::get("List the images that VMs can boot", list)
        .with_rule(Rule::ANY_READER)
        .returns(JsonShape::object([("images", JsonShape::list(shape()))]))
        .refuses([StatusCode::SERVICE_UNAVAILABLE]);
    Routes::new("images").at("/bedplate/v1/images", [list])
}

fn shape() -> JsonShape {
    JsonShape::object([
        ("id", JsonShape::text()),
        ("name", JsonShape::text()),
        ("user_data_format", JsonShape::text()),
        ("min_ram_mib", JsonShape::integer()),
        ("min_disk_gib", JsonShape::integer()),
    ])
}

/// Lists the images that the operator offers. Snapshots of VMs are listed under `/bedplate/v1/snapshots`.
async fn list(request: Request) -> Result<Response> {
    #[derive(Serialize)]
    struct Shown {
        id: String,
        name: String,
        user_data_format: &'static str,
        min_ram_mib: u64,
        min_disk_gib: u64,
    }
    let offered = request.app.conductor.offered_images(request.project()?).await?;
    let shown = offered.into_iter().map(|image| Shown {
        id: image.id,
        name: image.name,
        user_data_format: image.user_data_format.as_str(),
        min_ram_mib: image.min_ram_mib,
        min_disk_gib: image.min_disk_gib,
    });
    Ok(json_field(StatusCode::OK, "images", &shown.collect::<Vec<_>>()))
}
