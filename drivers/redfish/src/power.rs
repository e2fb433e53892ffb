//! Switching on and off (DSP0268 `ComputerSystem.Reset`).

use std::time::Duration;

use async_trait::async_trait;
use bmc::{BmcError, Power};
use hardware::{PowerChange, PowerState};
use serde_json::{Value, json};
use tracing::debug;

use crate::document::Document;
use crate::message::Message;
use crate::service::Service;

const RESET: &str = "#ComputerSystem.Reset";

/// How long a reset's task is watched for a failure. It is accepted in any case; `state` tells
/// the rest, and a shutdown may take the operating system minutes.
const TASK_PATIENCE: Duration = Duration::from_secs(3);

/// `PowerState` in more detail than the trait has.
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
        self.told(&self.system().await?.body)
    }

    async fn glance(&self) -> Result<PowerState, BmcError> {
        self.told(&self.system_at_last().await?.body)
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
            // Where nothing lists the values, trying is the only way to find out.
            if !answer.status.is_success() && answer.messages().iter().any(is_about_the_value) {
                continue;
            }
            return match answer.accepted(&self.origin.host()) {
                Ok(answer) => self.watch(answer, TASK_PATIENCE).await.map(|_| ()),
                Err(refusal @ BmcError::Refused { .. }) => self.forgive(change, refusal).await,
                Err(error) => Err(error),
            };
        }
        let offers = allowed.map(|all| format!(": it offers {}", all.join(", ")));
        Err(cannot(&offers.unwrap_or_default()))
    }
}

impl Service {
    fn told(&self, system: &Value) -> Result<PowerState, BmcError> {
        match phase(system) {
            // Off is only what is off for good: a machine on its way there still writes to disks.
            Some(Phase::Off) => Ok(PowerState::Off),
            Some(Phase::On | Phase::PoweringOn | Phase::PoweringOff) => Ok(PowerState::On),
            // Null is how a BMC that has just started says that it does not know yet.
            None => Err(BmcError::Busy {
                host: self.origin.host(),
                reason: "it does not know yet whether the machine is on".to_owned(),
            }),
        }
    }

    /// Many BMCs refuse to switch on what is on. Such a refusal is none if the state is right.
    async fn forgive(&self, change: PowerChange, refusal: BmcError) -> Result<(), BmcError> {
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

/// Whether `change` has happened or is happening.
fn is_under_way(change: PowerChange, phase: Option<Phase>) -> bool {
    match (change, phase) {
        (PowerChange::On, Some(Phase::On | Phase::PoweringOn)) => true,
        (PowerChange::ForceOff, Some(Phase::Off)) => true,
        (PowerChange::SoftOff, Some(Phase::Off | Phase::PoweringOff)) => true,
        // A machine on its way off may hang there, which is what force is for.
        (PowerChange::ForceOff, Some(Phase::PoweringOff)) => false,
        (PowerChange::ForceRestart | PowerChange::SoftRestart, _) => false,
        (PowerChange::On | PowerChange::ForceOff | PowerChange::SoftOff, _) => false,
    }
}

/// What `change` does, as a verb phrase.
const fn verb(change: PowerChange) -> &'static str {
    match change {
        PowerChange::On => "switch on",
        PowerChange::ForceOff => "cut the power",
        PowerChange::SoftOff => "ask for a shutdown",
        PowerChange::ForceRestart => "force a restart",
        PowerChange::SoftRestart => "ask for a restart",
    }
}

/// Whether a refusal is about the value of a parameter (DSP8011, the Base registry).
fn is_about_the_value(message: &Message) -> bool {
    matches!(
        message.key.as_str(),
        "ActionParameterValueNotInList"
            | "ActionParameterValueFormatError"
            | "ActionParameterValueTypeError"
            | "ActionParameterNotSupported"
            | "PropertyValueNotInList"
    )
}

/// What to send for `change`, best first, of what the BMC takes. Without a list everything may do.
fn reset_types(
    change: PowerChange,
    phase: Option<Phase>,
    allowed: Option<&[String]>,
) -> Vec<&'static str> {
    const ON: &[&str] = &["On", "ForceOn"];
    let choices: &[&'static str] = match (change, phase) {
        // The button only where it is known what it will do.
        (PowerChange::On, Some(Phase::Off)) => &["On", "ForceOn", "PushPowerButton"],
        (PowerChange::On, _) => ON,
        // A BMC that cannot cut the power can at least ask; whether it helped shows in the state.
        (PowerChange::ForceOff, _) => &["ForceOff", "GracefulShutdown"],
        // The button held briefly is how a person asks the operating system (ACPI 6.5 §4.8.2.2).
        (PowerChange::SoftOff, Some(Phase::On)) => &["GracefulShutdown", "PushPowerButton"],
        (PowerChange::SoftOff, _) => &["GracefulShutdown"],
        // What is off cannot be reset: BMCs refuse. It is switched on.
        (PowerChange::ForceRestart | PowerChange::SoftRestart, Some(Phase::Off)) => ON,
        // A power cycle resets too, only more thoroughly.
        (PowerChange::ForceRestart, _) => &["ForceRestart", "PowerCycle"],
        // Nothing forceful stands in for a request that the operating system may decline.
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
    fn the_first_choice_is_taken_where_it_is_offered() {
        let all = ["On", "ForceOff", "GracefulShutdown", "GracefulRestart", "ForceRestart"];
        check(PowerChange::On, Some(Phase::Off), &all, Some("On"));
        check(PowerChange::ForceOff, Some(Phase::On), &all, Some("ForceOff"));
        check(PowerChange::SoftOff, Some(Phase::On), &all, Some("GracefulShutdown"));
        check(PowerChange::ForceRestart, Some(Phase::On), &all, Some("ForceRestart"));
        check(PowerChange::SoftRestart, Some(Phase::On), &all, Some("GracefulRestart"));
    }

    #[test]
    fn the_next_best_stands_in() {
        check(PowerChange::On, Some(Phase::Off), &["PushPowerButton"], Some("PushPowerButton"));
        check(PowerChange::ForceRestart, Some(Phase::On), &["PowerCycle"], Some("PowerCycle"));
        check(PowerChange::SoftOff, Some(Phase::On), &["PushPowerButton"], Some("PushPowerButton"));
    }

    #[test]
    fn the_button_is_never_pushed_blindly() {
        check(PowerChange::On, None, &["PushPowerButton"], None);
        check(PowerChange::SoftOff, None, &["PushPowerButton"], None);
    }

    #[test]
    fn nothing_forceful_stands_in_for_something_soft() {
        check(PowerChange::SoftOff, Some(Phase::On), &["ForceOff"], None);
        check(PowerChange::SoftRestart, Some(Phase::On), &["ForceRestart", "PowerCycle"], None);
    }

    #[test]
    fn a_machine_that_is_off_is_switched_on_instead_of_reset() {
        check(PowerChange::ForceRestart, Some(Phase::Off), &["On", "ForceRestart"], Some("On"));
    }

    #[test]
    fn without_a_list_everything_may_do() {
        let tried = reset_types(PowerChange::ForceRestart, Some(Phase::On), None);
        assert_eq!(tried, ["ForceRestart", "PowerCycle"]);
    }
}
