//! `POST /bedplate/v1/machines/{machine}/console`: a URL of the VM's console.

use axum::response::Response;
use cluster_conductor::ConsoleKind as Kind;
use http::HeaderValue;
use http::StatusCode;
use http::header::CACHE_CONTROL;
use openstack_api::{JsonShape, PathParam, RequiredAccess, Route, Routes, StrictJson, json};
use serde::Serialize;
use utoipa::PartialSchema;

use super::body::{ConsoleAsked, ConsoleKind};
use crate::app::App;
use crate::error::Result;
use crate::request::Request;

pub(super) fn routes() -> Routes<App> {
    // Everyone with the URL controls the VM, so a reader may not get one.
    let console = Route::post("Get the URL of a VM's console", console)
        .reads_if_sent(ConsoleAsked::schema())
        .needs(RequiredAccess::Change)
        .returns(JsonShape::object([("kind", JsonShape::text()), ("url", JsonShape::text())]))
        .refuses([StatusCode::CONFLICT, StatusCode::SERVICE_UNAVAILABLE]);
    Routes::new("machines").at("/bedplate/v1/machines/{machine}/console", [console])
}

/// Responds with a URL that gives control of the VM for some minutes, and stores the URL nowhere.
async fn console(
    request: Request,
    PathParam(ident): PathParam<String>,
    body: Option<StrictJson<ConsoleAsked>>,
) -> Result<Response> {
    #[derive(Serialize)]
    struct Body {
        kind: &'static str,
        url: String,
    }
    let asked = body.map(|StrictJson(body)| body).unwrap_or_default();
    let vm = request.machine(&ident).await?;
    let (word, kind) = match asked.kind {
        ConsoleKind::Novnc => ("novnc", Kind::NoVnc),
        ConsoleKind::Serial => ("serial", Kind::Serial),
    };
    let url = request.app.conductor.console(&vm, kind).await?;
    let mut answer = json(StatusCode::OK, &Body { kind: word, url: url.to_string() });
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(answer)
}
