//! BIOS settings by the BMC: read, requested, and confirmed after a restart of the machine.

use std::sync::Arc;

use baremetal_core::{
    APPLY_BIOS_SETTINGS, ActionOutcome, NamedAttributes, NamedValues, Node, Problem, Reason, Step,
    Task, Work, bios_not_applied, bios_values, parse_bios_settings, recorded_bios_settings,
};
use baremetal_store::StoreError;
use bmc::{Bios, Bmc, BmcError};
use hardware::BiosValues;
use tracing::{debug, warn};

use crate::context::TurnContext;
use crate::problem::{self, Result, cannot};

/// The settings of a machine with their descriptions.
struct BiosReading {
    values: BiosValues,
    attributes: NamedAttributes,
}

impl BiosReading {
    async fn of(bios: &dyn Bios) -> Result<BiosReading, BmcError> {
        Ok(BiosReading { values: bios.values().await?, attributes: bios.attributes().await? })
    }

    /// Converts the settings that `step` requests to values of this machine.
    fn wanted_by(&self, step: &Step) -> Result<NamedValues, Problem> {
        let wrong = |cause| Problem { reason: Reason::BadRequest, cause, transient: false };
        let wanted = parse_bios_settings(&step.args).map_err(|why| wrong(why.to_string()))?;
        bios_values(&wanted, &self.values, &self.attributes).map_err(|why| wrong(why.to_string()))
    }
}

impl TurnContext {
    /// Reads the settings and the versions of the firmware, as far as the interfaces of the node want, and returns the node with the versions.
    pub(crate) async fn read_firmware(&self, node: &Node, bmc: &Bmc) -> Result<Node, StoreError> {
        if node.bios_interface().is_redfish() {
            self.read_bios(node, bmc).await?;
        }
        let Some(inspection) =
            bmc.inspection.as_ref().filter(|_| node.firmware_interface().is_redfish())
        else {
            return Ok(node.clone());
        };
        match inspection.main_firmware().await {
            Ok(versions) => Ok(node.with_firmware(&versions, self.now())),
            Err(error) => {
                let error = problem::chain(&error);
                warn!(error, "the versions of the firmware of node {} cannot be read", node.id);
                Ok(node.clone())
            }
        }
    }

    /// Reads the settings and stores them. A BMC that cannot show them is logged, as in Ironic.
    async fn read_bios(&self, node: &Node, bmc: &Bmc) -> Result<(), StoreError> {
        let Some(bios) = &bmc.bios else { return Ok(()) };
        match BiosReading::of(&**bios).await {
            Ok(reading) => self.record_bios(node, &reading).await,
            Err(BmcError::Unsupported { what }) => {
                debug!("the BMC of node {} cannot {what}", node.id);
                Ok(())
            }
            Err(error) => {
                warn!(
                    error = problem::chain(&error),
                    "the BIOS settings of node {} cannot be read", node.id
                );
                Ok(())
            }
        }
    }

    /// Requests the settings that `step` names, after all of them were checked. Nothing is requested if all of them are in force.
    pub(crate) async fn request_bios(
        &self,
        node: &Node,
        bmc: &Bmc,
        step: &Step,
    ) -> Result<ActionOutcome> {
        let bios = changeable(node, bmc)?;
        let reading = BiosReading::of(&*bios).await.map_err(|error| self.note_bmc(node, &error))?;
        let wanted = reading.wanted_by(step)?;
        if bios_not_applied(&wanted, &reading.values).is_empty() {
            self.record_bios(node, &reading).await?;
            return Ok(ActionOutcome::TaskDone(Box::new(node.clone())));
        }
        bios.request(&wanted).await.map_err(|error| self.note_bmc(node, &error))?;
        Ok(ActionOutcome::BiosAccepted)
    }

    /// Requests the settings of the factory.
    pub(crate) async fn request_bios_reset(&self, node: &Node, bmc: &Bmc) -> Result<ActionOutcome> {
        let bios = changeable(node, bmc)?;
        bios.request_reset().await.map_err(|error| self.note_bmc(node, &error))?;
        Ok(ActionOutcome::BiosAccepted)
    }

    /// Looks whether the firmware has the settings that the current task confirms, and stores its settings if it has.
    pub(crate) async fn confirm_bios(&self, node: &Node, bmc: &Bmc) -> Result<ActionOutcome> {
        let done = || Ok(ActionOutcome::TaskDone(Box::new(node.clone())));
        let task = node.work.as_ref().and_then(Work::task);
        let Some(Task::ConfirmBios { step, .. }) = task else { return done() };
        let bios = bmc.bios.clone().ok_or_else(|| cannot("show BIOS settings"))?;
        let reading = BiosReading::of(&*bios).await.map_err(|error| self.note_bmc(node, &error))?;
        if step.name.step == APPLY_BIOS_SETTINGS {
            let missing = bios_not_applied(&reading.wanted_by(step)?, &reading.values);
            if !missing.is_empty() {
                let messages = &reading.values.messages;
                let told = match messages.is_empty() {
                    true => String::new(),
                    false => format!(" (the BMC: {})", messages.join(" ")),
                };
                let what = format!("the BIOS settings {}{told}", missing.join(", "));
                return Ok(ActionOutcome::BiosNotApplied(what));
            }
        }
        self.record_bios(node, &reading).await?;
        done()
    }

    async fn record_bios(&self, node: &Node, reading: &BiosReading) -> Result<(), StoreError> {
        let settings = recorded_bios_settings(&reading.values, &reading.attributes);
        self.store.apply_bios_settings(node.id, &settings, self.now()).await
    }
}

/// Returns the settings of a machine that may be restarted.
fn changeable(node: &Node, bmc: &Bmc) -> Result<Arc<dyn Bios>, Problem> {
    if node.disable_power_off {
        let cause = "BIOS settings take effect when the machine starts again, and the node has disable_power_off set";
        let (reason, cause) = (Reason::NeedsRestart, cause.to_owned());
        return Err(Problem { reason, cause, transient: false });
    }
    bmc.bios.clone().ok_or_else(|| cannot("change BIOS settings"))
}
