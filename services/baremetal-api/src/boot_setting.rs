//! `/v1/nodes/{node}/states/boot_mode` and `secure_boot`: request changes of how the firmware boots.

use axum::response::Response;
use baremetal_core::request_boot_setting;
use hardware::{BootMode, BootSetting};
use http::StatusCode;
use openstack_api::{ApiError, Hidden, Origin, PathParam, Route, Routes, StrictJson, accepted_at};
use serde::Deserialize;
use serde_json::Value;
use utoipa::{PartialSchema, ToSchema};

use crate::app::App;
use crate::error::Result;
use crate::request::Request;
use crate::value::boolean;
use crate::{microversion, rule};

pub(crate) fn routes() -> Routes<App> {
    let complete = |route: Route<App>| {
        route
            .hidden_before(microversion::SET_BOOT_MODE, Hidden::ResourceAfterRule)
            .with_rule(rule::USE)
            .answers(StatusCode::ACCEPTED)
            .tells_nothing()
    };
    let mode = Route::put("Request a change of the boot mode", set_mode).reads(Mode::schema());
    let secure =
        Route::put("Request a change of secure boot", set_secure).reads(SecureBoot::schema());
    Routes::new("states")
        .at("/v1/nodes/{node}/states/boot_mode", [complete(mode)])
        .at("/v1/nodes/{node}/states/secure_boot", [complete(secure)])
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Mode {
    #[schema(value_type = String, example = "uefi")]
    target: BootMode,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SecureBoot {
    #[schema(value_type = bool)]
    target: Value,
}

/// `PUT /v1/nodes/{node}/states/boot_mode`: requests a boot mode.
async fn set_mode(
    request: Request,
    origin: Origin,
    PathParam(ident): PathParam<String>,
    StrictJson(body): StrictJson<Mode>,
) -> Result<Response> {
    set(&request, &origin, &ident, BootSetting::Mode(body.target)).await
}

/// `PUT /v1/nodes/{node}/states/secure_boot`: requests that secure boot is switched on or off.
async fn set_secure(
    request: Request,
    origin: Origin,
    PathParam(ident): PathParam<String>,
    StrictJson(body): StrictJson<SecureBoot>,
) -> Result<Response> {
    let on = boolean("target", body.target)?;
    let on = on.ok_or_else(|| ApiError::bad_field("target", "must be true or false"))?;
    set(&request, &origin, &ident, BootSetting::SecureBoot(on)).await
}

async fn set(
    request: &Request,
    origin: &Origin,
    ident: &str,
    wanted: BootSetting,
) -> Result<Response> {
    let node = request
        .change(ident, |node| {
            let (node, entry) = request_boot_setting(node, wanted, (request.app.clock)())?;
            Ok((node, Some(entry)))
        })
        .await?;
    request.app.conductor.wake(node.id);
    Ok(accepted_at(StatusCode::ACCEPTED, &format!("{origin}/v1/nodes/{ident}/states")))
}
