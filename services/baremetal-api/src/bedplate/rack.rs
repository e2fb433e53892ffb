//! `/bedplate/v1/racks`: machines that are enrolled and brought up together.

mod document;
mod enrolment;
mod show;

use std::num::NonZeroU32;

use axum::response::Response;
use baremetal_core::{
    HostPlacement, Node, Profile, Rack, RackGoal, RackTarget, check_compute_host, check_deploy,
    rack_progress,
};
use baremetal_store::{PagePart, PageRows};
use http::StatusCode;
use openstack_api::{
    ApiError, JsonShape, ListPart, Listing, PathParam, RequiredAccess, Route, Routes, Shaped,
    StrictJson, json,
};
use rack_manifest::RackRequest;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::app::App;
use crate::error::{Error, Result};
use crate::request::{Request, retry_if_stale};
use crate::secret;

use document::write;
use enrolment::Enrolment;
use show::{RackView, Summary};

/// How many machines are brought up in parallel by default.
const DEFAULT_LIMIT: NonZeroU32 = NonZeroU32::MIN.saturating_add(19);

pub(crate) fn routes() -> Routes<App> {
    let list = Route::get("List racks", list);
    let enroll = Route::post("Enroll a rack with all of its machines", enroll)
        .needs(RequiredAccess::Administer);
    let show = Route::get("Show a rack and the progress of its machines", show_rack);
    let delete =
        Route::delete("Delete a rack without machines", delete).needs(RequiredAccess::Administer);
    let up = Route::put("Bring a rack's machines up", up);
    let pause = Route::delete("Pause the bring-up of a rack's machines", pause);
    let list =
        list.returns(JsonShape::object([("racks", JsonShape::list(show::Summary::shape()))]));
    let enroll = enroll.reads(enrolment::request_shape()).returns(enrolment::Answer::shape());
    let show = show.returns(show::shape());
    let up = up.reads(up_body()).returns(show::BringUpSummary::shape());
    // A rack whose record cannot be read is an error of the service.
    let reads = |route: Route<App>| route.refuses([StatusCode::INTERNAL_SERVER_ERROR]);
    let (list, enroll, show, up, pause) =
        (reads(list), reads(enroll), reads(show), reads(up), reads(pause));
    Routes::new("bedplate")
        .at("/bedplate/v1/racks", [list, enroll])
        .at("/bedplate/v1/racks/{rack}", [show, delete.answers(StatusCode::NO_CONTENT)])
        .at(
            "/bedplate/v1/racks/{rack}/up",
            [up.answers(StatusCode::ACCEPTED), pause.answers(StatusCode::NO_CONTENT)],
        )
}

/// `GET /bedplate/v1/racks`: lists racks.
async fn list(Request { app, .. }: Request) -> Result<Response> {
    let store = app.store.clone();
    openstack_api::list(Listing::whole("racks"), move |asked| {
        let store = store.clone();
        Box::pin(async move {
            let part = PagePart { after: asked.after, bytes: asked.bytes };
            let PageRows { found, more } = store.list_racks_part(asked.elements, part).await?;
            let racks = found.into_iter().map(|(name, document, _)| {
                let rack = Rack::read(&name, document)?;
                Ok((name, rack))
            });
            let racks = racks.collect::<Result<Vec<_>>>()?;
            let summary = |(name, rack): &(String, Rack)| Summary::new(name.clone(), rack);
            Ok::<_, Error>(ListPart::of(&racks, |(name, _)| name.clone(), summary, more)?)
        })
    })
    .await
}

/// `GET /bedplate/v1/racks/{rack}`: shows a rack with its machines.
async fn show_rack(
    Request { app, .. }: Request,
    PathParam(name): PathParam<String>,
) -> Result<Response> {
    let (rack, _) = find(&app, &name).await?;
    let nodes = app.conductor.nodes_of_rack(&name).await?;
    let progress = |node: &Node| app.conductor.progress(node.id);
    Ok(json(StatusCode::OK, &RackView::new(&name, &rack, &nodes, progress)))
}

/// `POST /bedplate/v1/racks`: enrolls a rack. Enrolling the same manifest again changes nothing.
async fn enroll(
    Request { app, .. }: Request,
    StrictJson(asked): StrictJson<RackRequest>,
) -> Result<Response> {
    let done = retry_if_stale(|| async {
        let enrolment = Enrolment::plan(&app, &asked).await?;
        enrolment.record(&app, &asked).await?;
        Ok(enrolment)
    })
    .await?;
    for node in done.nodes() {
        app.conductor.wake(node);
    }
    Ok(json(StatusCode::OK, &done.answer(&asked.name)))
}

/// `DELETE /bedplate/v1/racks/{rack}`: deletes a rack without machines.
async fn delete(
    Request { app, .. }: Request,
    PathParam(name): PathParam<String>,
) -> Result<StatusCode> {
    // A rack whose record cannot be read can be deleted as well.
    app.store.find_rack(&name).await?.ok_or_else(|| missing(&name))?;
    if !app.conductor.nodes_of_rack(&name).await?.is_empty() {
        let problem = format!("rack {name} still has machines: delete their nodes first");
        return Err(ApiError::conflict(problem).into());
    }
    app.store.delete_rack(&name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The goal of bringing up a rack.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BringUpRequest {
    #[serde(default = "installed")]
    reach: RackTarget,
    #[serde(default)]
    instance_info: Map<String, Value>,
    profile: Option<String>,
    limit: Option<NonZeroU32>,
}

/// The JSON shape of [`BringUpRequest`].
fn up_body() -> JsonShape {
    JsonShape::object([]).maybe([
        ("reach", show::reach()),
        ("instance_info", JsonShape::any_object()),
        ("profile", JsonShape::text().or_null()),
        ("limit", JsonShape::integer().or_null()),
    ])
}

fn installed() -> RackTarget {
    RackTarget::Installed
}

/// `PUT /bedplate/v1/racks/{rack}/up`: brings the machines up, and retries machines that failed before.
async fn up(
    Request { app, .. }: Request,
    PathParam(name): PathParam<String>,
    StrictJson(mut asked): StrictJson<BringUpRequest>,
) -> Result<Response> {
    secret::restore_masked("instance_info", &Map::new(), &mut asked.instance_info)?;
    let profile = profile(&app, &asked).await?;
    let instance_info = profile.as_ref().map(|profile| profile.instance_info.clone());
    let goal = RackGoal {
        reach: asked.reach,
        instance_info: instance_info.unwrap_or(asked.instance_info),
        profile: asked.profile,
        limit: asked.limit.unwrap_or(DEFAULT_LIMIT),
        asked_at: (app.clock)(),
    };
    let nodes = app.conductor.nodes_of_rack(&name).await?;
    if goal.reach == RackTarget::Installed {
        app.conductor.check_image_host(&goal.instance_info)?;
        check_compute_host(None, &goal.instance_info)?;
        for node in &nodes {
            check_deploy(&Node { instance_info: goal.instance_info.clone(), ..node.clone() })?;
            if let Some(profile) = &profile {
                HostPlacement::of(node, &profile.placement)?;
            }
        }
    }
    set_goal(&app, &name, Some(&goal)).await?;
    app.conductor.wake_rack(&name);
    let ways = nodes.iter().map(|node| rack_progress(&goal, node));
    Ok(json(StatusCode::ACCEPTED, &show::begun(&name, ways)))
}

/// The requested hypervisor profile, with its secrets sealed.
async fn profile(app: &App, asked: &BringUpRequest) -> Result<Option<Profile>> {
    let Some(name) = &asked.profile else { return Ok(None) };
    let refuse = |field: &str, problem: &str| Err(ApiError::bad_field(field, problem).into());
    if asked.reach != RackTarget::Installed {
        return refuse("reach", "must be \"installed\" with a profile");
    }
    if !asked.instance_info.is_empty() {
        return refuse(
            "instance_info",
            "is not allowed together with profile, which contains its own",
        );
    }
    if !app.conductor.has_cloud() {
        return refuse(
            "profile",
            "no cloud is configured: set [cloud] in the configuration of the service",
        );
    }
    match app.store.find_profile(name).await? {
        Some(row) => Ok(Some(row.profile)),
        None => refuse("profile", "not found"),
    }
}

/// `DELETE /bedplate/v1/racks/{rack}/up`: starts no further machine; machines in progress continue.
async fn pause(
    Request { app, .. }: Request,
    PathParam(name): PathParam<String>,
) -> Result<StatusCode> {
    set_goal(&app, &name, None).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn set_goal(app: &App, name: &str, goal: Option<&RackGoal>) -> Result<()> {
    retry_if_stale(|| async {
        let (rack, version) = find(app, name).await?;
        let rack = Rack { goal: goal.cloned(), ..rack };
        Ok(app.store.update_rack(name, &write(&rack)?, version).await?)
    })
    .await
}

async fn find(app: &App, name: &str) -> Result<(Rack, i64)> {
    let found = app.store.find_rack(name).await?;
    let (document, version) = found.ok_or_else(|| missing(name))?;
    Ok((Rack::read(name, document)?, version))
}

fn missing(name: &str) -> ApiError {
    let shown: String = name.chars().take(64).collect();
    ApiError::not_found(format!("Rack {shown} could not be found."))
}
