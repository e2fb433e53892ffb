//! Nova's own driver of the Bare Metal API (`ironic.IronicDriver`) creates, rebuilds, rescues and deletes a server on an emulated machine,
//! with an image of Glance and a port of Neutron. The machine moves between a network of the service and that of the server.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use compat::wait::wait_for;
use lab::{Lab, Machine, Node, RackedMachine, Settings};
use machine_emulator::Stage;
use real_clusters::Cloud;
use reqwest::Method;
use serde_json::json;
use tokio::task::block_in_place;

const PATIENCE: Duration = Duration::from_secs(120);
const COMPUTE: &str = "nova-on-machines";
/// The network in which the machine is while a ramdisk runs on it.
const SERVICE_NETWORK: &str = "ramdisks";

/// Nova's driver, which runs until this value is dropped.
struct NovaCompute;

impl NovaCompute {
    fn start(url: &str) -> NovaCompute {
        assert!(openstack_sh(&["ironic-add", COMPUTE, url]), "nova-compute does not start");
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
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../real/openstack/openstack.sh");
    Command::new(script).args(arguments).status().is_ok_and(|status| status.success())
}

/// Puts a machine into the lab that Nova can use by its resource class.
async fn enrolled(lab: &Lab) -> (RackedMachine, Node) {
    let machine = lab.rack(Machine::redfish("r1u1").without_tls()).await;
    let node = lab.available(&machine).await;
    let properties = json!({"cpus": 8, "memory_mb": 32768, "local_gb": 8, "cpu_arch": "x86_64"});
    let patch = json!([
        {"op": "add", "path": "/resource_class", "value": "baremetal"},
        {"op": "add", "path": "/network_interface", "value": "neutron"},
        {"op": "add", "path": "/rescue_interface", "value": "agent"},
        {"op": "add", "path": "/driver_info/provisioning_network", "value": SERVICE_NETWORK},
        {"op": "add", "path": "/driver_info/cleaning_network", "value": SERVICE_NETWORK},
        {"op": "add", "path": "/driver_info/rescuing_network", "value": SERVICE_NETWORK},
        {"op": "add", "path": "/properties", "value": properties},
        {"op": "remove", "path": "/instance_info"},
    ]);
    lab.api().send(Method::PATCH, &node.path(), Some(&patch)).await.expect("the node is prepared");
    lab.link(node, &json!({"switch_id": "0a:1b:2c:3d:4e:5f", "port_id": "Eth1"})).await;
    (machine, node)
}

/// Writes a small raw image with a boot sector, and returns its path.
fn bootable() -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("nova_on_machine.raw");
    let mut disk: Vec<u8> = (0..1 << 20).map(|at| (at / 512 % 251) as u8).collect();
    disk[510..512].copy_from_slice(&[0x55, 0xaa]);
    std::fs::write(&path, disk).expect("a file");
    path.to_str().expect("a path").to_owned()
}

async fn runs_its_disk(machine: &RackedMachine) {
    machine.stage().wait_for(|stage| *stage == Stage::Installed).await.expect("the machine");
}

/// Rebuilds the server. From version 2.93 on, this Nova asks its driver to rebuild a boot volume, and the driver refuses.
fn rebuild(cloud: &mut Cloud) {
    let version = "--os-compute-api-version 2.79";
    cloud.done(&format!("{version} server rebuild --image bootable --wait bare"));
}

fn becomes(cloud: &mut Cloud, status: &str) {
    wait_for(status, PATIENCE, || {
        (cloud.value("server show bare", "status") == status).then_some(())
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nova_creates_rebuilds_rescues_and_deletes_a_server_on_a_machine() {
    let Some(mut alice) = Cloud::without_machines("alice") else { return };
    let mut admin = Cloud::of(alice.clouds_yaml.clone(), "admin");
    let settings = Settings { cloud: Some(alice.clouds_yaml.clone()), ..Settings::default() };
    let lab = Lab::start_with(settings).await;
    let (machine, node) = enrolled(&lab).await;
    let nova = block_in_place(|| {
        let format = "--disk-format raw --container-format bare";
        alice.done(&format!("image create bootable {format} --file {}", bootable()));
        alice.done("network create metal");
        alice.done("subnet create metal --network metal --subnet-range 10.40.0.0/24");
        admin.done(&format!("network create {SERVICE_NETWORK}"));
        let range = "--subnet-range 10.41.0.0/24";
        admin.done(&format!("subnet create {SERVICE_NETWORK} --network {SERVICE_NETWORK} {range}"));
        admin.done("flavor create metal --ram 1024 --disk 1 --vcpus 1");
        let zero = "--property resources:VCPU=0 --property resources:MEMORY_MB=0 --property resources:DISK_GB=0";
        admin.done(&format!("flavor set metal --property resources:CUSTOM_BAREMETAL=1 {zero}"));
        let nova = NovaCompute::start(lab.api().url().as_str().trim_end_matches('/'));
        wait_for("the machine in Nova", PATIENCE, || {
            let listed = admin.json("hypervisor list").to_string();
            listed.contains(&node.0.to_string()).then_some(())
        });
        let create =
            "server create --image bootable --flavor metal --network metal --config-drive true";
        let made = alice.json(&format!("{create} --wait bare"));
        assert_eq!(made["status"], "ACTIVE", "{made:#}");
        nova
    });

    runs_its_disk(&machine).await;
    assert_eq!(lab.node(node).await.state(), "active");
    let vif = lab.vifs(node).await.swap_remove(0).id;
    let port = block_in_place(|| admin.json(&format!("port show {vif}")));
    let mac = machine.spec().nics[0].mac.to_string().to_lowercase();
    assert_eq!(port["binding_host_id"], node.0.to_string(), "{port:#}");
    assert_eq!(
        (&port["binding_vnic_type"], &port["mac_address"]),
        (&json!("baremetal"), &json!(mac))
    );
    let link = &port["binding_profile"]["local_link_information"][0];
    assert_eq!(link["port_id"], "Eth1", "{port:#}");
    let service_ports = "port list --device-owner baremetal:none";
    assert_eq!(block_in_place(|| admin.json(service_ports)), json!([]));

    block_in_place(|| rebuild(&mut alice));
    runs_its_disk(&machine).await;
    block_in_place(|| {
        alice.done("server rescue bare");
        becomes(&mut alice, "RESCUE");
    });
    assert_eq!(lab.node(node).await.state(), "rescue");
    block_in_place(|| {
        alice.done("server unrescue bare");
        becomes(&mut alice, "ACTIVE");
    });
    runs_its_disk(&machine).await;

    block_in_place(|| alice.done("server delete --wait bare"));
    lab.reaches(node, "available").await;
    assert!(machine.disks_are_blank());
    assert_eq!(lab.vifs(node).await, []);
    block_in_place(|| {
        assert_eq!(admin.json(service_ports), json!([]), "no port is left behind");
        drop(nova);
        alice.refused(&format!("port show {vif}"));
        for command in ["network delete metal", "image delete bootable"] {
            alice.done(command);
        }
        admin.done(&format!("network delete {SERVICE_NETWORK}"));
        admin.done("flavor delete metal");
    });
}
