//! The steps that the conductor runs itself.

use baremetal_core::{
    APPLY_BIOS_SETTINGS, ActionOutcome, CLEAR_SECURE_BOOT_KEYS, Interface, Node,
    RESET_BIOS_SETTINGS, RESET_SECURE_BOOT_KEYS, SET_BMC_CLOCK, Step, Task, UPDATE_FIRMWARE, Work,
    parse_bios_settings, parse_clock_setting,
};
use bmc::Bmc;
use hardware::SecureBootKeys;
use tracing::info;

use crate::context::TurnContext;
use crate::problem::{Result, bad_request, cannot};

impl TurnContext {
    /// Runs the current step of a node: a step that its BMC carries out, or one of a fake interface. Of the fake steps, only changes of BIOS
    /// settings have an effect, and every other one only appears in the log. Each step may run twice without harm.
    pub(crate) async fn conductor_step(&self, node: &Node, bmc: &Bmc) -> Result<ActionOutcome> {
        let done = || Ok(ActionOutcome::TaskDone(Box::new(node.clone())));
        let Some(Task::Step(step)) = node.work.as_ref().and_then(Work::task) else { return done() };
        info!(node.id = %node.id, "running the {} step {}", step.kind.as_str(), step.name);
        let is_real = node.bios_interface().is_redfish();
        match (step.name.interface, step.name.step.as_str()) {
            (Interface::Bios, APPLY_BIOS_SETTINGS) if is_real => {
                return self.request_bios(node, bmc, step).await;
            }
            (Interface::Bios, RESET_BIOS_SETTINGS) if is_real => {
                return self.request_bios_reset(node, bmc).await;
            }
            (Interface::Firmware, UPDATE_FIRMWARE) if node.firmware_interface().is_redfish() => {
                return self.check_firmware_updates(node, bmc, step).await;
            }
            (Interface::Raid, _) if node.raid_interface().is_redfish() => {
                return self.check_raid_step(node, bmc, step).await;
            }
            (Interface::Management, RESET_SECURE_BOOT_KEYS) => {
                self.replace_secure_boot_keys(node, bmc, SecureBootKeys::Factory).await?;
            }
            (Interface::Management, CLEAR_SECURE_BOOT_KEYS) => {
                self.replace_secure_boot_keys(node, bmc, SecureBootKeys::None).await?;
            }
            (Interface::Management, SET_BMC_CLOCK) => self.set_bmc_clock(node, bmc, step).await?,
            (Interface::Bios, APPLY_BIOS_SETTINGS) => self.apply_bios_settings(node, step).await?,
            (Interface::Bios, RESET_BIOS_SETTINGS) => {
                self.store.reset_bios_settings(node.id).await?;
            }
            _ => {}
        }
        done()
    }

    /// Replaces the keys of Secure Boot. The step does not restart the machine, although some firmware replaces its keys only then; Ironic's
    /// step does not restart it either.
    async fn replace_secure_boot_keys(
        &self,
        node: &Node,
        bmc: &Bmc,
        wanted: SecureBootKeys,
    ) -> Result<()> {
        let settings = bmc.boot_settings.clone();
        let settings = settings.ok_or_else(|| cannot("replace the keys of secure boot"))?;
        settings.request_keys(wanted).await.map_err(|error| self.note_bmc(node, &error))?;
        Ok(())
    }

    async fn set_bmc_clock(&self, node: &Node, bmc: &Bmc, step: &Step) -> Result<()> {
        let wanted = parse_clock_setting(&step.args);
        let wanted = wanted.map_err(|why| bad_request(why.to_string()))?;
        let clock = bmc.clock.clone().ok_or_else(|| cannot("set its clock"))?;
        let time = wanted.time.unwrap_or_else(|| self.now());
        let set = clock.set_clock(time, wanted.offset).await;
        Ok(set.map_err(|error| self.note_bmc(node, &error))?)
    }

    async fn apply_bios_settings(&self, node: &Node, step: &Step) -> Result<()> {
        let settings = parse_bios_settings(&step.args);
        let settings = settings.map_err(|why| bad_request(why.to_string()))?;
        Ok(self.store.apply_bios_settings(node.id, &settings, self.now()).await?)
    }
}
