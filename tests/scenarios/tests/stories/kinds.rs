//! Every kind of BMC, and every way to boot the ramdisk.

use api_client::baremetald::VirtualDrive;
use bmc_emulator::{PowerRequest, Request};
use lab::{Lab, Machine, RackedMachine, Settings};
use machine_emulator::{BootSource, Event, Stage};
use reqwest::Method;
use serde_json::{Value, json};

/// Takes a machine from enrolled to installed, and checks how the ramdisk was booted.
async fn check(blueprint: Machine, way: BootSource) {
    let lab = Lab::start().await;
    let machine = lab.rack(blueprint).await;
    let node = lab.manageable(&machine).await;
    lab.provision(node, "inspect").await.reaches("manageable").await;
    lab.provision(node, "provide").await.reaches("available").await;
    lab.provision(node, "active").await.reaches("active").await;
    machine.stage().wait_for(|stage| *stage == Stage::Installed).await.expect("it boots its disk");

    // The ramdisk boots three times, to inspect, to clean and to install; then the disk boots.
    assert_eq!(ways(&machine), [way, way, way, BootSource::Disk]);
    assert_eq!(machine.chassis().media(), None, "no medium is left in the drive");
}

fn ways(machine: &RackedMachine) -> Vec<BootSource> {
    let tried = machine.events().into_iter();
    tried
        .filter_map(|event| if let Event::Tries(source) = event { Some(source) } else { None })
        .collect()
}

#[tokio::test]
async fn redfish_boots_a_bios_by_ipxe() {
    check(Machine::redfish("m"), BootSource::Network).await;
}

#[tokio::test]
async fn redfish_boots_uefi_by_ipxe() {
    check(Machine::redfish("m").uefi(), BootSource::Network).await;
}

#[tokio::test]
async fn redfish_boots_uefi_by_http() {
    check(Machine::redfish("m").uefi().boot("http-ipxe"), BootSource::Http).await;
}

#[tokio::test]
async fn redfish_boots_a_virtual_cd() {
    check(Machine::redfish("m").uefi().boot("redfish-virtual-media"), BootSource::Cd).await;
}

#[tokio::test]
async fn a_machine_with_arm_boots_its_own_virtual_cd() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let file = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).expect("a file can be written");
        path
    };
    // Another size than the CD for x86 has.
    let mut cd = vec![0; 160 << 10];
    let area = b"# bedplate arguments: 4096 bytes from here may be overwritten";
    cd[1024..1024 + area.len()].copy_from_slice(area);
    let more = format!(
        "[provisioning.aarch64]\nkernel = {:?}\nramdisk = {:?}\nloader = {:?}\niso = {:?}\n",
        file("kernel", b"kernel"),
        file("ramdisk", b"ramdisk"),
        file("loader", b"loader"),
        file("boot.iso", &cd),
    );
    let lab = Lab::start_with(Settings { more, ..Settings::default() }).await;
    let machine = lab.rack(Machine::redfish("m").uefi().boot("redfish-virtual-media")).await;
    let node = lab.manageable(&machine).await;
    lab.set(node, "/properties/cpu_arch", json!("aarch64")).await;
    lab.provision(node, "provide").await.reaches("available").await;
    let loaded = Event::LoadedLoader("the virtual CD".to_owned(), 160 << 10);
    assert!(machine.events().contains(&loaded), "{:#?}", machine.events());
}

#[tokio::test]
async fn an_idrac_boots_a_virtual_cd() {
    let machine = Machine::idrac("m").uefi().boot("idrac-redfish-virtual-media");
    check(machine, BootSource::Cd).await;
}

#[tokio::test]
async fn an_idrac_boots_a_bios_by_ipxe() {
    check(Machine::idrac("m"), BootSource::Network).await;
}

#[tokio::test]
async fn ipmi_with_cipher_suite_3_boots_a_bios() {
    check(Machine::ipmi("m").suite(3), BootSource::Network).await;
}

#[tokio::test]
async fn ipmi_with_cipher_suite_17_boots_a_bios() {
    check(Machine::ipmi("m").suite(17), BootSource::Network).await;
}

#[tokio::test]
async fn ipmi_boots_uefi_with_the_suite_the_bmc_offers() {
    check(Machine::ipmi("m").uefi(), BootSource::Network).await;
}

#[tokio::test]
async fn every_family_of_redfish_bmcs_is_supported() {
    let lab = Lab::start().await;
    let families = ["ami-megarac", "dell-idrac", "hpe-ilo", "lenovo-xcc", "poor", "supermicro"];
    let blueprints = families.map(|family| {
        let mut blueprint = Machine::redfish(family).uefi();
        blueprint.spec.bmc.profile = family.to_owned();
        blueprint
    });
    let machines = lab.rack_all(blueprints.into()).await;
    let roads = machines.iter().map(async |machine| {
        let node = lab.available(machine).await;
        lab.provision(node, "active").await.reaches("active").await;
        let mut stage = machine.stage();
        stage.wait_for(|stage| *stage == Stage::Installed).await.expect("it boots its disk");
    });
    futures::future::join_all(roads).await;
}

#[tokio::test]
async fn an_image_goes_into_the_virtual_cd_drive_and_out() {
    let lab = Lab::start().await;
    let machine = lab.rack(Machine::redfish("r1u12")).await;
    let node = lab.manageable(&machine).await;
    let path = format!("{}/vmedia", node.path());
    let drive = async || lab.api().get::<Vec<VirtualDrive>>(&path).await.swap_remove(0);
    let url = lab.images().put("rescue.iso", "raw", vec![7; 2048]).url;
    let body = json!({"device_type": "cdrom", "image_url": url});
    lab.api().send(Method::POST, &path, Some(&body)).await.expect("it is inserted");
    assert_eq!(machine.chassis().media().map(|held| held.to_string()), Some(url.clone()));
    assert_eq!(drive().await, VirtualDrive { inserted: true, image: Some(url) });
    lab.api().send(Method::DELETE, &path, None).await.expect("it is ejected");
    assert_eq!(machine.chassis().media(), None);
    assert!(!drive().await.inserted);
}

#[tokio::test]
async fn an_interrupt_reaches_the_machine() {
    let lab = Lab::start().await;
    for blueprint in [Machine::redfish("r1u13"), Machine::ipmi("r1u14")] {
        let machine = lab.rack(blueprint).await;
        let node = lab.manageable(&machine).await;
        let path = format!("{}/management/inject_nmi", node.path());
        let interrupts = || {
            let log = machine.chassis().log().into_iter();
            log.filter(|entry| entry.request == Request::Power(PowerRequest::Interrupt)).count()
        };
        let refused = lab.api().refused(Method::PUT, &path, None).await;
        assert_eq!(refused.status, 502, "the machine is off: {refused:?}");
        machine.chassis().push_power_button();
        lab.api().send(Method::PUT, &path, None).await.expect("it is sent");
        assert_eq!(interrupts(), 1);
    }
}

#[tokio::test]
async fn the_indicators_of_a_machine_are_set() {
    let lab = Lab::start().await;
    let machine = lab.rack(Machine::redfish("r1u18")).await;
    let node = lab.manageable(&machine).await;
    let path = format!("{}/management/indicators", node.path());
    let listed: Value = lab.api().get(&path).await;
    let name = format!("{}@system", machine.spec().uuid);
    let mut listed = listed["indicators"].as_array().expect("a list").iter();
    let found = listed.find(|it| it["name"] == name).expect("the indicator of the system");
    assert_eq!(found["states"], json!(["blinking", "off", "on"]));
    let one = format!("{path}/{name}");
    for state in ["blinking", "off"] {
        let body = json!({"state": state});
        lab.api().send(Method::PUT, &one, Some(&body)).await.expect("it is set");
        assert_eq!(lab.api().get::<Value>(&one).await, body);
    }
    let wrong = json!({"state": "green"});
    let refused = lab.api().refused(Method::PUT, &one, Some(&wrong)).await;
    assert_eq!(refused.status, 400);
    let message = refused.message.unwrap_or_default();
    assert!(message.contains("cannot be \"green\"; it can be blinking, off, on"), "{message}");
}

#[tokio::test]
async fn a_bmc_without_an_interrupt_refuses_by_name() {
    let lab = Lab::start().await;
    let mut blueprint = Machine::redfish("r1u15");
    blueprint.spec.bmc.profile = "ami-megarac".to_owned();
    let machine = lab.rack(blueprint).await;
    let node = lab.manageable(&machine).await;
    let path = format!("{}/management/inject_nmi", node.path());
    let refused = lab.api().refused(Method::PUT, &path, None).await;
    assert_eq!(refused.status, 400);
    let message = refused.message.unwrap_or_default();
    assert!(message.contains("this BMC cannot inject an NMI: it offers"), "{message}");
}

#[tokio::test]
async fn a_receiver_subscribes_to_the_events_of_a_bmc() {
    let lab = Lab::start().await;
    let machine = lab.rack(Machine::redfish("r1u16")).await;
    let node = lab.manageable(&machine).await;
    let path = |method: &str| format!("{}/vendor_passthru/{method}", node.path());
    let call = async |http_method: Method, method: &str, body: Value| {
        lab.api().send(http_method, &path(method), Some(&body)).await
    };
    let wish = json!({
        "Destination": "https://events.example/bmc", "Context": "r1u16", "EventTypes": ["Alert"],
        "HttpHeaders": [{"Authorization": "Basic eA=="}],
    });
    let made = call(Method::POST, "create_subscription", wish).await.expect("it is made");
    let shown = json!({
        "Id": "1", "Context": "r1u16", "Protocol": "Redfish", "Destination": "https://events.example/bmc",
        "EventTypes": ["Alert"],
    });
    assert_eq!(made, shown);
    assert_eq!(machine.chassis().subscriptions()[0].headers[0].1, "Basic eA==");
    let id = json!({"id": "1"});
    let found = call(Method::GET, "get_subscription", id.clone()).await.expect("it is found");
    assert_eq!(found, shown);
    let all = call(Method::GET, "get_all_subscriptions", json!({})).await.expect("a list");
    let member = json!({"@odata.id": "/redfish/v1/EventService/Subscriptions/1"});
    assert_eq!((&all["Members"], &all["Members@odata.count"]), (&json!([member]), &json!(1)));

    let other = json!({"Destination": "https://events.example/", "EventTypes": ["Smoke"]});
    let refused = lab.api().refused(Method::POST, &path("create_subscription"), Some(&other)).await;
    assert_eq!(refused.status, 400);
    let words = refused.message.unwrap_or_default();
    assert!(words.contains("EventTypes: the BMC has no \"Smoke\"; use"), "{words}");

    let gone = call(Method::DELETE, "delete_subscription", id.clone()).await;
    assert_eq!(gone.expect("it is deleted"), Value::Null);
    assert_eq!(machine.chassis().subscriptions(), []);
    for (http_method, method) in
        [(Method::DELETE, "delete_subscription"), (Method::GET, "get_subscription")]
    {
        let refused = lab.api().refused(http_method, &path(method), Some(&id)).await;
        assert_eq!(refused.status, 404, "{refused:?}");
    }
}

#[tokio::test]
async fn a_vendor_method_empties_the_virtual_drives() {
    let lab = Lab::start().await;
    let machine = lab.rack(Machine::redfish("r1u17")).await;
    let node = lab.manageable(&machine).await;
    let url = lab.images().put("rescue.iso", "raw", vec![7; 2048]).url;
    let body = json!({"device_type": "cdrom", "image_url": url});
    let media = format!("{}/vmedia", node.path());
    lab.api().send(Method::POST, &media, Some(&body)).await.expect("it is inserted");
    let eject = format!("{}/vendor_passthru/eject_vmedia", node.path());
    let usb = json!({"boot_device": "usb"});
    lab.api().send(Method::POST, &eject, Some(&usb)).await.expect("it is accepted");
    assert!(machine.chassis().media().is_some());
    lab.api().send(Method::POST, &eject, None).await.expect("it is accepted");
    assert_eq!(machine.chassis().media(), None);
    let floppy = json!({"boot_device": "floppy"});
    let refused = lab.api().refused(Method::POST, &eject, Some(&floppy)).await;
    assert_eq!(refused.status, 400, "{refused:?}");
}
