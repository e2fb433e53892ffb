//! `/bedplate/v1/clusters/{cluster}/upgrade`: plans, starts, pauses, resumes and rolls back an upgrade.

use std::collections::BTreeSet;

use axum::response::Response;
use cluster_core::{
    Cluster, ClusterSpec, GroupRole, MemberName, NodeGroup, PlannedRoll, QuotaShortage, Refusal,
    RollChange, pause_roll, planned_rolls, resume_roll, roll_back, unknown_labels_warning,
};
use cluster_store::{ClusterChange, MachineReport, StoreError};
use http::StatusCode;
use openstack_api::{
    ApiError, PathParam, RequiredAccess, Route, Routes, Shaped, StrictJson, json, shaped,
};
use serde::{Deserialize, Serialize};
use utoipa::{PartialSchema, ToSchema};

use crate::accepted::{accepted, accepted_schema};
use crate::app::App;
use crate::error::{Error, Result};
use crate::lenient::{count, text};
use crate::request::Request;
use crate::upgrade::WantedUpgrade;

/// Returns the routes of upgrades.
pub(crate) fn routes() -> Routes<App> {
    let start = Route::post("Upgrade a cluster", start).reads(Upgrade::schema());
    let plan = Route::post("Plan an upgrade without starting it", plan)
        .needs(RequiredAccess::Read)
        .reads(Upgrade::schema())
        .returns(ShownPlan::shape())
        .refuses([StatusCode::CONFLICT]);
    let accepts =
        |route: Route<App>| route.answers(StatusCode::ACCEPTED).returns(accepted_schema());
    Routes::new("bedplate")
        .at("/bedplate/v1/clusters/{cluster}/upgrade", [accepts(start)])
        .at("/bedplate/v1/clusters/{cluster}/upgrade/plan", [plan])
        .at(
            "/bedplate/v1/clusters/{cluster}/upgrade/pause",
            [accepts(Route::post("Pause an upgrade", pause))],
        )
        .at(
            "/bedplate/v1/clusters/{cluster}/upgrade/resume",
            [accepts(Route::post("Resume an upgrade", resume))],
        )
        .at(
            "/bedplate/v1/clusters/{cluster}/upgrade/rollback",
            [accepts(Route::post("Roll an upgrade back", rollback))],
        )
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Upgrade {
    /// The template to upgrade to: its id or name.
    cluster_template: String,
    /// How many workers of a group are replaced at once, each by a new member that is ready before; 1 if missing.
    #[serde(default, deserialize_with = "count")]
    max_batch_size: Option<u32>,
    /// How many workers of a group may be missing besides: so many are removed before their replacements are ready; 0 if missing.
    #[serde(default, deserialize_with = "count")]
    max_unavailable: Option<u32>,
    /// The node group's id or name; all node groups if missing.
    #[serde(default, deserialize_with = "text")]
    nodegroup: Option<String>,
}

impl From<Upgrade> for WantedUpgrade {
    fn from(body: Upgrade) -> Self {
        WantedUpgrade {
            template: body.cluster_template,
            nodegroup: body.nodegroup,
            at_once: body.max_batch_size.unwrap_or(1),
            max_unavailable: body.max_unavailable.unwrap_or(0),
        }
    }
}

shaped! {
    /// The replacement of the members of a node group.
    #[derive(Serialize)]
    pub(crate) struct ShownStep {
        nodegroup: String,
        members: u32,
        at_once: u32,
        from: String,
        to: String,
        /// The parameters that change besides the version.
        changes: Vec<String>,
    }
}

shaped! {
    /// An upgrade in progress.
    #[derive(Serialize)]
    pub(crate) struct ShownRoll {
        kubernetes: String,
        paused: bool,
        waits_for: Option<String>,
        /// The remaining replacements, in order.
        steps: Vec<ShownStep>,
    }
}

shaped! {
    #[derive(Serialize)]
    struct ShownPlan {
        kubernetes: String,
        /// The replacements, in order; empty if the cluster has everything that the template has.
        steps: Vec<ShownStep>,
        /// Whether the limits have room for larger flavors, and the project's quota in the cloud for the members that exist beside those
        /// that they replace; null if the quota is unknown.
        fits: Option<bool>,
        /// Why there is no room, or why `fits` is unknown.
        fits_reason: Option<String>,
        /// How many seconds the replacements take at least, if each takes as long as the present members took from their first boot to
        /// their join; null if no member reported that.
        seconds_at_least: Option<u64>,
        warnings: Vec<String>,
    }
}

impl From<PlannedRoll> for ShownStep {
    fn from(planned: PlannedRoll) -> Self {
        let PlannedRoll { group, members, at_once, from, to, changes } = planned;
        let (from, to) = (from.to_string(), to.to_string());
        ShownStep { nodegroup: group.to_string(), members, at_once, from, to, changes }
    }
}

impl ShownRoll {
    /// Describes the upgrade of a cluster, if one is in progress.
    pub(crate) fn of(spec: &ClusterSpec<'_>) -> Option<ShownRoll> {
        let roll = spec.cluster.roll.as_ref()?;
        Some(ShownRoll {
            kubernetes: roll.kubernetes.to_string(),
            paused: roll.is_paused,
            waits_for: roll.waits_for.clone(),
            steps: planned_rolls(spec).into_iter().map(ShownStep::from).collect(),
        })
    }
}

/// `POST /bedplate/v1/clusters/{cluster}/upgrade`: as Magnum's action, with `max_unavailable`.
async fn start(
    request: Request,
    PathParam(ident): PathParam<String>,
    StrictJson(body): StrictJson<Upgrade>,
) -> Result<Response> {
    let cluster = WantedUpgrade::from(body).record(&request, &ident).await?;
    Ok(accepted(&cluster))
}

/// `POST /bedplate/v1/clusters/{cluster}/upgrade/plan`: what an upgrade would replace, in order. Nothing is recorded.
async fn plan(
    request: Request,
    PathParam(ident): PathParam<String>,
    StrictJson(body): StrictJson<Upgrade>,
) -> Result<Response> {
    let wanted = WantedUpgrade::from(body);
    let cluster = request.cluster(&ident).await?;
    let groups = request.app.store.groups_of(cluster.id).await?;
    let templates = wanted.templates(&request, &cluster).await?;
    let RollChange { cluster, .. } = wanted.on(&request.app, &templates, &cluster, &groups)?;
    let spec = ClusterSpec { cluster: &cluster, groups: &groups };
    let steps = planned_rolls(&spec);
    let (fits, fits_reason) =
        match wanted.check_limits(&request, &templates, &cluster, &groups).await {
            Ok(()) => room(&request.app, &spec, &steps).await?,
            Err(Error::Denied(denial, _)) => (Some(false), Some(denial.to_string())),
            Err(error) => return Err(error),
        };
    let version = cluster.roll.as_ref().map_or(cluster.kubernetes, |roll| roll.kubernetes);
    let mut warnings = warnings(&spec, &steps);
    warnings.extend(unknown_labels_warning([&cluster.blueprint.labels]));
    if !steps.is_empty() {
        warnings.extend(request.app.conductor.upgrade_obstacles(&cluster, version).await);
    }
    let machines = request.app.store.machines_of(cluster.id).await?;
    let plan = ShownPlan {
        kubernetes: version.to_string(),
        seconds_at_least: seconds_at_least(&machines, &steps),
        warnings,
        steps: steps.into_iter().map(ShownStep::from).collect(),
        fits,
        fits_reason,
    };
    Ok(json(StatusCode::OK, &plan))
}

/// Whether the cloud has room for the new members of each group. The groups are replaced one after the other.
async fn room(
    app: &App,
    spec: &ClusterSpec<'_>,
    steps: &[PlannedRoll],
) -> Result<(Option<bool>, Option<String>)> {
    for step in steps {
        let with_new = |group: &NodeGroup| {
            let mut group = group.clone();
            let more = if group.name == step.group { step.at_once.min(step.members) } else { 0 };
            (0..more).for_each(|_| drop(group.add_machine()));
            group
        };
        let groups: Vec<NodeGroup> = spec.groups.iter().map(with_new).collect();
        match app.conductor.preview(spec.cluster, &groups).await?.shortages {
            Ok(short) if short.is_empty() => {}
            Ok(short) => {
                let all: Vec<String> = short.iter().map(QuotaShortage::to_string).collect();
                let why = format!(
                    "the project's quota in the cloud has no room for new members of {}; needed: {}",
                    step.group,
                    all.join(", ")
                );
                return Ok((Some(false), Some(why)));
            }
            Err(why) => return Ok((None, Some(why))),
        }
    }
    Ok((Some(true), None))
}

/// The steps with which members become Kubernetes nodes. A member may report others at any later time.
const JOINS: [&str; 4] = ["control-plane", "join", "mark", "once"];

/// Returns how many seconds the steps take at least, by the median of the members' own times.
fn seconds_at_least(machines: &[MachineReport], steps: &[PlannedRoll]) -> Option<u64> {
    let took = |machine: &MachineReport| {
        let said =
            machine.said.as_ref().filter(|it| !it.failed && JOINS.contains(&it.step.as_str()));
        u64::try_from(said?.at.duration_since(machine.redeemed_at?).as_secs()).ok()
    };
    let mut all: Vec<u64> = machines.iter().filter_map(took).collect();
    all.sort_unstable();
    let median = *all.get(all.len() / 2)?;
    let turns = steps.iter().map(|it| u64::from(it.members.div_ceil(it.at_once.max(1))));
    Some(turns.sum::<u64>().saturating_mul(median))
}

/// Names the workers that stay behind.
fn warnings(spec: &ClusterSpec<'_>, steps: &[PlannedRoll]) -> Vec<String> {
    let stays = |group: &&NodeGroup| {
        let is_rolled = steps.iter().any(|step| step.group == group.name);
        group.role != GroupRole::Master && !is_rolled && !steps.is_empty()
    };
    let groups = spec.groups.iter().filter(stays);
    groups.map(|it| format!("node group {} stays at {}", it.name, spec.version_of(it))).collect()
}

/// `POST /bedplate/v1/clusters/{cluster}/upgrade/pause`: the member that is being replaced is finished, and no other is begun.
async fn pause(request: Request, PathParam(ident): PathParam<String>) -> Result<Response> {
    set(&request, &ident, "UpgradePaused", "upgrade paused", pause_roll).await
}

/// `POST /bedplate/v1/clusters/{cluster}/upgrade/resume`: goes on with a paused upgrade.
async fn resume(request: Request, PathParam(ident): PathParam<String>) -> Result<Response> {
    set(&request, &ident, "UpgradeResumed", "upgrade resumed", resume_roll).await
}

async fn set(
    request: &Request,
    ident: &str,
    reason: &'static str,
    said: &'static str,
    change: fn(&Cluster) -> Result<Cluster, Refusal>,
) -> Result<Response> {
    let changed = request.change(ident, |cluster, _| {
        let events = vec![request.app.request_event(&cluster, reason, said.to_owned())];
        Ok(ClusterChange { events, ..ClusterChange::of(change(&cluster)?) })
    });
    Ok(accepted(&changed.await?))
}

/// `POST /bedplate/v1/clusters/{cluster}/upgrade/rollback`: restores the cluster, as long as no new control-plane member may have joined.
async fn rollback(request: Request, PathParam(ident): PathParam<String>) -> Result<Response> {
    let app = &request.app;
    let cluster = request.cluster(&ident).await?;
    let machines = app.store.machines_of(cluster.id).await?.into_iter();
    let joins = machines
        .filter(|it| it.redeemed_at.is_some() && !it.said.as_ref().is_some_and(|said| said.failed));
    let joining: BTreeSet<MemberName> = joins.map(|it| it.machine).collect();
    let id = cluster.id.to_string();
    let changed = request.change(&id, |cluster, groups| {
        let back = roll_back(&cluster, &groups, &joining, (app.clock)())?;
        let said = "upgrade rolled back".to_owned();
        let events = vec![app.request_event(&cluster, "UpgradeRolledBack", said)];
        Ok(ClusterChange { changed: back.groups, events, ..ClusterChange::of(back.cluster) })
    });
    match changed.await {
        Err(Error::Store(StoreError::NoOwner { .. })) => {
            let why = "the template from before the upgrade was deleted, so the upgrade cannot be rolled back; upgrade to another template";
            Err(ApiError::conflict(why).into())
        }
        done => Ok(accepted(&done?)),
    }
}

#[cfg(test)]
mod tests {
    use cluster_core::{ClaimUuid, KubernetesVersion};
    use cluster_store::BootstrapReport;
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn a_plan_takes_as_long_as_the_members_took_to_join() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let machine = |number: u32, step: &str, took: i64, failed: bool| MachineReport {
            machine: format!("default-worker-{number}").parse().unwrap(),
            claim: ClaimUuid::new_v4(),
            redeemed_at: Some(at(100)),
            redeemed_by: None,
            said: Some(BootstrapReport {
                step: step.to_owned(),
                failed,
                message: String::new(),
                at: at(100 + took),
            }),
            authorities: None,
        };
        let step = |members, at_once| PlannedRoll {
            group: "g".parse().unwrap(),
            members,
            at_once,
            from: KubernetesVersion::DEFAULT,
            to: KubernetesVersion::DEFAULT,
            changes: Vec::new(),
        };
        let steps = [step(3, 1), step(5, 2)];
        assert_eq!(seconds_at_least(&[], &steps), None);
        let other = [machine(0, "add-ons", 9000, false), machine(1, "join", 700, true)];
        assert_eq!(seconds_at_least(&other, &steps), None);
        let machines = [20, 90, 40].map(|took| machine(took as u32, "join", took, false));
        assert_eq!(seconds_at_least(&machines, &steps), Some(6 * 40));
    }
}
