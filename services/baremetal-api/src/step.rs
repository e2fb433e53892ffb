//! Steps in requests: clean steps, deploy steps, and the steps of deploy templates and runbooks.

use baremetal_core::{
    ChildNodes, DeployStep, Interface, NodeUuid, RequestedStep, RunbookStep, StepName,
};
use openstack_api::ApiError;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::secret::restore_masked;

/// The maximum length of the name of a step, in characters.
const MAX_NAME: usize = 255;

/// The most child nodes that a step can name.
const MAX_CHILDREN: usize = 1000;

/// An interface that can have steps.
#[derive(Clone, Copy, Deserialize, PartialEq, Eq, ToSchema)]
#[serde(rename_all = "snake_case")]
enum StepInterface {
    Vendor,
    Power,
    Management,
    Firmware,
    Deploy,
    Bios,
    Raid,
}

/// A clean step in a request.
#[derive(Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CleanStepBody {
    #[schema(inline)]
    interface: StepInterface,
    #[schema(min_length = 1, max_length = 255)]
    step: String,
    #[serde(default)]
    args: Map<String, Value>,
    /// Whether the step runs on the child nodes of the node, instead of the node.
    #[serde(default)]
    execute_on_child_nodes: bool,
    /// The child nodes on which the step runs, by UUID; all without any.
    #[serde(default)]
    limit_child_node_execution: Vec<String>,
}

/// A deploy step in a request or in a deploy template.
#[derive(Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeployStepBody {
    #[schema(inline)]
    interface: StepInterface,
    #[schema(min_length = 1, max_length = 255)]
    step: String,
    args: Map<String, Value>,
    /// The place among the deploy steps, the highest first; 0 leaves the step out.
    #[schema(inline)]
    priority: WholeNumber,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunbookStepBody {
    interface: StepInterface,
    step: String,
    #[serde(default)]
    args: Map<String, Value>,
    /// The place among the steps, the lowest first.
    order: WholeNumber,
}

/// A whole number, also as text.
#[derive(Clone, Deserialize, ToSchema)]
#[serde(untagged)]
enum WholeNumber {
    Number(u32),
    Text(String),
}

impl From<StepInterface> for Interface {
    fn from(interface: StepInterface) -> Self {
        match interface {
            StepInterface::Vendor => Interface::Vendor,
            StepInterface::Power => Interface::Power,
            StepInterface::Management => Interface::Management,
            StepInterface::Firmware => Interface::Firmware,
            StepInterface::Deploy => Interface::Deploy,
            StepInterface::Bios => Interface::Bios,
            StepInterface::Raid => Interface::Raid,
        }
    }
}

impl CleanStepBody {
    /// The requested step; `field` names its place in the request. The machine says later whether it offers the step.
    pub(crate) fn requested(&self, field: &str) -> Result<RequestedStep, ApiError> {
        let step = requested_step(field, self.interface, &self.step, &self.args, |_| None)?;
        let step = RequestedStep { children: self.children(field)?, ..step };
        let refused = |why| ApiError::bad_field(&format!("{field}.execute_on_child_nodes"), why);
        step.check_on_children().map_err(refused)?;
        Ok(step)
    }

    fn children(&self, field: &str) -> Result<Option<ChildNodes>, ApiError> {
        let refused = |problem: String| {
            ApiError::bad_field(&format!("{field}.limit_child_node_execution"), problem)
        };
        let named = &self.limit_child_node_execution;
        match (self.execute_on_child_nodes, named.as_slice()) {
            (false, []) => Ok(None),
            (false, _) => Err(refused("goes only with execute_on_child_nodes".to_owned())),
            (true, []) => Ok(Some(ChildNodes::All)),
            (true, named) if named.len() > MAX_CHILDREN => {
                Err(refused(format!("names more than {MAX_CHILDREN} nodes")))
            }
            (true, named) => {
                let id = |text: &String| {
                    let parsed = text.parse::<NodeUuid>();
                    parsed.map_err(|_| refused(format!("{:?} is no UUID", shortened(text))))
                };
                Ok(Some(ChildNodes::Named(named.iter().map(id).collect::<Result<_, _>>()?)))
            }
        }
    }
}

impl DeployStepBody {
    /// The requested step; `field` names its place in the request. A masked secret is replaced by the one of the same step in `before`.
    pub(crate) fn requested(
        &self,
        field: &str,
        before: &[DeployStep],
    ) -> Result<DeployStep, ApiError> {
        let known = |name: &StepName| before.iter().map(|it| &it.step).find(|it| it.name == *name);
        let step = requested_step(field, self.interface, &self.step, &self.args, known)?;
        let priority = self.priority.parsed(&format!("{field}.priority"))?;
        Ok(DeployStep { step, priority })
    }
}

impl RunbookStepBody {
    /// Like [`DeployStepBody::requested`].
    pub(crate) fn requested(
        &self,
        field: &str,
        before: &[RunbookStep],
    ) -> Result<RunbookStep, ApiError> {
        let known = |name: &StepName| before.iter().map(|it| &it.step).find(|it| it.name == *name);
        let step = requested_step(field, self.interface, &self.step, &self.args, known)?;
        let order = self.order.parsed(&format!("{field}.order"))?;
        Ok(RunbookStep { step, order })
    }
}

impl WholeNumber {
    fn parsed(&self, field: &str) -> Result<u32, ApiError> {
        let parsed = match self {
            WholeNumber::Number(number) => Some(*number),
            WholeNumber::Text(text) => text.parse().ok(),
        };
        parsed.ok_or_else(|| ApiError::bad_field(field, "must be a whole number"))
    }
}

/// The requested step. A masked secret is replaced by the one of the step that `known` returns.
fn requested_step<'k>(
    field: &str,
    interface: StepInterface,
    step: &str,
    args: &Map<String, Value>,
    known: impl Fn(&StepName) -> Option<&'k RequestedStep>,
) -> Result<RequestedStep, ApiError> {
    let name = name(field, interface, step)?;
    let (nothing, mut args) = (Map::new(), args.clone());
    let known = known(&name).map_or(&nothing, |known| &known.args);
    restore_masked(&format!("{field}.args"), known, &mut args)?;
    Ok(RequestedStep { name, args, children: None })
}

/// The beginning of a text of a client, for a message.
fn shortened(text: &str) -> String {
    text.chars().take(64).collect()
}

fn name(field: &str, interface: StepInterface, step: &str) -> Result<StepName, ApiError> {
    if !(1..=MAX_NAME).contains(&step.chars().count()) || step.contains('\0') {
        let problem = format!("needs 1 to {MAX_NAME} characters without NUL");
        return Err(ApiError::bad_field(&format!("{field}.step"), problem));
    }
    Ok(StepName { interface: interface.into(), step: step.to_owned() })
}

/// Returns the deploy steps of `field` in a request. Refuses a step that is requested twice.
pub(crate) fn deploy_steps(
    field: &str,
    bodies: &[DeployStepBody],
    before: &[DeployStep],
) -> Result<Vec<DeployStep>, ApiError> {
    let mut steps: Vec<DeployStep> = Vec::with_capacity(bodies.len());
    for (at, body) in bodies.iter().enumerate() {
        let step = body.requested(&format!("{field}[{at}]"), before)?;
        check_new(field, &step.step, steps.iter().map(|known| &known.step))?;
        steps.push(step);
    }
    Ok(steps)
}

/// Returns the steps of a runbook. Refuses a step that the runbook has twice.
pub(crate) fn runbook_steps(
    field: &str,
    bodies: &[RunbookStepBody],
    before: &[RunbookStep],
) -> Result<Vec<RunbookStep>, ApiError> {
    let mut steps: Vec<RunbookStep> = Vec::with_capacity(bodies.len());
    for (at, body) in bodies.iter().enumerate() {
        let step = body.requested(&format!("{field}[{at}]"), before)?;
        check_new(field, &step.step, steps.iter().map(|known| &known.step))?;
        steps.push(step);
    }
    Ok(steps)
}

/// Refuses a step that is one of `known`.
fn check_new<'k>(
    field: &str,
    step: &RequestedStep,
    mut known: impl Iterator<Item = &'k RequestedStep>,
) -> Result<(), ApiError> {
    if known.any(|known| known.name == step.name) {
        let problem = format!("the step {} is requested twice", step.name);
        return Err(ApiError::bad_field(field, problem));
    }
    Ok(())
}
