//! Steps that a BMC carries out without the ramdisk, and the requests that it accepted.

use bmc_emulator::{Outcome, Request};
use lab::{Lab, Node, RackedMachine, Settings};
use serde_json::{Value, json};

/// Short intervals, because a BMC is asked again and again what became of a request.
pub(crate) fn settings() -> Settings {
    Settings { ask_again: "200ms", poll_every: "50ms", ..Settings::default() }
}

/// Requests cleaning by these steps, without the ramdisk.
pub(crate) async fn cleans(lab: &Lab, node: Node, steps: &Value) {
    let body = json!({"target": "clean", "clean_steps": steps, "disable_ramdisk": true});
    lab.ask_once(node, &lab.node(node).await, &body).await;
}

/// Requests cleaning by steps that fail, and returns the reason.
pub(crate) async fn cleaning_fails(lab: &Lab, node: Node, steps: &Value) -> String {
    cleans(lab, node, steps).await;
    let why = lab.fails(node, "clean failed").await;
    lab.end_maintenance(node).await;
    lab.provision(node, "manage").await.reaches("manageable").await;
    why
}

/// The changes of power, firmware and volumes that the BMC accepted, in their order.
pub(crate) fn accepted(machine: &RackedMachine) -> Vec<String> {
    let log = machine.chassis().log().into_iter();
    let accepted = log.filter(|entry| entry.outcome == Outcome::Accepted);
    let told = |request| match request {
        Request::Power(power) => Some(format!("{power:?}")),
        Request::UpdateFirmware { component, version } => Some(format!("{component} {version}")),
        Request::CreateVolume { level, drives } => Some(format!("{level} of {}", drives.join(" "))),
        Request::DeleteVolume(id) => Some(format!("delete {id}")),
        Request::Boot(..)
        | Request::ClearBoot
        | Request::BootMode(_)
        | Request::SecureBoot(_)
        | Request::SecureBootKeys(_)
        | Request::SetClock(_)
        | Request::ChangeBios(_)
        | Request::ResetBios
        | Request::InsertMedia(_)
        | Request::EjectMedia
        | Request::Subscribe(_)
        | Request::Unsubscribe(_)
        | Request::Identify(_)
        | Request::ClearEventLog
        | Request::ChangePassword
        | Request::Other(_) => None,
    };
    accepted.filter_map(|entry| told(entry.request)).collect()
}
