//! Steps in requests: clean steps, deploy steps, and the steps of deploy templates.

use baremetal_core::{DeployStep, Interface, RequestedStep, StepName};
use openstack_api::ApiError;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::secret::restore_masked;

/// The maximum length of the name of a step, in characters.
const MAX_NAME: usize = 255;

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
    priority: Priority,
}

/// A whole number, also as text.
#[derive(Clone, Deserialize, ToSchema)]
#[serde(untagged)]
enum Priority {
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
        let name = name(field, self.interface, &self.step)?;
        let mut args = self.args.clone();
        restore_masked(&format!("{field}.args"), &Map::new(), &mut args)?;
        Ok(RequestedStep { name, args })
    }
}

impl DeployStepBody {
    /// The requested step; `field` names its place in the request. A masked secret is replaced by the one of the same step in `before`.
    pub(crate) fn requested(
        &self,
        field: &str,
        before: &[DeployStep],
    ) -> Result<DeployStep, ApiError> {
        let name = name(field, self.interface, &self.step)?;
        let priority = match &self.priority {
            Priority::Number(number) => Some(*number),
            Priority::Text(text) => text.parse().ok(),
        };
        let priority = priority.ok_or_else(|| {
            ApiError::bad_field(&format!("{field}.priority"), "must be a whole number")
        })?;
        let known = before.iter().find(|known| known.step.name == name);
        let (nothing, mut args) = (Map::new(), self.args.clone());
        let known = known.map_or(&nothing, |known| &known.step.args);
        restore_masked(&format!("{field}.args"), known, &mut args)?;
        Ok(DeployStep { step: RequestedStep { name, args }, priority })
    }
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
        if steps.iter().any(|known| known.step.name == step.step.name) {
            let problem = format!("the step {} is requested twice", step.step.name);
            return Err(ApiError::bad_field(field, problem));
        }
        steps.push(step);
    }
    Ok(steps)
}
