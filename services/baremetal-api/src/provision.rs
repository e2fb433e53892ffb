//! `/v1/nodes/{node}/states/provision`: requests a change of provision state.

use axum::response::Response;
use baremetal_core::{
    DeployStep, HistoryEntry, Node, RequestedStep, RescueInterface, State as ProvisionState, Verb,
    VerbRequest, WantedSteps, WorkUuid, after_drain, parse_config_drive, request_verb,
};
use http::StatusCode;
use openstack_api::{ApiError, Microversion, Origin, PathParam, Query, Route, Routes, accepted_at};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::{PartialSchema, ToSchema};

use crate::app::App;
use crate::deploy_template::{merged, templates_of};
use crate::error::Result;
use crate::node::check_children;
use crate::parameters::{Given, Parameters};
use crate::request::{Request, forced};
use crate::runbook::steps_of;
use crate::step::{CleanStepBody, DeployStepBody, deploy_steps};
use crate::{microversion as since, rescue_password, rule};

/// The key of `instance_info` with the config drive.
const CONFIG_DRIVE: &str = "configdrive";

/// The largest body in bytes, large enough for a config drive.
const BODY_LIMIT: usize = 16 << 20;

pub(crate) fn routes() -> Routes<App> {
    let provision = Route::put("Change the provision state", request)
        .only_records()
        .with_rule(rule::INSTALL)
        .reads_if_sent(Body::schema())
        .max_body(BODY_LIMIT)
        .query_parameters(["force"])
        .query_parameters(Body::IN_QUERY.iter().copied())
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
    /// For `service`.
    #[serde(default)]
    #[schema(inline)]
    service_steps: Option<Vec<CleanStepBody>>,
    /// For `clean` and `service`: the name or UUID of the runbook whose steps run.
    #[serde(default)]
    runbook: Option<String>,
    /// For `clean` and `service`: whether the steps run without a boot of the ramdisk.
    #[serde(default)]
    disable_ramdisk: Option<bool>,
    /// For `rescue`.
    #[serde(default)]
    #[schema(format = Password)]
    rescue_password: Option<String>,
}

impl Parameters for Body {
    const IN_QUERY: &'static [&'static str] = &["target"];
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
    Given(body): Given<Body>,
) -> Result<Response> {
    request.asked.need(body.target.since(), "target")?;
    body.check_fields()?;
    let forced = forced(&mut query);
    Body::finish(query)?;
    let verb = body.target.verb();
    let (steps, disables_ramdisk) = body.steps(&request, &ident).await?;
    let config_drive = body.config_drive(request.asked)?;
    if let Some(drive) = &config_drive {
        let info = Map::from_iter([(CONFIG_DRIVE.to_owned(), drive.clone())]);
        request.app.conductor.check_image_host(&info)?;
    }
    let wanted = ProvisionRequest {
        verb: VerbRequest { verb, steps, disables_ramdisk },
        config_drive,
        rescue_hash: body.rescue_hash()?,
        forced,
        work: WorkUuid::new_v4(),
    };
    if matches!(wanted.verb.verb, Verb::Deploy | Verb::Rebuild) {
        let node = request.node(&ident).await?;
        request.app.conductor.check_glance_image(&node).await?;
        request.app.conductor.check_oci_image(&node).await?;
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

/// Returns the request whose plan a client wants to see: this target, with the steps of this runbook and of the node's deploy templates.
pub(crate) async fn planned_verb(
    request: &Request,
    (ident, node): (&str, &Node),
    target: &str,
    runbook: Option<String>,
) -> Result<VerbRequest> {
    let body = serde_json::from_value::<Body>(json!({"target": target, "runbook": runbook}));
    let body = body.map_err(|why| ApiError::bad_field("target", why))?;
    body.check_fields()?;
    let verb = body.target.verb();
    if matches!(verb, Verb::Abort | Verb::Unhold) {
        return Err(ApiError::bad_field("target", "has no plan of its own").into());
    }
    // Without a runbook the plan of these verbs shows the steps that a request can name.
    let is_open = matches!(verb, Verb::Clean | Verb::Service) && body.runbook().is_none();
    let (steps, disables_ramdisk) = match is_open {
        true => (None, false),
        false => body.steps(request, ident).await?,
    };
    if matches!(verb, Verb::Deploy | Verb::Rebuild) {
        check_deployable(&request.app, node)?;
    }
    Ok(VerbRequest { verb, steps, disables_ramdisk })
}

/// The requested steps. The machine says later whether it offers them.
fn steps(field: &str, steps: &Option<Vec<CleanStepBody>>) -> Result<Vec<RequestedStep>, ApiError> {
    let steps = steps.as_deref().unwrap_or_default();
    if steps.is_empty() {
        return Err(ApiError::bad_field(field, "at least one step is required"));
    }
    let requested = steps.iter().enumerate();
    requested.map(|(at, step)| step.requested(&format!("{field}[{at}]"))).collect()
}

/// Checks the child nodes of the steps that run on child nodes.
async fn check_child_steps(
    request: &Request,
    ident: &str,
    field: &str,
    steps: &[RequestedStep],
) -> Result<()> {
    for (at, step) in steps.iter().enumerate() {
        if let Some(children) = &step.children {
            let node = request.node(ident).await?;
            check_children(request, &node, children, &format!("{field}[{at}]")).await?;
        }
    }
    Ok(())
}

/// A request for a change of provision state.
struct ProvisionRequest {
    verb: VerbRequest,
    config_drive: Option<Value>,
    /// The hash of the rescue password.
    rescue_hash: Option<String>,
    /// The clusters that a drain may leave without etcd's quorum.
    forced: Vec<String>,
    /// The id of the work that begins.
    work: WorkUuid,
}

impl ProvisionRequest {
    /// Returns the node with its work begun, or waiting for the drain of its compute host.
    fn decide(&self, request: &Request, node: &Node) -> Result<(Node, HistoryEntry)> {
        let mut node = node.clone();
        let (now, verb) = ((request.app.clock)(), self.verb.verb);
        let (mut changed, entry) = request_verb(&node, self.verb.clone(), self.work, now)?;
        // As in Ironic, the state refuses these verbs before the version does.
        match verb {
            Verb::Abort => request.asked.need(abort_since(node.provision_state), "target")?,
            Verb::Unhold => request.asked.need(since::UNHOLD, "target")?,
            Verb::Manage
            | Verb::Inspect
            | Verb::Provide
            | Verb::Clean
            | Verb::Deploy
            | Verb::Rebuild
            | Verb::Undeploy
            | Verb::Adopt
            | Verb::Rescue
            | Verb::Unrescue
            | Verb::Service => {}
        }
        if let Some(drive) = &self.config_drive {
            for node in [&mut node, &mut changed] {
                node.instance_info.insert(CONFIG_DRIVE.to_owned(), drive.clone());
            }
        }
        if let Some(hash) = &self.rescue_hash {
            for node in [&mut node, &mut changed] {
                node.set_rescue_password(hash);
            }
        }
        if matches!(verb, Verb::Deploy | Verb::Rebuild) {
            check_deployable(&request.app, &changed)?;
        }
        if verb == Verb::Rescue && changed.rescue_interface() == RescueInterface::Agent {
            check_driver_info(&request.app, &changed)?;
        }
        let left = after_drain(verb).and_then(|then| {
            request.with_drain_request(&node, then, Some(&self.verb), &self.forced)
        });
        Ok(left.unwrap_or((changed, entry)))
    }
}

/// Refuses a deployment that is bound to fail, before the state of the node changes.
fn check_deployable(app: &App, node: &Node) -> Result<()> {
    app.conductor.check_deploy(node)?;
    check_driver_info(app, node)
}

/// Refuses work with a BMC that cannot be reached as the node says.
fn check_driver_info(app: &App, node: &Node) -> Result<()> {
    app.conductor.check_driver_info(node).map_err(|why| ApiError::bad_request(why).into())
}

/// The microversion in which this waiting state can be aborted.
fn abort_since(state: ProvisionState) -> Microversion {
    match state {
        ProvisionState::InspectWait => since::ABORT_INSPECTION,
        ProvisionState::DeployWait | ProvisionState::DeployHold => since::ABORT_DEPLOYMENT,
        ProvisionState::Enroll
        | ProvisionState::Verifying
        | ProvisionState::Manageable
        | ProvisionState::Inspecting
        | ProvisionState::InspectFailed
        | ProvisionState::Cleaning
        | ProvisionState::CleanWait
        | ProvisionState::CleanFailed
        | ProvisionState::CleanHold
        | ProvisionState::Servicing
        | ProvisionState::ServiceWait
        | ProvisionState::ServiceFailed
        | ProvisionState::ServiceHold
        | ProvisionState::Rescuing
        | ProvisionState::RescueWait
        | ProvisionState::Rescued
        | ProvisionState::RescueFailed
        | ProvisionState::Unrescuing
        | ProvisionState::UnrescueFailed
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
            Target::Active | Target::Rebuild | Target::Deleted | Target::Unhold => since::MINIMUM,
            Target::Service => since::SERVICE,
            Target::Manage | Target::Provide => since::MANAGE,
            Target::Inspect => since::INSPECT,
            Target::Abort => since::ABORT,
            Target::Clean => since::CLEAN,
            Target::Adopt => since::ADOPT,
            Target::Rescue | Target::Unrescue => since::RESCUE,
            Target::Deploy | Target::Undeploy => since::DEPLOY_VERBS,
        }
    }

    fn verb(self) -> Verb {
        match self {
            Target::Manage => Verb::Manage,
            Target::Provide => Verb::Provide,
            Target::Active | Target::Deploy => Verb::Deploy,
            Target::Rebuild => Verb::Rebuild,
            Target::Deleted | Target::Undeploy => Verb::Undeploy,
            Target::Inspect => Verb::Inspect,
            Target::Abort => Verb::Abort,
            Target::Clean => Verb::Clean,
            Target::Adopt => Verb::Adopt,
            Target::Rescue => Verb::Rescue,
            Target::Unrescue => Verb::Unrescue,
            Target::Unhold => Verb::Unhold,
            Target::Service => Verb::Service,
        }
    }
}

impl Body {
    /// Refuses fields that the target cannot use.
    fn check_fields(&self) -> Result<(), ApiError> {
        if self.runbook().is_some() && !matches!(self.target, Target::Clean | Target::Service) {
            let problem = "goes only with the targets clean and service";
            return Err(ApiError::bad_field("runbook", problem));
        }
        let runs_steps = matches!(self.target, Target::Clean | Target::Service);
        let installs = matches!(self.target, Target::Active | Target::Deploy | Target::Rebuild);
        let unusable = [
            ("clean_steps", "clean", self.clean_steps.is_some() && self.target != Target::Clean),
            (
                "service_steps",
                "service",
                self.service_steps.is_some() && self.target != Target::Service,
            ),
            ("deploy_steps", "active and rebuild", self.deploy_steps.is_some() && !installs),
            (
                "disable_ramdisk",
                "clean and service",
                self.disable_ramdisk == Some(true) && !runs_steps,
            ),
            (
                "rescue_password",
                "rescue",
                self.rescue_password.is_some() && self.target != Target::Rescue,
            ),
        ];
        if let Some((name, targets, _)) = unusable.into_iter().find(|(_, _, given)| *given) {
            let problem = format!("goes only with the target {targets}");
            return Err(ApiError::bad_field(name, problem));
        }
        Ok(())
    }

    /// The hash of the password of the rescue system.
    fn rescue_hash(&self) -> Result<Option<String>, ApiError> {
        if self.target != Target::Rescue {
            return Ok(None);
        }
        rescue_password::hash(self.rescue_password.as_deref().unwrap_or_default()).map(Some)
    }

    /// The steps of the request, its runbook and the node's deploy templates, and whether they run without a boot of the ramdisk.
    async fn steps(&self, request: &Request, ident: &str) -> Result<(Option<WantedSteps>, bool)> {
        match self.target {
            Target::Active | Target::Deploy | Target::Rebuild => {
                let requested = self.deploy_steps(request.asked)?;
                let templates = templates_of(request, &request.node(ident).await?).await?;
                Ok((Some(WantedSteps::Deployment(merged(requested, &templates)?)), false))
            }
            Target::Clean => {
                let (steps, is_quiet) =
                    self.listed_steps(request, ident, "clean_steps", &self.clean_steps).await?;
                Ok((Some(WantedSteps::Requested(steps)), is_quiet))
            }
            Target::Service => {
                let (steps, is_quiet) =
                    self.listed_steps(request, ident, "service_steps", &self.service_steps).await?;
                Ok((Some(WantedSteps::Service(steps)), is_quiet))
            }
            Target::Manage
            | Target::Provide
            | Target::Deleted
            | Target::Undeploy
            | Target::Inspect
            | Target::Abort
            | Target::Adopt
            | Target::Rescue
            | Target::Unrescue
            | Target::Unhold => Ok((None, false)),
        }
    }

    /// The steps in `field` or of the runbook, and whether they run without a boot of the ramdisk.
    async fn listed_steps(
        &self,
        request: &Request,
        ident: &str,
        field: &str,
        given: &Option<Vec<CleanStepBody>>,
    ) -> Result<(Vec<RequestedStep>, bool)> {
        let is_quiet = self.disables_ramdisk(request.asked)?;
        let Some(runbook) = self.runbook() else {
            let steps = steps(field, given)?;
            check_child_steps(request, ident, field, &steps).await?;
            return Ok((steps, is_quiet));
        };
        if given.as_ref().is_some_and(|steps| !steps.is_empty()) {
            let problem = format!("cannot be used together with {field}");
            return Err(ApiError::bad_field("runbook", problem).into());
        }
        let runbook = steps_of(request, runbook, &request.node(ident).await?).await?;
        Ok((runbook.steps, is_quiet || runbook.disables_ramdisk))
    }

    /// Whether the steps run without a boot of the ramdisk.
    fn disables_ramdisk(&self, asked: Microversion) -> Result<bool> {
        let Some(disables) = self.disable_ramdisk else { return Ok(false) };
        let since = if self.target == Target::Service {
            since::SERVICE_DISABLES_RAMDISK
        } else {
            since::CLEAN_DISABLES_RAMDISK
        };
        asked.need(since, "disable_ramdisk")?;
        Ok(disables)
    }

    /// The runbook whose steps run. As in Ironic, empty text is none.
    fn runbook(&self) -> Option<&str> {
        self.runbook.as_deref().filter(|runbook| !runbook.is_empty())
    }

    fn deploy_steps(&self, asked: Microversion) -> Result<Vec<DeployStep>> {
        let Some(steps) = &self.deploy_steps else { return Ok(Vec::new()) };
        asked.need(since::DEPLOY_STEPS, "deploy_steps")?;
        Ok(deploy_steps("deploy_steps", steps, &[])?)
    }

    /// The config drive of the request, if there is one.
    fn config_drive(&self, asked: Microversion) -> Result<Option<Value>> {
        let Some(drive) = self.configdrive.as_ref().filter(|drive| !drive.is_null()) else {
            return Ok(None);
        };
        // Ironic refuses a config drive of a later version as a wrong value.
        let known_since = |came: Microversion, form: &str| match asked.has(came) {
            true => Ok(()),
            false => {
                let problem = format!("is known {form} since version {came}");
                Err(ApiError::bad_field("configdrive", problem))
            }
        };
        match self.target {
            Target::Active | Target::Deploy => {}
            Target::Rebuild => known_since(since::REBUILD_CONFIG_DRIVE, "with this target")?,
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
            known_since(since::BUILD_CONFIG_DRIVE, "as an object")?;
        }
        if drive.get("vendor_data").is_some() {
            known_since(since::VENDOR_DATA, "with vendor_data")?;
        }
        for part in ["meta_data", "network_data", "vendor_data"] {
            if drive.get(part).is_some_and(|part| !part.is_object()) {
                let problem = format!("{part} must be an object");
                return Err(ApiError::bad_field("configdrive", problem).into());
            }
        }
        parse_config_drive(drive)?;
        Ok(Some(drive.clone()))
    }
}
