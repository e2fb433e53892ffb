//! `/v1/nodes/{node}/management`: the boot device of a machine, and its non-maskable interrupt (NMI).

use axum::response::Response;
use baremetal_core::check_idle;
use hardware::{BootDevice, BootOverride, Persistence};
use http::StatusCode;
use openstack_api::{JsonShape, PathParam, Query, Route, Routes, json, json_field};
use serde::{Deserialize, Serialize};
use utoipa::{PartialSchema, ToSchema};

use crate::app::App;
use crate::error::Error;
use crate::parameters::{Given, Parameters, boolean};
use crate::request::{Request, forced};
use crate::{microversion, rule};

pub(crate) fn routes() -> Routes<App> {
    let shown = JsonShape::object([
        ("boot_device", JsonShape::text().or_null()),
        ("persistent", JsonShape::boolean().or_null()),
    ]);
    let device = [
        Route::get("Show the boot device", show)
            .with_rule(rule::SET_DRIVER)
            .returns(shown)
            .refuses([StatusCode::BAD_GATEWAY]),
        Route::put("Set the boot device", set)
            .with_rule(rule::SET_DRIVER)
            .reads_if_sent(Body::schema())
            .query_parameters(Body::IN_QUERY.iter().copied())
            .answers(StatusCode::NO_CONTENT)
            .refuses([StatusCode::BAD_GATEWAY]),
    ];
    let supported = Route::get("List supported boot devices", supported)
        .with_rule(rule::SET_DRIVER)
        .returns(JsonShape::object([(
            "supported_boot_devices",
            JsonShape::list(JsonShape::text()),
        )]))
        .refuses([StatusCode::BAD_GATEWAY]);
    let nmi = Route::put("Inject an NMI", inject_nmi)
        .with_rule(rule::SET_DRIVER)
        .query_parameters(["force"])
        .answers(StatusCode::NO_CONTENT)
        .refuses([StatusCode::CONFLICT, StatusCode::BAD_GATEWAY]);
    Routes::new("management")
        .at("/v1/nodes/{node}/management/boot_device", device)
        .at("/v1/nodes/{node}/management/boot_device/supported", [supported])
        .at("/v1/nodes/{node}/management/inject_nmi", [nmi.since(microversion::INJECT_NMI)])
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Body {
    #[schema(value_type = String, example = "pxe")]
    boot_device: BootDevice,
    #[serde(default, deserialize_with = "boolean")]
    persistent: bool,
}

impl Parameters for Body {
    const IN_QUERY: &'static [&'static str] = &["boot_device", "persistent"];
}

/// `GET /v1/nodes/{node}/management/boot_device`: reads the boot device from the BMC.
async fn show(request: Request, PathParam(ident): PathParam<String>) -> Result<Response, Error> {
    #[derive(Serialize)]
    struct Shown {
        boot_device: Option<BootDevice>,
        persistent: Option<bool>,
    }
    let node = request.node(&ident).await?;
    let imposed = request.app.conductor.boot_device(&node).await?;
    let shown = Shown {
        boot_device: imposed.map(|imposed| imposed.device),
        persistent: imposed.map(|imposed| imposed.persistence == Persistence::Continuous),
    };
    Ok(json(StatusCode::OK, &shown))
}

/// `PUT /v1/nodes/{node}/management/boot_device`: sets the boot device before the answer is sent.
async fn set(
    request: Request,
    PathParam(ident): PathParam<String>,
    Given(body): Given<Body>,
) -> Result<StatusCode, Error> {
    let node = request.node(&ident).await?;
    check_idle(&node)?;
    let persistence = if body.persistent { Persistence::Continuous } else { Persistence::Once };
    let wanted = BootOverride { device: body.boot_device, persistence, mode: node.boot_mode };
    request.app.conductor.set_boot_device(&node, wanted).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `GET /v1/nodes/{node}/management/boot_device/supported`: lists the boot devices that can be set.
async fn supported(
    request: Request,
    PathParam(ident): PathParam<String>,
) -> Result<Response, Error> {
    let node = request.node(&ident).await?;
    let supported_boot_devices = request.app.conductor.supported_boot_devices(&node).await?;
    Ok(json_field(StatusCode::OK, "supported_boot_devices", &supported_boot_devices))
}

/// `PUT /v1/nodes/{node}/management/inject_nmi`: sends the interrupt before the answer is sent. A compute host is not drained first, because a
/// machine that hangs cannot be; the request is refused if a cluster would lose its quorum.
async fn inject_nmi(
    request: Request,
    PathParam(ident): PathParam<String>,
    mut query: Query,
) -> Result<StatusCode, Error> {
    let forced = forced(&mut query);
    query.finish()?;
    let node = request.node(&ident).await?;
    check_idle(&node)?;
    request.check_quorum(&node, &forced).await?;
    request.app.conductor.inject_nmi(&node).await?;
    Ok(StatusCode::NO_CONTENT)
}
