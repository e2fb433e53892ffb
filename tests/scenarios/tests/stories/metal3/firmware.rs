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

/// The step that updates the firmware of the BMC, with the fields that the operator sends.
fn update(url: &str) -> Value {
    let settings = json!([{"component": "bmc", "url": url}]);
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
    assert_eq!(names[..2], ["bios", "bmc"]);
    assert!(names[2].as_str().is_some_and(|name| name.starts_with("nic:")), "{names:?}");
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
    assert_eq!(
        (&failed["maintenance"], &failed["fault"]),
        (&true.into(), &"service failure".into())
    );
    // The operator changes no provision state of a node with a fault, and waits until somebody ends the maintenance.
    operator
        .call(Method::DELETE, &format!("/v1/nodes/{}/maintenance", operator.node), None, 202)
        .await;
    operator.provision(json!({"target": "abort"})).await;
    operator.reaches("active").await;
    operator.deletes().await;
}

#[tokio::test]
async fn firmware_is_updated_while_a_host_is_prepared() {
    let lab = lab().await;
    let machine = lab.rack(Machine::redfish("r1u9").without_tls()).await;
    let mut operator = Operator::new(&lab, "firmware-3");
    operator.registers(&machine, "ipxe").await;
    operator.configures(no_ramdisk()).await;
    let image = lab.images().put("bmc-9.1.bin", "raw", vec![9_u8; 1000]).url;
    operator.provision(json!({"target": "clean", "clean_steps": update(&image)})).await;
    operator.reaches("manageable").await;
    let components = operator.get(&format!("/v1/nodes/{}/firmware", operator.node)).await;
    let bmc = &components["firmware"][1];
    assert_eq!(
        (&bmc["current_version"], &bmc["last_version_flashed"]),
        (&json!("9.1"), &json!("9.1"))
    );
    assert!(bmc["updated_at"].is_string(), "{bmc}");
}

#[tokio::test]
async fn raid_of_a_host_is_checked_by_name_and_made() {
    let lab = lab().await;
    let mut blueprint = Machine::redfish("r1u10").without_tls();
    let second = blueprint.spec.disks[0].clone();
    blueprint.spec.disks.push(bmc_emulator::DiskSpec { name: "sdb".to_owned(), ..second });
    let machine = lab.rack(blueprint).await;
    let mut operator = Operator::new(&lab, "firmware-4");
    operator.registers(&machine, "ipxe").await;
    operator.configures(no_ramdisk()).await;
    let node = operator.node().await;
    operator.update(Updater::default().top(&node, "raid_interface", json!("redfish"))).await;
    let path = format!("/v1/nodes/{}/states/raid", operator.node);
    let disks = |level: &str| json!({"logical_disks": [{"size_gb": "MAX", "raid_level": level, "is_root_volume": true}]});
    let (status, body) = operator.send(Method::PUT, &path, Some(&disks("JBOD"))).await;
    assert_eq!(status, 400, "{body}");
    let words = "logical_disks[0].raid_level: a BMC makes volumes of the levels 0, 1,";
    assert!(body.to_string().contains(words), "{body}");
    let (status, body) = operator.send(Method::PUT, &path, Some(&disks("1"))).await;
    assert_eq!(status, 204, "{body}");
    let steps = json!([
        {"interface": "raid", "step": "delete_configuration"},
        {"interface": "raid", "step": "create_configuration"},
    ]);
    operator.provision(json!({"target": "clean", "clean_steps": steps})).await;
    operator.reaches("manageable").await;
    let node = operator.get(&format!("/v1/nodes/{}", operator.node)).await;
    assert_eq!(node["raid_config"]["logical_disks"][0]["raid_level"], "1", "{node:#}");
    assert_eq!(machine.chassis().volumes().len(), 1);
}
