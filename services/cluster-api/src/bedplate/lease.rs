//! `/bedplate/v1/clusters/{cluster}/lease`: shows and extends the lease of a cluster, and undoes its end.

use axum::response::Response;
use cluster_core::{Cluster, ClusterLease, Owner, extend_lease, lease_due, undo_lease};
use cluster_store::ClusterChange;
use http::StatusCode;
use jiff::Timestamp;
use lease::{LeaseSchedule, Length, MailAddress, Terms};
use openstack_api::{
    ApiError, JsonShape, PathParam, Route, Routes, Shaped, StrictJson, Time, json, shaped,
};
use serde::{Deserialize, Serialize};
use utoipa::openapi::schema::{AdditionalProperties, SchemaType, Type};
use utoipa::openapi::{ObjectBuilder, RefOr, Schema};

use crate::app::App;
use crate::error::Result;
use crate::lease_stage::NextStage;
use crate::request::Request;

/// Returns the routes of cluster leases.
pub(crate) fn routes() -> Routes<App> {
    Routes::new("bedplate")
        .at(
            "/bedplate/v1/clusters/{cluster}/lease",
            [
                Route::get("Show the lease of a cluster", show).returns(answered()),
                Route::put("Extend the lease of a cluster", extend)
                    .reads(schema())
                    .returns(answered())
                    .refuses([StatusCode::CONFLICT]),
            ],
        )
        .at(
            "/bedplate/v1/clusters/{cluster}/lease/undo",
            [Route::post("Undo the end of a cluster's lease", undo)
                .reads(schema())
                .returns(answered())
                .refuses([StatusCode::CONFLICT])],
        )
}

/// The response schema of the next stage of a lease.
fn next_stage() -> JsonShape {
    let steps = ["warn", "shut_off", "keep_copy", "warn_of_deletion", "delete"];
    JsonShape::object([("step", JsonShape::enumeration(steps)), ("at", JsonShape::text())])
}

/// The response schema of a cluster with its lease.
fn answered() -> JsonShape {
    JsonShape::object([
        ("uuid", JsonShape::text()),
        ("name", JsonShape::text()),
        ("lease", Shown::shape().or_null()),
    ])
}

/// The requested duration: `for` from now, or `until` a time; the default duration if both are missing.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Extension {
    #[serde(rename = "for")]
    length: Option<Length>,
    until: Option<Timestamp>,
}

fn schema() -> RefOr<Schema> {
    let text = || ObjectBuilder::new().schema_type(SchemaType::Type(Type::String));
    let object = ObjectBuilder::new().property("for", text()).property("until", text());
    Schema::from(object.additional_properties(Some(AdditionalProperties::FreeForm(false))).build())
        .into()
}

impl Extension {
    /// The requested end of the lease; `None` if the request names none.
    fn until(&self, now: Timestamp) -> Result<Option<Timestamp>, ApiError> {
        match (self.length, self.until) {
            (Some(_), Some(_)) => {
                Err(ApiError::bad_field("for", "set either for or until, not both"))
            }
            (Some(length), None) => {
                let until = now.saturating_add(length.as_duration()).unwrap_or(Timestamp::MAX);
                Ok(Some(until))
            }
            (None, until) => Ok(until),
        }
    }
}

shaped! {
    #[derive(Serialize)]
    pub(crate) struct Shown<'a> {
        granted_at: Time,
        since: Time,
        until: Time,
        ended_at: Option<Time>,
        deleted_at: Option<Time>,
        notify: Option<&'a MailAddress> = JsonShape::text().or_null(),
        next: Option<NextStage> = next_stage().or_null(),
    }
}

impl<'a> Shown<'a> {
    pub(crate) fn of(
        cluster: &'a Cluster,
        schedule: &LeaseSchedule,
        now: Timestamp,
    ) -> Option<Shown<'a>> {
        let ClusterLease { lease, notify } = cluster.lending.as_ref()?;
        Some(Shown {
            granted_at: Time(lease.granted_at),
            since: Time(lease.since),
            until: Time(lease.until),
            ended_at: Time::some(lease.taken.ended_at),
            deleted_at: Time::some(lease.taken.deleted_at),
            notify: notify.as_ref(),
            next: NextStage::of(|at| lease_due(cluster, schedule, at), now),
        })
    }
}

fn answer(app: &App, cluster: &Cluster) -> Response {
    #[derive(Serialize)]
    struct Body<'a> {
        uuid: String,
        name: &'a str,
        lease: Option<Shown<'a>>,
    }
    let lease = Shown::of(cluster, &app.settings.schedule, (app.clock)());
    let (uuid, name) = (cluster.id.to_string(), cluster.name.as_str());
    json(StatusCode::OK, &Body { uuid, name, lease })
}

/// `GET /bedplate/v1/clusters/{cluster}/lease`: null if the cluster is lent without end.
async fn show(request: Request, PathParam(ident): PathParam<String>) -> Result<Response> {
    Ok(answer(&request.app, &request.cluster(&ident).await?))
}

/// `PUT /bedplate/v1/clusters/{cluster}/lease`: extends the lease. An earlier end than the present one changes nothing.
async fn extend(
    request: Request,
    PathParam(ident): PathParam<String>,
    StrictJson(longer): StrictJson<Extension>,
) -> Result<Response> {
    let now = (request.app.clock)();
    let cluster = request.cluster(&ident).await?;
    let terms = terms(&request, &cluster).await?;
    let until = match longer.until(now)? {
        Some(until) => until,
        None => {
            let customary = terms.grant(None, now).ok().flatten().map(|lease| lease.until);
            customary
                .ok_or_else(|| ApiError::bad_field("for", "a duration is required, such as 14d"))?
        }
    };
    change(&request, cluster, |cluster, user| Ok(extend_lease(cluster, until, user, terms, now)?))
        .await
}

/// `POST /bedplate/v1/clusters/{cluster}/lease/undo`: undoes the end of a lease and switches the cluster on again.
async fn undo(
    request: Request,
    PathParam(ident): PathParam<String>,
    longer: Option<StrictJson<Extension>>,
) -> Result<Response> {
    let now = (request.app.clock)();
    let cluster = request.cluster(&ident).await?;
    let terms = terms(&request, &cluster).await?;
    let until = longer.map(|StrictJson(longer)| longer.until(now)).transpose()?.flatten();
    let schedule = request.app.settings.schedule.clone();
    change(&request, cluster, |cluster, user| {
        let undone = undo_lease(cluster, user, &schedule, terms, now)?;
        match until {
            // The requested end replaces the default that the undo would give.
            Some(until) => Ok(extend_lease(cluster, until, user, terms, now)?),
            None => Ok(undone),
        }
    })
    .await
}

/// The default and maximum duration of a lease that the caller asks for.
async fn terms(request: &Request, cluster: &Cluster) -> Result<Terms> {
    let owner = Owner::new(&cluster.project, request.user());
    request.app.lease_terms(request.app.settings.leases, &owner).await
}

async fn change(
    request: &Request,
    cluster: Cluster,
    decide: impl Fn(&Cluster, &str) -> Result<Cluster>,
) -> Result<Response> {
    let (user, id) = (request.user(), cluster.id.to_string());
    let changed = request.change(&id, |cluster, _| {
        let changed = decide(&cluster, &user)?;
        let until = changed.lending.as_ref().map(|it| it.lease.until);
        let events = match until {
            Some(until) if changed != cluster => {
                let said = format!("{user} extended the lease until {until}");
                vec![request.app.request_event(&cluster, "LeaseExtended", said)]
            }
            Some(_) | None => Vec::new(),
        };
        Ok(ClusterChange { events, ..ClusterChange::of(changed) })
    });
    Ok(answer(&request.app, &changed.await?))
}
