//! `/v1/nodes/{node}/states/power`: requests a change of power.

use std::num::NonZeroU32;
use std::time::Duration;

use axum::response::Response;
use baremetal_core::{AfterDrain, Node, power_change_stops_servers, request_power};
use hardware::PowerChange;
use http::StatusCode;
use openstack_api::{Origin, PathParam, Query, Route, Routes, accepted_at};
use serde::Deserialize;
use utoipa::{PartialSchema, ToSchema};

use crate::app::App;
use crate::error::Result;
use crate::parameters::{Given, Parameters};
use crate::request::{Request, forced};
use crate::{microversion, rule};

pub(crate) fn routes() -> Routes<App> {
    let power = Route::put("Change the power state", request)
        .only_records()
        .with_rule(rule::USE)
        .reads_if_sent(Body::schema())
        .query_parameters(["force"])
        .query_parameters(Body::IN_QUERY.iter().copied())
        .refuses([StatusCode::CONFLICT])
        .answers(StatusCode::ACCEPTED)
        .tells_nothing();
    Routes::new("states").at("/v1/nodes/{node}/states/power", [power])
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Body {
    #[schema(inline)]
    target: Target,
    /// The timeout of the change, in seconds.
    #[serde(default)]
    #[schema(value_type = Option<u32>, minimum = 1)]
    timeout: Option<NonZeroU32>,
}

impl Parameters for Body {
    const IN_QUERY: &'static [&'static str] = &["target"];
}

#[derive(Clone, Copy, Deserialize, PartialEq, ToSchema)]
enum Target {
    #[serde(rename = "power on")]
    On,
    #[serde(rename = "power off")]
    Off,
    #[serde(rename = "rebooting", alias = "reboot")]
    Reboot,
    #[serde(rename = "soft power off")]
    SoftOff,
    #[serde(rename = "soft rebooting", alias = "soft reboot")]
    SoftReboot,
}

impl From<Target> for PowerChange {
    fn from(target: Target) -> PowerChange {
        match target {
            Target::On => PowerChange::On,
            Target::Off => PowerChange::ForceOff,
            Target::Reboot => PowerChange::ForceRestart,
            Target::SoftOff => PowerChange::SoftOff,
            Target::SoftReboot => PowerChange::SoftRestart,
        }
    }
}

/// `PUT /v1/nodes/{node}/states/power`: requests a change of power.
///
/// Only records the request; the conductor carries it out. If the node is a compute host, the conductor has it drained first; so before the
/// request is recorded, clusterd is asked whether it would refuse the drain.
async fn request(
    request: Request,
    origin: Origin,
    PathParam(ident): PathParam<String>,
    mut query: Query,
    Given(body): Given<Body>,
) -> Result<Response> {
    if matches!(body.target, Target::SoftOff | Target::SoftReboot) {
        request.asked.need(microversion::SOFT_POWER, "target")?;
    }
    if body.timeout.is_some() {
        request.asked.need(microversion::SOFT_POWER, "timeout")?;
    }
    let given = body.timeout.map(|seconds| Duration::from_secs(u64::from(seconds.get())));
    let timeout = given.unwrap_or(request.app.settings.power_timeout);
    let change = PowerChange::from(body.target);
    let forced = forced(&mut query);
    Body::finish(query)?;
    let decide = |node: &Node| {
        let changed = request_power(node, change, (request.app.clock)() + timeout)?;
        let then = AfterDrain::Power { change, timeout };
        let left = power_change_stops_servers(change)
            .then(|| request.with_drain_request(node, then, None, &forced));
        Ok(left.flatten().map_or((changed, None), |(left, entry)| (left, Some(entry))))
    };
    if power_change_stops_servers(change) {
        let node = request.node(&ident).await?;
        decide(&node)?;
        request.check_leave(&node, &forced).await?;
    }
    let node = request.change(&ident, decide).await?;
    request.app.conductor.wake(node.id);
    let url = format!("{origin}/v1/nodes/{ident}/states");
    Ok(accepted_at(StatusCode::ACCEPTED, &url))
}
