//! Nova's own driver of the Bare Metal API (`ironic.IronicDriver`) creates, rebuilds, rescues and deletes a server on a machine of the rack,
//! with an image of Glance and a port of Neutron. Nova finds the service in Keystone's catalogue, and Keystone authenticates Nova. The
//! machine moves between a network of the service and that of the server.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use compat::CommandLine;
use real::stations::{self, ManagementAccess};
use real::{Cloud, Firmware, Machine, RackOptions, Story, images_folder, until};
use serde_json::{Value, json};

/// How long the server's system may take to boot.
const BOOT_TIMEOUT: Duration = Duration::from_mins(8);
const COMPUTE: &str = "nova-on-machines";
/// The network in which the machine is while a ramdisk runs on it.
const SERVICE_NETWORK: &str = "ramdisks";
/// The zone in which the machine has a name.
const ZONE: &str = "machines.test.";
const PASSWORD: &str = "w3-fix-th1s";
/// Options that give the node to the flavor `metal`. Nothing was on its disk, so only the deletion of the server cleans it.
const OFFER: &str = "--resource-class baremetal --network-interface neutron --rescue-interface agent --no-automated-clean \
     --property cpus=1 --property memory_mb=512 --property local_gb=4 --property cpu_arch=x86_64";

/// Nova's driver, which runs until this value is dropped.
struct NovaCompute;

impl NovaCompute {
    fn start() -> NovaCompute {
        assert!(openstack_sh(&["ironic-add", COMPUTE]), "nova-compute does not start");
        NovaCompute
    }
}

impl Drop for NovaCompute {
    fn drop(&mut self) {
        openstack_sh(&["compute-del", COMPUTE]);
    }
}

/// Runs a command of openstack.sh, and returns whether it succeeded.
fn openstack_sh(arguments: &[&str]) -> bool {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("openstack/openstack.sh");
    Command::new(script).args(arguments).status().is_ok_and(|status| status.success())
}

/// A user of the cloud, whose commands are one text each.
struct User(CommandLine);

impl User {
    fn of(cloud: &Cloud, name: &str) -> User {
        User(CommandLine::in_cloud(&cloud.clouds_yaml, name))
    }

    #[track_caller]
    fn done(&mut self, command: &str) -> String {
        self.0.done(&words(command))
    }

    #[track_caller]
    fn json(&mut self, command: &str) -> Value {
        self.0.json(&words(command))
    }

    /// Waits until the server has this status. Panics if it has failed.
    #[track_caller]
    fn becomes(&mut self, status: &str) {
        until(&format!("the server is {status}"), || {
            let shown = self.json("server show bare");
            assert_ne!(shown["status"], "ERROR", "{shown:#}");
            (shown["status"] == status && shown["OS-EXT-STS:task_state"].is_null()).then_some(())
        });
    }
}

fn words(command: &str) -> Vec<&str> {
    command.split_whitespace().collect()
}

#[test]
fn nova_creates_rebuilds_rescues_and_deletes_a_server_on_a_machine() {
    let Some(cloud) = Cloud::reported() else { return };
    let networks = ["provisioning", "cleaning", "rescuing"];
    let networks = networks.map(|name| format!("{name} = \"{SERVICE_NETWORK}\"\n")).concat();
    let given = RackOptions {
        uplink: Some(&cloud.address),
        cloud: Some(&cloud),
        tables: &format!(
            "[cloud.networks]\n{networks}[cloud.dns]\nzone = \"{ZONE}\"\nevery = \"5s\"\n"
        ),
        ..RackOptions::default()
    };
    let Some(mut story) = Story::begin_given("nova", &[Firmware::Uefi], &given) else { return };
    cloud.register();
    let (mut admin, mut alice) = (User::of(&cloud, "admin"), User::of(&cloud, "alice"));
    for command in prepare() {
        admin.done(&command);
    }
    alice.done("network create metal");
    alice.done("subnet create metal --network metal --subnet-range 10.40.0.0/24");
    let disk = images_folder().join("tiny.raw");
    let format = "--disk-format raw --container-format bare";
    alice.done(&format!("image create bootable {format} --file {}", disk.display()));
    let machine = story.machine(0);
    let node = offer(&mut story, &machine);

    let nova = NovaCompute::start();
    until("Nova knows the machine", || {
        admin.json("hypervisor list").to_string().contains(&node).then_some(())
    });
    alice.done(
        "server create bare --image bootable --flavor metal --network metal --config-drive true",
    );
    alice.becomes("ACTIVE");
    machine.prints(machine.firmware.boots_as(), 1, BOOT_TIMEOUT);
    assert_eq!(story.field(&node, "provision_state"), "active");
    let vif = is_connected(&mut story, &mut admin, &machine, &node);
    let name = format!("{}.{ZONE}", machine.name);
    until("the machine has a name", || {
        cloud.dig(&name).iter().any(|it| it.starts_with("10.78.0.")).then_some(())
    });

    // From version 2.93 on, this Nova asks its driver to rebuild a boot volume, and the driver refuses.
    alice.done("--os-compute-api-version 2.79 server rebuild --image bootable bare");
    machine.prints(machine.firmware.boots_as(), 2, BOOT_TIMEOUT);
    alice.becomes("ACTIVE");

    alice.done(&format!("server rescue bare --password {PASSWORD}"));
    alice.becomes("RESCUE");
    assert_eq!(story.field(&node, "provision_state"), "rescue");
    stations::rescue_login(&machine, PASSWORD).types("echo $(id -un)", "\nrescue");
    alice.done("server unrescue bare");
    machine.prints(machine.firmware.boots_as(), 3, BOOT_TIMEOUT);
    alice.becomes("ACTIVE");

    alice.done("server delete --wait bare");
    until("the machine is available", || {
        (story.field(&node, "provision_state") == "available").then_some(())
    });
    assert!(stations::is_blank(&machine), "the disk holds something");
    assert_eq!(story.client.json(&["node", "vif", "list", &node]), json!([]));
    assert_eq!(admin.json(&service_ports()), json!([]), "no port is left behind");
    drop(nova);
    alice.0.refused(&["port", "show", &vif]);
    for command in ["network delete metal", "image delete bootable"] {
        alice.done(command);
    }
    admin.done(&format!("network delete {SERVICE_NETWORK}"));
    story.client.done(&["node", "delete", &node]);
    until("the machine's name is gone", || cloud.dig(&name).is_empty().then_some(()));
    for command in
        ["flavor delete metal", "service delete baremetal", &format!("zone delete {ZONE}")]
    {
        admin.done(command);
    }
}

/// The commands that make the zone, the service's network and the flavor of machines.
fn prepare() -> [String; 5] {
    let subnet = format!("--network {SERVICE_NETWORK} --subnet-range 10.41.0.0/24");
    let none = "--property resources:VCPU=0 --property resources:MEMORY_MB=0 --property resources:DISK_GB=0";
    [
        format!("zone create --email root@example.org {ZONE}"),
        format!("network create {SERVICE_NETWORK}"),
        format!("subnet create {SERVICE_NETWORK} {subnet}"),
        "flavor create metal --ram 512 --disk 1 --vcpus 1".to_owned(),
        format!("flavor set metal --property resources:CUSTOM_BAREMETAL=1 {none}"),
    ]
}

/// Enrolls the machine so that Nova can use it, and returns the id of its node.
#[track_caller]
fn offer(story: &mut Story, machine: &Machine) -> String {
    stations::enroll(story, machine, &ManagementAccess::redfish(machine, "ipxe"));
    story.client.done(&[&["node", "set", &machine.name][..], &words(OFFER)].concat());
    let port = ["port", "show", "--address", &machine.mac, "--fields", "uuid"];
    let port = story.client.json(&port)["uuid"].as_str().expect("the node has a port").to_owned();
    let link =
        "--local-link-connection switch_id=0a:1b:2c:3d:4e:5f --local-link-connection port_id=Eth1";
    story.client.done(&[&["port", "set", &port][..], &words(link)].concat());
    stations::provide(story, machine);
    story.client.done(&["node", "unset", &machine.name, "--automated-clean"]);
    story.field(&machine.name, "uuid").as_str().expect("a node has an id").to_owned()
}

/// Checks that the server's port is bound to the machine, and that no port of the service's network is left; returns the server's port.
#[track_caller]
fn is_connected(story: &mut Story, admin: &mut User, machine: &Machine, node: &str) -> String {
    let vifs = story.client.done(&["node", "vif", "list", node, "-f", "value"]);
    let vif = vifs.trim().to_owned();
    let port = admin.json(&format!("port show {vif}"));
    let bound = (&port["binding_host_id"], &port["binding_vnic_type"], &port["mac_address"]);
    assert_eq!(bound, (&json!(node), &json!("baremetal"), &json!(machine.mac)), "{port:#}");
    let link = &port["binding_profile"]["local_link_information"][0];
    assert_eq!(link["port_id"], "Eth1", "{port:#}");
    assert_eq!(admin.json(&service_ports()), json!([]));
    vif
}

/// The command that lists the ports of machines in the service's network.
fn service_ports() -> String {
    format!("port list --device-owner baremetal:none --network {SERVICE_NETWORK}")
}
