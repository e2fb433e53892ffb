//! The steps that the conductor runs itself.

use baremetal_core::{Interface, Node, Problem, Reason, Step, Task, Work, parse_bios_settings};
use tracing::info;

use crate::context::TurnContext;
use crate::problem::ActionError;

impl TurnContext {
    /// Runs the current step of a node, one of a fake interface: the BIOS settings change, and every other step only appears in the log.
    /// Each step may run twice without harm.
    pub(crate) async fn conductor_step(&self, node: &Node) -> Result<(), ActionError> {
        let Some(Task::Step(step)) = node.work.as_ref().and_then(Work::task) else { return Ok(()) };
        info!(node.id = %node.id, "running the {} step {}", step.kind.as_str(), step.name);
        match (step.name.interface, step.name.step.as_str()) {
            (Interface::Bios, "apply_configuration") => self.apply_bios_settings(node, step).await,
            (Interface::Bios, "factory_reset") => {
                Ok(self.store.reset_bios_settings(node.id).await?)
            }
            _ => Ok(()),
        }
    }

    async fn apply_bios_settings(&self, node: &Node, step: &Step) -> Result<(), ActionError> {
        let settings = parse_bios_settings(&step.args).map_err(|why| Problem {
            reason: Reason::BadRequest,
            cause: why.to_string(),
            transient: false,
        })?;
        Ok(self.store.apply_bios_settings(node.id, &settings, self.now()).await?)
    }
}
