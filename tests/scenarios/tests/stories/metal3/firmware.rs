//! Firmware settings, RAID, firmware updates and servicing of hosts.

use lab::Machine;
use reqwest::Method;
use serde_json::{Value, json};

use super::host::no_ramdisk;
use super::operator::{Operator, Updater};
use super::{image_with_checksum_file, lab};

/// The steps that change a setting of the firmware (`buildManualCleaningSteps`, `buildServiceSteps`).
fn apply(name: &str, value: Value) -> Value {
    let settings = json!([{"name": name, "value": value}]);
    json!([{"interface": "bios", "step": "apply_configuration", "args": {"settings": settings}}])
}

/// The step that updates the firmware of the BMC.
fn update() -> Value {
    let settings = json!([{"component": "bmc", "url": "http://10.0.0.1/bmc.bin"}]);
    json!([{"interface": "firmware", "step": "update", "args": {"settings": settings}}])
}

/// The current value of a setting, as the operator reads it with its schema (`GetFirmwareSettings`).
async fn setting(operator: &Operator<'_>, name: &str) -> Value {
    let path = format!("/v1/nodes/{}/bios?detail=true", operator.node);
    let listed = operator.get(&path).await;
    let all = listed["bios"].as_array().expect("a list of settings");
    let found = all.iter().find(|setting| setting["name"] == name).expect("the setting");
    for (field, is) in [
        ("attribute_type", Value::is_string as fn(&Value) -> bool),
        ("allowable_values", Value::is_array),
        ("lower_bound", Value::is_i64),
        ("upper_bound", Value::is_i64),
        ("read_only", Value::is_boolean),
        ("unique", Value::is_boolean),
    ] {
        assert!(found[field].is_null() || is(&found[field]), "{field}: {found}");
    }
    found["value"].clone()
}

#[tokio::test]
async fn firmware_settings_change_while_a_host_is_prepared_and_serviced() {
    let lab = lab().await;
    let machine = lab.rack(Machine::redfish("r1u7").without_tls()).await;
    let mut operator = Operator::new(&lab, "firmware-1");
    operator.registers(&machine, "ipxe").await;
    operator.configures(no_ramdisk()).await;
    assert_eq!(setting(&operator, "ProcTurboMode").await, "Enabled");
    let components = operator.get(&format!("/v1/nodes/{}/firmware", operator.node)).await;
    let components = components["firmware"].as_array().cloned().expect("a list of components");
    let names: Vec<&Value> = components.iter().map(|component| &component["component"]).collect();
    assert_eq!(names, ["bios", "bmc"]);
    for component in components {
        let (first, now) = (&component["initial_version"], &component["current_version"]);
        assert!(first.is_string() && first == now, "{component}");
        assert!(component["created_at"].is_string(), "{component}");
        assert!(component["updated_at"].is_null(), "{component}");
    }

    let steps = apply("ProcTurboMode", json!("Disabled"));
    operator.provision(json!({"target": "clean", "clean_steps": steps})).await;
    operator.reaches("manageable").await;
    assert_eq!(setting(&operator, "ProcTurboMode").await, "Disabled");

    operator.provides().await;
    let body = json!({"target": "active", "configdrive": operator.config_drive()});
    operator.deploys(image_with_checksum_file(&lab), None, body).await;
    operator.reaches("active").await;
    let steps = apply("ProcTurboMode", json!("Enabled"));
    operator.provision(json!({"target": "service", "service_steps": steps})).await;
    operator.reaches("active").await;
    assert_eq!(setting(&operator, "ProcTurboMode").await, "Enabled");
    operator.deletes().await;
}

#[tokio::test]
async fn a_failed_service_is_aborted() {
    let lab = lab().await;
    let machine = lab.rack(Machine::redfish("r1u8").without_tls()).await;
    let mut operator = Operator::new(&lab, "firmware-2");
    operator.registers(&machine, "ipxe").await;
    operator.configures(no_ramdisk()).await;
    operator.provides().await;
    operator.deploys(image_with_checksum_file(&lab), None, json!({"target": "active"})).await;
    operator.reaches("active").await;
    let steps = apply("Nothing", json!("x"));
    operator.provision(json!({"target": "service", "service_steps": steps})).await;
    let failed = operator.until("a failure", |it| it["provision_state"] == "service failed").await;
    let why = failed["last_error"].as_str().unwrap_or_default();
    assert!(why.contains("\"Nothing\" is not a setting of this machine"), "{why}");
    assert_eq!(failed["maintenance"], false);
    operator.provision(json!({"target": "abort"})).await;
    operator.reaches("active").await;
    operator.deletes().await;
}

#[tokio::test]
async fn raid_and_firmware_updates_are_refused_by_name() {
    let lab = lab().await;
    let machine = lab.rack(Machine::redfish("r1u9").without_tls()).await;
    let mut operator = Operator::new(&lab, "firmware-3");
    operator.registers(&machine, "ipxe").await;
    operator.configures(no_ramdisk()).await;
    let node = operator.node().await;
    operator.update(Updater::default().top(&node, "raid_interface", json!("redfish"))).await;
    let disks =
        json!({"logical_disks": [{"size_gb": "MAX", "raid_level": "1", "is_root_volume": true}]});
    let path = format!("/v1/nodes/{}/states/raid", operator.node);
    let (status, body) = operator.send(Method::PUT, &path, Some(&disks)).await;
    assert_eq!(status, 404, "{body}");
    assert!(body.to_string().contains("raid interface redfish"), "{body}");

    operator.provision(json!({"target": "clean", "clean_steps": update()})).await;
    let failed = operator.until("a failure", |it| it["provision_state"] == "clean failed").await;
    let why = failed["last_error"].as_str().unwrap_or_default();
    assert!(why.contains("firmware.update"), "{why}");
    operator.provision(json!({"target": "manage"})).await;
    operator.reaches("manageable").await;
}
