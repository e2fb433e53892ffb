//! Power, boot overrides and the log over Redfish.

use bmc_emulator::{BootDevice, Outcome, OverrideDuration, PowerRequest, Protocol, Request};
use reqwest::Method;
use serde_json::json;

use crate::rack::TestMachine;

const RESET: &str = "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset";

#[tokio::test]
async fn a_machine_is_switched_on_and_off() {
    let bench = TestMachine::redfish("generic").await;
    assert_eq!(bench.get("/redfish/v1/Systems/1").await["PowerState"], "Off");

    let (status, _) = bench.send(Method::POST, RESET, json!({"ResetType": "On"})).await;
    assert_eq!(status, 204);
    assert_eq!(bench.get("/redfish/v1/Systems/1").await["PowerState"], "On");
    let power = *bench.machine.power().borrow();
    assert!(power.on);
    assert_eq!(power.generation, 1);

    let (status, _) = bench.send(Method::POST, RESET, json!({"ResetType": "ForceOff"})).await;
    assert_eq!(status, 204);
    assert_eq!(bench.get("/redfish/v1/Systems/1").await["PowerState"], "Off");
}

#[tokio::test]
async fn an_override_for_one_boot_is_gone_after_it() {
    let bench = TestMachine::redfish("generic").await;
    let boot =
        json!({"Boot": {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once"}});
    let (status, shown) = bench.send(Method::PATCH, "/redfish/v1/Systems/1", boot).await;
    assert_eq!(status, 200);
    assert_eq!(shown["Boot"]["BootSourceOverrideEnabled"], "Once");

    assert_eq!(bench.machine.take_boot_device().device, Some(BootDevice::Pxe));
    assert_eq!(bench.machine.take_boot_device().device, None);
    let shown = bench.get("/redfish/v1/Systems/1").await;
    assert_eq!(shown["Boot"]["BootSourceOverrideEnabled"], "Disabled");
    assert_eq!(shown["Boot"]["BootSourceOverrideTarget"], "None");
}

#[tokio::test]
async fn a_continuous_override_stays_until_it_is_taken_back() {
    let bench = TestMachine::redfish("generic").await;
    let boot = json!({"Boot": {"BootSourceOverrideTarget": "Hdd", "BootSourceOverrideEnabled": "Continuous"}});
    bench.send(Method::PATCH, "/redfish/v1/Systems/1", boot).await;
    assert_eq!(bench.machine.take_boot_device().device, Some(BootDevice::Disk));
    assert_eq!(bench.machine.take_boot_device().device, Some(BootDevice::Disk));

    let boot = json!({"Boot": {"BootSourceOverrideEnabled": "Disabled"}});
    bench.send(Method::PATCH, "/redfish/v1/Systems/1", boot).await;
    assert_eq!(bench.machine.take_boot_device().device, None);
}

#[tokio::test]
async fn the_log_holds_accepted_and_refused_requests() {
    let bench = TestMachine::redfish("generic").await;
    bench.send(Method::POST, RESET, json!({"ResetType": "On"})).await;
    bench.send(Method::POST, RESET, json!({"ResetType": "Explode"})).await;
    let boot =
        json!({"Boot": {"BootSourceOverrideTarget": "Cd", "BootSourceOverrideEnabled": "Once"}});
    bench.send(Method::PATCH, "/redfish/v1/Systems/1", boot).await;

    let log = bench.machine.log();
    let reported: Vec<_> = log
        .iter()
        .map(|entry| (entry.face, entry.request.clone(), entry.outcome.clone()))
        .collect();
    let refused = Outcome::Refused("400 Base.1.13.ActionParameterValueNotInList".to_owned());
    assert_eq!(
        reported,
        [
            (Protocol::Redfish, Request::Power(PowerRequest::On), Outcome::Accepted),
            (Protocol::Redfish, Request::Other(format!("POST {RESET}")), refused),
            (
                Protocol::Redfish,
                Request::Boot(BootDevice::Cdrom, OverrideDuration::Once),
                Outcome::Accepted
            ),
        ]
    );
}
