//! `/bedplate/v1/nodes/{node}/plan`: the tasks and steps of a change of provision state, before it is requested and while it runs.

use axum::response::Response;
use baremetal_core::{
    Node, NodeUuid, OfferedStep, PreviewRefused, Step, StepRunner, Task, after_drain, preview,
};
use http::StatusCode;
use openstack_api::{
    ApiError, JsonShape, PathParam, Query, Route, Routes, Shaped, Time, json, shaped,
};
use serde::Serialize;

use crate::app::App;
use crate::error::{Error, Result};
use crate::provision::planned_verb;
use crate::request::Request;
use crate::secret::Masked;
use crate::{microversion, rule};

pub(crate) fn routes() -> Routes<App> {
    let show = Route::get("Show the tasks and steps of a change of provision state", show)
        .with_rule(rule::READ_DETAILS)
        .query_parameters(["target", "runbook"])
        .returns(Body::shape());
    Routes::new("bedplate").at("/bedplate/v1/nodes/{node}/plan", [show])
}

shaped! {
    #[derive(Serialize)]
    struct Body<'a> {
        uuid: NodeUuid,
        /// The requested target; null for the work in progress.
        target: Option<&'static str>,
        /// The compute host that is drained first.
        drains: Option<String>,
        tasks: Vec<TaskView<'a>>,
        /// Why the steps cannot run.
        problem: Option<String>,
        offered: Option<OfferedView<'a>>,
    }
}

shaped! {
    #[derive(Serialize)]
    struct TaskView<'a> {
        what: String,
        /// `done`, `current` or `planned`.
        state: &'static str,
        step: Option<StepView<'a>>,
    }
}

shaped! {
    #[derive(Serialize)]
    struct StepView<'a> {
        interface: &'static str,
        step: &'a str,
        priority: u32,
        args: Masked<'a> = JsonShape::any_object(),
        /// The program that runs the step: `agent` or `conductor`.
        runner: StepRunner = JsonShape::text(),
        reboots: bool,
    }
}

shaped! {
    /// The steps that can run.
    #[derive(Serialize)]
    struct OfferedView<'a> {
        /// When the agent listed its steps; null without such a list.
        listed_at: Option<Time>,
        /// Whether the list is complete. Otherwise the steps of the agent are unknown until it lists them.
        complete: bool,
        steps: Vec<OfferedStepView<'a>>,
    }
}

shaped! {
    #[derive(Serialize)]
    struct OfferedStepView<'a> {
        interface: &'static str,
        step: &'a str,
        priority: u32,
        args: Vec<ArgumentView<'a>>,
        runner: StepRunner = JsonShape::text(),
        reboots: bool,
    }
}

shaped! {
    #[derive(Serialize)]
    struct ArgumentView<'a> {
        name: &'a str,
        description: &'a str,
        required: bool,
    }
}

impl<'a> TaskView<'a> {
    fn new(task: &'a Task, state: &'static str) -> Self {
        let step = task.step().map(StepView::from);
        TaskView { what: task.describe().into_owned(), state, step }
    }
}

impl<'a> From<&'a Step> for StepView<'a> {
    fn from(step: &'a Step) -> Self {
        StepView {
            interface: step.name.interface.as_str(),
            step: &step.name.step,
            priority: step.priority,
            args: Masked(&step.args),
            runner: step.runner,
            reboots: step.reboots,
        }
    }
}

impl<'a> From<&'a OfferedStep> for OfferedStepView<'a> {
    fn from(offered: &'a OfferedStep) -> Self {
        let args = offered.args.iter().map(|(name, argument)| ArgumentView {
            name,
            description: &argument.description,
            required: argument.is_required,
        });
        OfferedStepView {
            interface: offered.name.interface.as_str(),
            step: &offered.name.step,
            priority: offered.priority,
            args: args.collect(),
            runner: offered.runner,
            reboots: offered.reboots,
        }
    }
}

impl From<PreviewRefused> for Error {
    fn from(why: PreviewRefused) -> Self {
        match why {
            PreviewRefused::Request(why) => Error::Refused(why),
            PreviewRefused::Illegal(why) => Error::Api(ApiError::broken(why.to_string())),
        }
    }
}

/// `GET /bedplate/v1/nodes/{node}/plan`: the plan of the change to the provision state `target`, or of the work in progress without `target`.
async fn show(
    request: Request,
    PathParam(ident): PathParam<String>,
    mut query: Query,
) -> Result<Response> {
    let request = Request { asked: microversion::MAXIMUM, ..request };
    let (target, runbook) = (query.take("target"), query.take("runbook"));
    query.finish()?;
    let node = request.node(&ident).await?;
    match (target, runbook) {
        (Some(target), runbook) => planned(&request, &ident, &node, &target, runbook).await,
        (None, None) => in_progress(&node),
        (None, Some(_)) => Err(ApiError::bad_field("runbook", "goes only with a target").into()),
    }
}

/// Shows what a request with this target would do.
async fn planned(
    request: &Request,
    ident: &str,
    node: &Node,
    target: &str,
    runbook: Option<String>,
) -> Result<Response> {
    let verb = planned_verb(request, (ident, node), target, runbook).await?;
    let kind = verb.verb.step_kind();
    let listed = match kind {
        Some(kind) => request.app.store.find_listed_steps(node.id, kind).await?,
        None => None,
    };
    let (target, now) = (verb.verb, (request.app.clock)());
    let priorities = request.app.conductor.step_priorities();
    let plan = preview(node, verb, listed.as_ref(), priorities, now)?;
    let listed_at = listed.map(|list| Time(list.listed_at));
    let body = Body {
        uuid: node.id,
        target: Some(target.as_str()),
        drains: after_drain(target).and_then(|_| request.app.conductor.host_to_drain(node, &[])),
        tasks: plan.tasks.iter().map(|task| TaskView::new(task, "planned")).collect(),
        problem: plan.problem.map(|why| why.to_string()),
        offered: plan.offered.as_ref().map(|steps| OfferedView {
            listed_at,
            complete: !plan.lacks_list,
            steps: steps.iter().map(OfferedStepView::from).collect(),
        }),
    };
    Ok(json(StatusCode::OK, &body))
}

/// Shows the tasks of the work in progress.
fn in_progress(node: &Node) -> Result<Response> {
    let Some(work) = &node.work else {
        let problem = "is required, because the node has no work in progress";
        return Err(ApiError::bad_field("target", problem).into());
    };
    let state = |at: usize| match at.cmp(&work.cursor) {
        std::cmp::Ordering::Less => "done",
        std::cmp::Ordering::Equal => "current",
        std::cmp::Ordering::Greater => "planned",
    };
    let tasks = work.tasks.iter().enumerate();
    let body = Body {
        uuid: node.id,
        target: None,
        drains: None,
        tasks: tasks.map(|(at, task)| TaskView::new(task, state(at))).collect(),
        problem: None,
        offered: None,
    };
    Ok(json(StatusCode::OK, &body))
}
