//! `/v1/nodes/{node}/states/provision`: requests a change of provision state.

use axum::response::Response;
use baremetal_core::{
    DeployStep, HistoryEntry, Node, RequestedStep, State as ProvisionState, Verb, VerbRequest,
    WorkUuid, after_drain, parse_config_drive, request_verb,
};
use http::StatusCode;
use openstack_api::{
    ApiError, Microversion, Origin, PathParam, Query, Route, Routes, StrictJson, accepted_at,
};
use serde::Deserialize;
use serde_json::Value;
use utoipa::{PartialSchema, ToSchema};

use crate::app::App;
use crate::deploy_template::{merged, templates_of};
use crate::error::Error;
use crate::request::{Request, forced};
use crate::step::{CleanStepBody, DeployStepBody, deploy_steps};
use crate::{microversion as since, rule};

/// The largest body in bytes, large enough for a config drive.
const BODY_LIMIT: usize = 16 << 20;

/// The routes of provision states.
pub(crate) fn routes() -> Routes<App> {
    let provision = Route::put("Change the provision state", request)
        .with_rule(rule::INSTALL)
        .reads(Body::schema())
        .max_body(BODY_LIMIT)
        .query_parameters(["force"])
        .refuses([StatusCode::CONFLICT])
        .answers(StatusCode::ACCEPTED)
        .tells_nothing();
    Routes::new("states").at("/v1/nodes/{node}/states/provision", [provision])
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Body {
    // utoipa generates an invalid schema for an inlined enum that has a description, so `target` has none.
    #[schema(inline)]
    target: Target,
    /// For `active` and `rebuild`: base64 text, or an object with the parts of the config drive.
    #[serde(default)]
    configdrive: Option<Value>,
    /// For `clean`.
    #[serde(default)]
    #[schema(inline)]
    clean_steps: Option<Vec<CleanStepBody>>,
    /// For `active` and `rebuild`.
    #[serde(default)]
    #[schema(inline)]
    deploy_steps: Option<Vec<DeployStepBody>>,
    #[serde(default)]
    service_steps: Option<Vec<Value>>,
    #[serde(default)]
    runbook: Option<String>,
    #[serde(default)]
    disable_ramdisk: Option<bool>,
    #[serde(default)]
    #[schema(format = Password)]
    rescue_password: Option<String>,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Target {
    Manage,
    Provide,
    Active,
    Rebuild,
    Deleted,
    Inspect,
    Abort,
    Clean,
    Adopt,
    Deploy,
    Undeploy,
    Rescue,
    Unrescue,
    Unhold,
    Service,
}

/// `PUT /v1/nodes/{node}/states/provision`: requests a change of provision state.
///
/// Only records the request; the conductor carries it out. If the verb takes a compute host out of service, the conductor has the host
/// drained first; so before the request is recorded, clusterd is asked whether it would refuse the drain.
async fn request(
    request: Request,
    origin: Origin,
    PathParam(ident): PathParam<String>,
    mut query: Query,
    StrictJson(body): StrictJson<Body>,
) -> Result<Response, Error> {
    request.asked.need(body.target.since(), "target")?;
    let mut wanted = ProvisionRequest {
        verb: VerbRequest {
            verb: body.verb()?,
            clean_steps: body.clean_steps()?,
            deploy_steps: body.deploy_steps(request.asked)?,
        },
        config_drive: body.config_drive(request.asked)?,
        forced: forced(&mut query),
        work: WorkUuid::new_v4(),
    };
    if matches!(wanted.verb.verb, Verb::Deploy | Verb::Rebuild) {
        let templates = templates_of(&request, &request.node(&ident).await?).await?;
        let requested = std::mem::take(&mut wanted.verb.deploy_steps);
        wanted.verb.deploy_steps = merged(requested, &templates)?;
    }
    if after_drain(wanted.verb.verb).is_some() {
        let node = request.node(&ident).await?;
        wanted.decide(&request, &node)?;
        request.check_leave(&node, &wanted.forced).await?;
    }
    let decide = |node: &Node| wanted.decide(&request, node).map(|(it, entry)| (it, Some(entry)));
    let node = request.change(&ident, decide).await?;
    request.app.conductor.wake(node.id);
    let url = format!("{origin}/v1/nodes/{ident}/states");
    Ok(accepted_at(StatusCode::ACCEPTED, &url))
}

/// A request for a change of provision state.
struct ProvisionRequest {
    verb: VerbRequest,
    config_drive: Option<Value>,
    /// The clusters that a drain may leave without etcd's quorum.
    forced: Vec<String>,
    /// The id of the work that begins.
    work: WorkUuid,
}

impl ProvisionRequest {
    /// Returns the node with its work begun, or waiting for the drain of its compute host.
    fn decide(&self, request: &Request, node: &Node) -> Result<(Node, HistoryEntry), Error> {
        let mut node = node.clone();
        let (now, verb) = ((request.app.clock)(), self.verb.verb);
        let (mut changed, entry) = request_verb(&node, self.verb.clone(), self.work, now)?;
        if verb == Verb::Abort {
            request.asked.need(abort_since(node.provision_state), "target")?;
        }
        if let Some(drive) = &self.config_drive {
            for node in [&mut node, &mut changed] {
                node.instance_info.insert("configdrive".to_owned(), drive.clone());
            }
        }
        if matches!(verb, Verb::Deploy | Verb::Rebuild) {
            check_deployable(&request.app, &changed)?;
        }
        let left = after_drain(verb)
            .and_then(|then| request.with_drain_request(&node, then, &self.forced));
        Ok(left.unwrap_or((changed, entry)))
    }
}

/// Refuses a deployment that is bound to fail, before the state of the node changes.
fn check_deployable(app: &App, node: &Node) -> Result<(), Error> {
    app.conductor.check_deploy(node)?;
    app.conductor.check_driver_info(node).map_err(|why| ApiError::bad_request(why).into())
}

/// The microversion in which this waiting state can be aborted.
fn abort_since(state: ProvisionState) -> Microversion {
    match state {
        ProvisionState::InspectWait => since::ABORT_INSPECTION,
        ProvisionState::DeployWait => since::ABORT_DEPLOYMENT,
        ProvisionState::Enroll
        | ProvisionState::Verifying
        | ProvisionState::Manageable
        | ProvisionState::Inspecting
        | ProvisionState::InspectFailed
        | ProvisionState::Cleaning
        | ProvisionState::CleanWait
        | ProvisionState::CleanFailed
        | ProvisionState::Available
        | ProvisionState::Deploying
        | ProvisionState::DeployFailed
        | ProvisionState::Active
        | ProvisionState::Deleting
        | ProvisionState::Error
        | ProvisionState::Adopting
        | ProvisionState::AdoptFailed => since::ABORT,
    }
}

impl Target {
    fn since(self) -> Microversion {
        match self {
            Target::Active | Target::Rebuild | Target::Deleted => since::MINIMUM,
            Target::Manage | Target::Provide => since::MANAGE,
            Target::Inspect => since::INSPECT,
            Target::Abort => since::ABORT,
            Target::Clean => since::CLEAN,
            Target::Adopt => since::ADOPT,
            Target::Rescue | Target::Unrescue => since::RESCUE,
            Target::Deploy | Target::Undeploy => since::DEPLOY_VERBS,
            Target::Unhold => since::UNHOLD,
            Target::Service => since::SERVICE,
        }
    }
}

impl Body {
    /// The requested verb. Refuses fields that the verb cannot use.
    fn verb(&self) -> Result<Verb, ApiError> {
        let some = |list: &Option<Vec<Value>>| list.as_ref().is_some_and(|list| !list.is_empty());
        let unusable = [
            ("service_steps", some(&self.service_steps)),
            ("runbook", self.runbook.is_some()),
            ("disable_ramdisk", self.disable_ramdisk == Some(true)),
            ("rescue_password", self.rescue_password.is_some()),
        ];
        if let Some((name, _)) = unusable.into_iter().find(|(_, given)| *given) {
            return Err(ApiError::bad_field(name, "is not supported"));
        }
        if self.clean_steps.is_some() && self.target != Target::Clean {
            return Err(ApiError::bad_field("clean_steps", "they go with the target clean only"));
        }
        let installs = matches!(self.target, Target::Active | Target::Deploy | Target::Rebuild);
        if self.deploy_steps.is_some() && !installs {
            let problem = "they go with the targets active and rebuild only";
            return Err(ApiError::bad_field("deploy_steps", problem));
        }
        match self.target {
            Target::Manage => Ok(Verb::Manage),
            Target::Provide => Ok(Verb::Provide),
            Target::Active | Target::Deploy => Ok(Verb::Deploy),
            Target::Rebuild => Ok(Verb::Rebuild),
            Target::Deleted | Target::Undeploy => Ok(Verb::Undeploy),
            Target::Inspect => Ok(Verb::Inspect),
            Target::Abort => Ok(Verb::Abort),
            Target::Clean => Ok(Verb::Clean),
            Target::Adopt => Ok(Verb::Adopt),
            Target::Rescue | Target::Unrescue | Target::Unhold | Target::Service => Err(
                ApiError::bad_field("target", "this service cannot rescue, service or hold nodes"),
            ),
        }
    }

    /// The requested clean steps. The machine says later whether it offers them.
    fn clean_steps(&self) -> Result<Vec<RequestedStep>, ApiError> {
        let steps = self.clean_steps.as_deref().unwrap_or_default();
        if steps.is_empty() && self.target == Target::Clean {
            return Err(ApiError::bad_field("clean_steps", "at least one step is required"));
        }
        let requested = steps.iter().enumerate();
        requested.map(|(at, step)| step.requested(&format!("clean_steps[{at}]"))).collect()
    }

    /// The requested deploy steps.
    fn deploy_steps(&self, asked: Microversion) -> Result<Vec<DeployStep>, Error> {
        let Some(steps) = &self.deploy_steps else { return Ok(Vec::new()) };
        asked.need(since::DEPLOY_STEPS, "deploy_steps")?;
        Ok(deploy_steps("deploy_steps", steps, &[])?)
    }

    /// The config drive of the request, if there is one.
    fn config_drive(&self, asked: Microversion) -> Result<Option<Value>, Error> {
        let Some(drive) = self.configdrive.as_ref().filter(|drive| !drive.is_null()) else {
            return Ok(None);
        };
        match self.target {
            Target::Active | Target::Deploy => {}
            Target::Rebuild => asked.need(since::REBUILD_CONFIG_DRIVE, "configdrive")?,
            Target::Manage
            | Target::Provide
            | Target::Deleted
            | Target::Inspect
            | Target::Abort
            | Target::Clean
            | Target::Adopt
            | Target::Undeploy
            | Target::Rescue
            | Target::Unrescue
            | Target::Unhold
            | Target::Service => {
                let problem = "is only allowed with the targets active and rebuild";
                return Err(ApiError::bad_field("configdrive", problem).into());
            }
        }
        if drive.is_object() {
            asked.need(since::BUILD_CONFIG_DRIVE, "configdrive")?;
        }
        parse_config_drive(drive)?;
        Ok(Some(drive.clone()))
    }
}
