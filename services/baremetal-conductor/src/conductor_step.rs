//! The steps that the conductor runs itself.

use baremetal_core::{
    APPLY_BIOS_SETTINGS, ActionOutcome, BiosInterface, Interface, Node, Problem,
    RESET_BIOS_SETTINGS, Reason, Step, Task, Work, parse_bios_settings,
};
use bmc::Bmc;
use tracing::info;

use crate::context::TurnContext;
use crate::problem::ActionError;

impl TurnContext {
    /// Runs the current step of a node: a step that its BMC carries out, or one of a fake interface. Of these, only changes of BIOS settings
    /// have an effect, and every other step only appears in the log. Each step may run twice without harm.
    pub(crate) async fn conductor_step(
        &self,
        node: &Node,
        bmc: &Bmc,
    ) -> Result<ActionOutcome, ActionError> {
        let done = || Ok(ActionOutcome::TaskDone(Box::new(node.clone())));
        let Some(Task::Step(step)) = node.work.as_ref().and_then(Work::task) else { return done() };
        info!(node.id = %node.id, "running the {} step {}", step.kind.as_str(), step.name);
        let is_real = node.bios_interface() == BiosInterface::Redfish;
        match (step.name.interface, step.name.step.as_str()) {
            (Interface::Bios, APPLY_BIOS_SETTINGS) if is_real => {
                return self.request_bios(node, bmc, step).await;
            }
            (Interface::Bios, RESET_BIOS_SETTINGS) if is_real => {
                return self.request_bios_reset(node, bmc).await;
            }
            (Interface::Bios, APPLY_BIOS_SETTINGS) => self.apply_bios_settings(node, step).await?,
            (Interface::Bios, RESET_BIOS_SETTINGS) => {
                self.store.reset_bios_settings(node.id).await?;
            }
            _ => {}
        }
        done()
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
