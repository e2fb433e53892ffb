use expect_test::{Expect, expect};
use serde_json::json;

use super::*;
use crate::{NodeUuid, check_profile};

mod limits;

fn document() -> Value {
    json!({
        "name": "kvm",
        "kind": "cloud-init",
        "instance_info": {
            "image_source": "http://images/hypervisor.raw", "image_os_hash_algo": "sha256", "image_os_hash_value": "a".repeat(64),
        },
        "settings": {
            "keystone": {"auth_url": "https://cloud:5000/v3", "username": "nova", "password": "hunter$2"},
            "message_bus": {"transport_url": "rabbit://nova:hunter3@10.0.0.1:5672/"},
            "neutron": {"bridge_mappings": {"physnet1": {"bridge": "br-ex", "interface": "eth1"}}},
            "compute": {"cpu_mode": "host-passthrough"},
            "storage": {"lvm": "vg0"},
            "kernel_arguments": [{"key": "console", "value": "ttyS0,115200"}, {"key": "a.b", "value": "x y"}, {"key": "quiet"}],
            "hugepages": [{"size": "1G", "count": 16}],
            "iommu": "intel",
            "passthrough": [{"vendor_id": "10de", "product_id": "1eb8", "alias": "t4"}],
            "ssh_keys": ["ssh-ed25519 AAAA ann"],
        },
        "placement": {"availability_zone": "rack", "aggregate": {"fixed": "gpu"}},
        "joining": {"compute_service": "30m"},
    })
}

fn profile(change: impl FnOnce(&mut Value)) -> Profile {
    let mut document = document();
    change(&mut document);
    serde_json::from_value(document).unwrap()
}

fn guest() -> HypervisorMachine<'static> {
    const MACS: [hardware::MacAddress; 2] = [
        hardware::MacAddress::new([2, 0, 0, 0, 0, 1]),
        hardware::MacAddress::new([2, 0, 0, 0, 0, 2]),
    ];
    HypervisorMachine { id: NodeUuid::nil(), host: "h1", macs: &MACS }
}

#[track_caller]
fn check(change: impl FnOnce(&mut Value), want: Expect) {
    let reported = match check_profile(&profile(change)) {
        Ok(()) => "ok".to_owned(),
        Err(invalid) => invalid.to_string(),
    };
    want.assert_eq(&reported);
}

#[test]
fn a_valid_profile_passes_and_its_secrets_are_not_printed() {
    check(|_| {}, expect!["ok"]);
    for image in ["b7f1b8a4-6c2b-4a1e-8b57-6a1d4f6c2a11", "oci://registry.example/hypervisor:1"] {
        check(|it| it["instance_info"] = json!({"image_source": image}), expect!["ok"]);
    }
    let printed = format!("{:?}", profile(|_| {}));
    assert!(!printed.contains("hunter"), "{printed}");
    let again = serde_json::from_value(serde_json::to_value(profile(|_| {})).unwrap());
    assert_eq!(again.ok(), Some(profile(|_| {})));
}

#[test]
fn a_wrong_profile_field_is_refused_with_its_name() {
    let settings = |path: &'static str, value: Value| {
        move |document: &mut Value| *document["settings"].pointer_mut(path).unwrap() = value
    };
    check(
        |it| it["instance_info"]["configdrive"] = json!({}),
        expect!["instance_info.configdrive: only the keys of an image are allowed here"],
    );
    check(
        |it| it["instance_info"] = json!({"image_source": "oci://registry.example"}),
        expect!["instance_info.image_source: names no repository; write oci://HOST/REPOSITORY:TAG"],
    );
    check(
        |it| it["instance_info"] = json!({"image_source": "http://x/y"}),
        expect![
            "instance_info.image_os_hash_value: missing; an image is installed only with a known checksum"
        ],
    );
    check(
        settings("/keystone/auth_url", json!("https://u:p@cloud/v3")),
        expect!["settings.keystone.auth_url: must not contain a user or a password"],
    );
    check(
        settings("/keystone/password", json!("a\n[DEFAULT]\nx = y")),
        expect!["settings.keystone.password: must have 1 to 255 bytes and no control characters"],
    );
    check(
        settings("/message_bus/transport_url", json!("http://10.0.0.1")),
        expect![
            "settings.message_bus.transport_url: must be a rabbit, amqp or kafka URL of oslo.messaging"
        ],
    );
    check(
        settings("/neutron/bridge_mappings/physnet1/interface", json!("-eth0; reboot")),
        expect![
            "settings.neutron.bridge_mappings.physnet1.interface: an interface has 1 to 15 letters, digits, '.', '_' and '-'"
        ],
    );
    check(
        settings("/kernel_arguments/1/value", json!("x; $(reboot)")),
        expect![
            "settings.kernel_arguments[1]: value: must be 1 to 256 letters, digits, blanks and '_-.,:=/+@%'"
        ],
    );
    check(
        settings("/iommu", Value::Null),
        expect!["settings.iommu: passthrough needs an IOMMU: set intel or amd"],
    );
    check(
        settings("/passthrough/0/vendor_id", json!("10DE")),
        expect![
            "settings.passthrough[0].vendor_id: must be four digits of 0-9 and a-f, as printed by lspci -nn"
        ],
    );
    check(
        |it| it["placement"]["aggregate"] = json!({"fixed": "a:b"}),
        expect!["placement.aggregate: must not contain a colon"],
    );
    check(
        |it| it["joining"]["hypervisor"] = json!("0s"),
        expect!["joining.hypervisor: must be more than 0 and at most 24 hours"],
    );
}

#[test]
fn cloud_init_gets_all_settings_of_the_profile() {
    let parts = config_drive(&profile(|_| {}), &guest());
    expect![[r#"{"hostname":"h1","name":"h1","uuid":"00000000-0000-0000-0000-000000000000"}"#]]
        .assert_eq(&parts["meta_data"].to_string());
    expect![[r#"{"links":[{"ethernet_mac_address":"02:00:00:00:00:01","id":"port0","type":"phy"},{"ethernet_mac_address":"02:00:00:00:00:02","id":"port1","type":"phy"}],"networks":[{"id":"network0","link":"port0","type":"ipv4_dhcp"}],"services":[]}"#]]
        .assert_eq(&parts["network_data"].to_string());
    let text = parts["user_data"].as_str().unwrap();
    let json = text.strip_prefix("#cloud-config\n").expect("cloud-init knows it by its first line");
    let mut config: Value = serde_json::from_str(json).unwrap();
    let files = config["write_files"].take();
    expect![[r#"{"hostname":"h1","preserve_hostname":false,"runcmd":[["ovs-vsctl","--may-exist","add-br","br-ex"],["ovs-vsctl","--may-exist","add-port","br-ex","eth1"],["systemctl","start","--no-block","bedplate-hypervisor.target"]],"ssh_authorized_keys":["ssh-ed25519 AAAA ann"],"write_files":null}"#]]
        .assert_eq(&config.to_string());
    let mut reported = String::new();
    for file in files.as_array().unwrap() {
        let head = ["path", "owner", "permissions"].map(|key| file[key].as_str().unwrap_or("-"));
        reported += &format!("--- {}\n{}", head.join(" "), file["content"].as_str().unwrap());
    }
    expect![[r#"
        --- /etc/nova/nova.conf.d/50-bedplate.conf root:nova 0640
        [DEFAULT]
        host = h1
        transport_url = rabbit://nova:hunter3@10.0.0.1:5672/

        [service_user]
        send_service_user_token = true
        auth_type = password
        auth_url = https://cloud:5000/v3
        username = nova
        password = hunter$$2
        user_domain_name = Default
        project_name = service
        project_domain_name = Default

        [placement]
        auth_type = password
        auth_url = https://cloud:5000/v3
        username = nova
        password = hunter$$2
        user_domain_name = Default
        project_name = service
        project_domain_name = Default

        [neutron]
        auth_type = password
        auth_url = https://cloud:5000/v3
        username = nova
        password = hunter$$2
        user_domain_name = Default
        project_name = service
        project_domain_name = Default

        [libvirt]
        virt_type = kvm
        cpu_mode = host-passthrough
        images_type = lvm
        images_volume_group = vg0

        [pci]
        device_spec = {"product_id":"1eb8","vendor_id":"10de"}
        alias = {"device_type":"type-PCI","name":"t4","product_id":"1eb8","vendor_id":"10de"}
        --- /etc/neutron/neutron.conf.d/50-bedplate.conf root:neutron 0640
        [DEFAULT]
        host = h1
        transport_url = rabbit://nova:hunter3@10.0.0.1:5672/

        [ovs]
        bridge_mappings = physnet1:br-ex
        --- /var/lib/nova/compute_id root:nova 0644
        00000000-0000-0000-0000-000000000000
        --- /boot/efi/EFI/debian/arguments.cfg - -
        set arguments="intel_iommu=on iommu=pt vfio-pci.ids=10de:1eb8 hugepagesz=1G hugepages=16 console=ttyS0,115200 a.b=\"x y\" quiet"
    "#]].assert_eq(&reported);
}

#[test]
fn ignition_gets_the_same_settings_in_a_valid_config() {
    let of = profile(|it| it["kind"] = json!("ignition"));
    let parts = config_drive(&of, &guest());
    let config: ignition::Config =
        serde_json::from_str(parts["user_data"].as_str().unwrap()).unwrap();
    assert_eq!(ignition::check(&config), []);
    let value = serde_json::to_value(&config).unwrap();
    expect![[r#"["intel_iommu=on","iommu=pt","vfio-pci.ids=10de:1eb8","hugepagesz=1G","hugepages=16","console=ttyS0,115200","a.b=\"x y\"","quiet"]"#]]
        .assert_eq(&value["kernelArguments"]["shouldExist"].to_string());
    let files = value["storage"]["files"].as_array().unwrap();
    let reported: Vec<String> = files
        .iter()
        .map(|file| format!("{} {} {}", file["path"], file["mode"], file["group"]["name"]))
        .collect();
    expect![[r#"
        "/etc/hostname" 420 null
        "/etc/nova/nova.conf.d/50-bedplate.conf" 416 "nova"
        "/etc/neutron/neutron.conf.d/50-bedplate.conf" 416 "neutron"
        "/var/lib/nova/compute_id" 420 "nova""#]]
    .assert_eq(&reported.join("\n"));
    assert!(value["systemd"].to_string().contains("add-port br-ex eth1"));
    assert!(value["passwd"].to_string().contains("ssh-ed25519 AAAA ann"));
}

#[test]
fn tunnels_and_a_base_config_are_written() {
    let of = profile(|it| {
        it["kind"] = json!("ignition");
        it["settings"]["neutron"]["tunnels"] = json!(true);
        let base = json!({"url": "http://images/fcos.ign", "sha256": "b".repeat(64)});
        it["settings"]["base_ignition"] = base;
    });
    assert_eq!(check_profile(&of), Ok(()));
    let parts = config_drive(&of, &guest());
    let text = parts["user_data"].as_str().unwrap();
    assert!(text.contains("tunnel_types%20=%20vxlan"), "{text}");
    let config: Value = serde_json::from_str(text).unwrap();
    let merged = &config["ignition"]["config"]["merge"][0];
    assert_eq!(merged["source"], "http://images/fcos.ign");
    assert_eq!(merged["verification"]["hash"], format!("sha256-{}", "b".repeat(64)));
    check(
        |it| it["settings"]["base_ignition"] = json!({"url": "http://i/x", "sha256": "b"}),
        expect!["settings.base_ignition: only for profiles of kind ignition"],
    );
}

#[test]
fn names_come_from_the_place_of_the_machine() {
    let place = |group: Option<&str>| RackLocation {
        rack: "r1".to_owned(),
        position: 7,
        group: group.map(str::to_owned),
        role: None,
    };
    let of = |named: NameSource, group| named.of(Some(&place(group)));
    assert_eq!(of(NameSource::Rack, None).as_deref(), Ok("r1"));
    assert_eq!(of(NameSource::Group, Some("gpu")).as_deref(), Ok("gpu"));
    assert_eq!(of(NameSource::RackAndGroup, Some("gpu")).as_deref(), Ok("r1-gpu"));
    assert_eq!(of(NameSource::Group, None), Err("the machine is in no group of its rack"));
    assert_eq!(NameSource::Rack.of(None), Err("the machine is in no rack"));
}
