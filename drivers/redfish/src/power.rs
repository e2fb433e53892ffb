//! Power control (DSP0268 `ComputerSystem.Reset`).

use async_trait::async_trait;
use bmc::{BmcError, Power};
use hardware::{PowerChange, PowerState};
use serde_json::{Value, json};
use tracing::debug;

use crate::document::Document;
use crate::message::Message;
use crate::service::{Service, TASK_PATIENCE};

pub(crate) const RESET: &str = "#ComputerSystem.Reset";

/// The values of Redfish's `PowerState`, which are finer than those of the trait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    On,
    PoweringOn,
    Off,
    PoweringOff,
}

#[async_trait]
impl Power for Service {
    async fn state(&self) -> Result<PowerState, BmcError> {
        self.reported(&self.system().await?.body)
    }

    async fn state_once(&self) -> Result<PowerState, BmcError> {
        self.reported(&self.system_and_close().await?.body)
    }

    async fn request(&self, change: PowerChange) -> Result<(), BmcError> {
        let system = self.system().await?.body;
        let phase = phase(&system);
        if is_under_way(change, phase) {
            return Ok(());
        }
        let cannot = |why: &str| BmcError::Unsupported { what: format!("{}{why}", verb(change)) };
        let target = self.action(&system, RESET).ok_or_else(|| cannot(""))?;
        let allowed = self.allowed(&system, RESET, "ResetType").await?;
        for reset in reset_types(change, phase, allowed.as_deref()) {
            let answer = self.post(&target, json!({"ResetType": reset})).await?;
            // If the BMC lists no values, the only way to learn whether it supports one is to try.
            if !answer.status.is_success() && answer.messages().iter().any(is_about_the_value) {
                continue;
            }
            return match answer.accepted(&self.origin.host()) {
                // [`Power::state`] shows the progress: an operating system may take minutes to shut down.
                Ok(answer) => self.watch(answer, TASK_PATIENCE).await.map(|_| ()),
                Err(refusal @ BmcError::Refused { .. }) => {
                    self.ignore_if_done(change, refusal).await
                }
                Err(error) => Err(error),
            };
        }
        let offers = allowed.map(|all| format!(": it offers {}", all.join(", ")));
        Err(cannot(&offers.unwrap_or_default()))
    }
}

impl Service {
    pub(crate) fn reported(&self, system: &Value) -> Result<PowerState, BmcError> {
        match phase(system) {
            // Only a machine that is fully off counts as off: while it powers off, it still writes to its disks.
            Some(Phase::Off) => Ok(PowerState::Off),
            Some(Phase::On | Phase::PoweringOn | Phase::PoweringOff) => Ok(PowerState::On),
            // A BMC that has just started reports null, because it does not know the state yet.
            None => Err(BmcError::Busy {
                host: self.origin.host(),
                reason: "the BMC does not know the power state yet".to_owned(),
            }),
        }
    }

    /// Turns a refusal into success if the machine is already in the wanted state: many BMCs refuse to switch on a machine that is on.
    async fn ignore_if_done(&self, change: PowerChange, refusal: BmcError) -> Result<(), BmcError> {
        match self.system().await {
            Ok(system) if is_under_way(change, phase(&system.body)) => {
                debug!("a refused {change:?} has already happened: {refusal}");
                Ok(())
            }
            Ok(_) | Err(_) => Err(refusal),
        }
    }
}

fn phase(system: &Value) -> Option<Phase> {
    match system.word("PowerState") {
        "On" | "Paused" => Some(Phase::On),
        "PoweringOn" => Some(Phase::PoweringOn),
        "Off" => Some(Phase::Off),
        "PoweringOff" => Some(Phase::PoweringOff),
        _ => None,
    }
}

/// Whether `change` has happened or is in progress.
fn is_under_way(change: PowerChange, phase: Option<Phase>) -> bool {
    match (change, phase) {
        (PowerChange::On, Some(Phase::On | Phase::PoweringOn)) => true,
        (PowerChange::ForceOff, Some(Phase::Off)) => true,
        (PowerChange::SoftOff, Some(Phase::Off | Phase::PoweringOff)) => true,
        // A machine may hang while it powers off; cutting the power ends that, so the request has to be sent.
        (PowerChange::ForceOff, Some(Phase::PoweringOff)) => false,
        (PowerChange::ForceRestart | PowerChange::SoftRestart, _) => false,
        (PowerChange::On | PowerChange::ForceOff | PowerChange::SoftOff, _) => false,
    }
}

/// Returns what `change` does, as a verb phrase.
const fn verb(change: PowerChange) -> &'static str {
    match change {
        PowerChange::On => "switch on",
        PowerChange::ForceOff => "cut the power",
        PowerChange::SoftOff => "ask for a shutdown",
        PowerChange::ForceRestart => "force a restart",
        PowerChange::SoftRestart => "ask for a restart",
    }
}

/// Whether the refusal concerns the value of a parameter (DSP8011, the Base registry).
pub(crate) fn is_about_the_value(message: &Message) -> bool {
    matches!(
        message.key.as_str(),
        "ActionParameterValueNotInList"
            | "ActionParameterValueFormatError"
            | "ActionParameterValueTypeError"
            | "ActionParameterNotSupported"
            | "PropertyValueNotInList"
    )
}

/// Returns the reset types for `change` that the BMC accepts, best first. If the BMC lists none, every type is returned.
fn reset_types(
    change: PowerChange,
    phase: Option<Phase>,
    allowed: Option<&[String]>,
) -> Vec<&'static str> {
    const ON: &[&str] = &["On", "ForceOn"];
    let choices: &[&'static str] = match (change, phase) {
        // The power button toggles, so it is used only if the machine is known to be off.
        (PowerChange::On, Some(Phase::Off)) => &["On", "ForceOn", "PushPowerButton"],
        (PowerChange::On, _) => ON,
        // A BMC that cannot cut the power can still ask the operating system to shut down; the state shows whether that worked.
        (PowerChange::ForceOff, _) => &["ForceOff", "GracefulShutdown"],
        // A short press of the power button asks the operating system to shut down (ACPI 6.5 §4.8.2.2).
        (PowerChange::SoftOff, Some(Phase::On)) => &["GracefulShutdown", "PushPowerButton"],
        (PowerChange::SoftOff, _) => &["GracefulShutdown"],
        // BMCs refuse to reset a machine that is off, so the machine is switched on.
        (PowerChange::ForceRestart | PowerChange::SoftRestart, Some(Phase::Off)) => ON,
        // A power cycle resets the machine too.
        (PowerChange::ForceRestart, _) => &["ForceRestart", "PowerCycle"],
        // The operating system may decline a soft restart, so a forced reset is no substitute.
        (PowerChange::SoftRestart, _) => &["GracefulRestart"],
    };
    let listed = |choice: &&&str| allowed.is_none_or(|all| all.iter().any(|one| one == **choice));
    choices.iter().filter(listed).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(change: PowerChange, phase: Option<Phase>, allowed: &[&str], want: Option<&str>) {
        let allowed: Vec<String> = allowed.iter().map(|&one| one.to_owned()).collect();
        assert_eq!(reset_types(change, phase, Some(&allowed)).first().copied(), want);
    }

    #[test]
    fn the_best_reset_type_is_used_if_listed() {
        let all = ["On", "ForceOff", "GracefulShutdown", "GracefulRestart", "ForceRestart"];
        check(PowerChange::On, Some(Phase::Off), &all, Some("On"));
        check(PowerChange::ForceOff, Some(Phase::On), &all, Some("ForceOff"));
        check(PowerChange::SoftOff, Some(Phase::On), &all, Some("GracefulShutdown"));
        check(PowerChange::ForceRestart, Some(Phase::On), &all, Some("ForceRestart"));
        check(PowerChange::SoftRestart, Some(Phase::On), &all, Some("GracefulRestart"));
    }

    #[test]
    fn the_next_best_listed_reset_type_is_used() {
        check(PowerChange::On, Some(Phase::Off), &["PushPowerButton"], Some("PushPowerButton"));
        check(PowerChange::ForceRestart, Some(Phase::On), &["PowerCycle"], Some("PowerCycle"));
        check(PowerChange::SoftOff, Some(Phase::On), &["PushPowerButton"], Some("PushPowerButton"));
    }

    #[test]
    fn the_button_is_only_pressed_in_a_known_state() {
        check(PowerChange::On, None, &["PushPowerButton"], None);
        check(PowerChange::SoftOff, None, &["PushPowerButton"], None);
    }

    #[test]
    fn a_soft_change_is_never_replaced_by_a_forced_one() {
        check(PowerChange::SoftOff, Some(Phase::On), &["ForceOff"], None);
        check(PowerChange::SoftRestart, Some(Phase::On), &["ForceRestart", "PowerCycle"], None);
    }

    #[test]
    fn a_machine_that_is_off_is_switched_on_instead_of_reset() {
        check(PowerChange::ForceRestart, Some(Phase::Off), &["On", "ForceRestart"], Some("On"));
    }

    #[test]
    fn without_a_list_every_reset_type_is_tried() {
        let tried = reset_types(PowerChange::ForceRestart, Some(Phase::On), None);
        assert_eq!(tried, ["ForceRestart", "PowerCycle"]);
    }
}
