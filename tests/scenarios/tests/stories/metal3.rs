//! Metal3's baremetal-operator manages hosts by baremetald: each request is sent as the operator sends it, and each answer has to be one
//! with which the operator continues.

mod firmware;
mod host;
mod images;
mod operator;

use bmc_emulator::Request;
use lab::{Lab, Machine, RackedMachine, Settings};
use machine_emulator::{Event, Stage};
use reqwest::Method;
use serde_json::{Value, json};

use host::{USER_DATA, no_ramdisk};
use operator::Operator;

/// Short intervals, as BMCs answer at once here.
fn settings() -> Settings {
    Settings { ask_again: "200ms", poll_every: "20ms", ..Settings::default() }
}

async fn lab() -> Lab {
    Lab::start_with(settings()).await
}

async fn runs(machine: &RackedMachine, what: impl FnMut(&Stage) -> bool) {
    machine.stage().wait_for(what).await.expect("the machine lives");
}

/// The fields of a whole-disk image whose checksum is in a file next to it. The operator leaves the algorithm to the service.
fn image_with_checksum_file(lab: &Lab) -> Value {
    let image = lab.images().bootable("host.raw");
    let other = "0".repeat(64);
    let sums = format!("{other}  other.raw\n{}  host.raw\n", image.checksum);
    let sums = lab.images().put("SHA256SUMS", "raw", sums.into_bytes());
    json!({
        "boot_iso": null, "image_source": image.url, "image_disk_format": "raw",
        "image_pull_secret": null, "image_checksum": sums.url, "image_os_hash_algo": null,
        "image_os_hash_value": null,
    })
}

/// The kinds of nodes that the operator counts while it limits parallel work (`loadBusyHosts`).
async fn busy_hosts(operator: &Operator<'_>) -> Vec<Value> {
    let fields = "uuid%2Cname%2Cprovision_state%2Cboot_interface";
    let listed = operator.get(&format!("/v1/nodes?fields={fields}")).await;
    listed["nodes"].as_array().cloned().expect("a list of nodes")
}

#[tokio::test]
async fn a_host_is_registered_inspected_provisioned_and_deleted() {
    let lab = lab().await;
    let machine = lab.rack(Machine::redfish("r1u1").without_tls()).await;
    let mut operator = Operator::new(&lab, "host-1");
    operator.registers(&machine, "ipxe").await;
    operator.configures(no_ramdisk()).await;
    let found = operator.inspects().await;
    check_hardware_details(&found, &machine);
    let busy = busy_hosts(&operator).await;
    let want = json!({"uuid": operator.node, "name": "metal3~host-1", "provision_state": "manageable", "boot_interface": "ipxe"});
    let fields = ["uuid", "name", "provision_state", "boot_interface"];
    assert!(fields.iter().all(|field| busy[0][field] == want[field]), "{busy:?}");

    operator.provides().await;
    let image = image_with_checksum_file(&lab);
    let drive = operator.config_drive();
    operator.deploys(image.clone(), None, json!({"target": "active", "configdrive": drive})).await;
    let active = operator.reaches("active").await;
    // The operator recognizes its image by these fields (`ironicHasSameImage`).
    for (field, value) in image.as_object().expect("an object") {
        let now = active["instance_info"].get(field).unwrap_or(&Value::Null);
        assert_eq!(now, value, "{field}");
    }
    runs(&machine, |stage| *stage == Stage::Installed).await;
    let drive = machine.config_drive().expect("a config drive");
    assert_eq!(drive.user_data, USER_DATA);

    power_cycles(&operator, &machine).await;
    let free = operator.deprovisions().await;
    assert!(machine.disks_are_blank());
    assert_eq!((&free["instance_info"], &free["instance_uuid"]), (&json!({}), &Value::Null));
    operator.deletes().await;
}

/// Checks what the operator reads of an inventory (`hardwaredetails.go`): the types, and the values that it shows.
fn check_hardware_details(found: &Value, machine: &RackedMachine) {
    let inventory = &found["inventory"];
    let spec = machine.spec();
    assert_eq!(inventory["system_vendor"]["serial_number"], *spec.serial);
    assert_eq!(inventory["memory"]["physical_mb"], spec.memory_mib);
    assert_eq!(inventory["cpu"]["count"], spec.cpus);
    assert!(inventory["cpu"]["architecture"].is_string(), "{inventory}");
    let nic = &inventory["interfaces"][0];
    assert_eq!(nic["mac_address"], spec.nics[0].mac.to_string());
    let disk = &inventory["disks"][0];
    assert_eq!(
        (&disk["size"], &disk["rotational"]),
        (&json!(spec.disks[0].size_bytes), &json!(false))
    );
    let is_integer = |value: &Value| value.is_null() || value.is_i64() || value.is_u64();
    assert!(is_integer(&nic["speed_mbps"]), "{nic}");
    assert!(found["plugin_data"].is_object(), "{found}");
}

/// Switches the host off softly and on again (`PowerOff`, `PowerOn`).
async fn power_cycles(operator: &Operator<'_>, machine: &RackedMachine) {
    let path = format!("/v1/nodes/{}/states/power", operator.node);
    let soft = json!({"target": "soft power off", "timeout": 180});
    operator.call(Method::PUT, &path, Some(&soft), 202).await;
    operator.until("power off", |node| node["power_state"] == "power off").await;
    let off = operator.node().await;
    assert_eq!((&off["target_power_state"], &off["last_error"]), (&Value::Null, &Value::Null));
    operator.call(Method::PUT, &path, Some(&json!({"target": "power on"})), 202).await;
    operator.until("power on", |node| node["power_state"] == "power on").await;
    let booted = |stage: &Stage| !matches!(stage, Stage::Off | Stage::Booting);
    runs(machine, booted).await;
}

#[tokio::test]
async fn a_host_boots_its_own_preprovisioning_image() {
    let lab = lab().await;
    let machine = lab.rack(Machine::redfish("r1u2").without_tls()).await;
    let mut operator = Operator::new(&lab, "host-2");
    operator.registers(&machine, "ipxe").await;
    let kernel = lab.images().put("preprovisioning.kernel", "raw", vec![1; 1234]);
    let ramdisk = lab.images().put("preprovisioning.initrd", "raw", vec![2; 5678]);
    let mut own = no_ramdisk();
    own["deploy_kernel"] = json!(kernel.url);
    own["deploy_ramdisk"] = json!(ramdisk.url);
    own["kernel_append_params"] = json!("%default% nofb ipa-inspection-collectors=default");
    operator.configures(own).await;
    operator.inspects().await;
    let events = machine.events();
    assert!(events.contains(&Event::KernelRuns(1234, 5678)), "{events:#?}");
    operator.deletes().await;
}

#[tokio::test]
async fn a_host_boots_its_own_preprovisioning_iso_image() {
    let lab = lab().await;
    let machine = lab.rack(Machine::redfish("r1u3").without_tls()).await;
    let mut operator = Operator::new(&lab, "host-3");
    operator.registers(&machine, "redfish-virtual-media").await;
    // The image builder of Metal3 writes the addresses of the service into the image, and no token.
    let (service, mut iso) = (lab.provisioning(), vec![0; 64 << 10]);
    let line = format!(
        "\nipa-api-url={0} ipa-inspection-callback-url={0}/v1/continue_inspection\n",
        service.as_str().trim_end_matches('/')
    );
    iso.extend(line.bytes());
    let iso = lab.images().put("preprovisioning.iso", "raw", iso);
    let mut own = no_ramdisk();
    own["deploy_iso"] = json!(iso.url);
    operator.configures(own).await;
    operator.inspects().await;
    operator.provides().await;
    let inserted = |request| {
        if let Request::InsertMedia(url) = request { Some(url.to_string()) } else { None }
    };
    let log = machine.chassis().log().into_iter();
    let fetched: Vec<String> = log.filter_map(|entry| inserted(entry.request)).collect();
    assert_eq!(fetched, [iso.url.clone(), iso.url], "one boot each for inspection and cleaning");
    operator.deletes().await;
}
