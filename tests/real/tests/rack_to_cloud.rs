//! One command makes a machine of the rack a compute host of a real OpenStack, and a server runs on it.

use std::fs;
use std::time::Instant;

use compat::CommandLine;
use real::{Cloud, Firmware, RackOptions, Story, image, images_folder, until};
use serde_json::{Value, json};

/// The password of all users in the cloud of `openstack.sh`.
const PASSWORD: &str = "bedplate";

#[test]
fn a_rack_joins_the_cloud_by_one_command_and_runs_a_server() {
    let Some(cloud) = Cloud::reported() else { return };
    let given = RackOptions {
        // Enough for the services of a compute host and for one server. With two processors, which QEMU emulates in two threads, the
        // machine froze once while its services started.
        sizes: &[("RACK_MEMORY", "3072"), ("RACK_CPUS", "1"), ("RACK_DISK", "8G")],
        uplink: Some(&cloud.address),
        tables: &format!(
            "[cloud]\nclouds_yaml = \"{}\"\nname = \"admin\"\n",
            cloud.clouds_yaml.display()
        ),
        ..RackOptions::default()
    };
    let Some(story) = Story::begin_given("cloud", &[Firmware::Uefi], &given) else { return };
    let machine = story.machine(0);
    let manifest = story.rack.folder.join("rack.yaml");
    let file = story.rack.folder.join("profile.json");
    fs::write(&file, profile(&cloud).to_string()).expect("a file can be written");
    story.bedplate(&["rack", "enroll", manifest.to_str().expect("a path is text")]);
    story.bedplate(&["profile", "create", file.to_str().expect("a path is text")]);

    let begun = Instant::now();
    // The limit ends before that of the test runner, so that a failure prints the machine's console.
    let up = ["rack", "up", "cloud", "--yes", "--profile", "kvm", "--timeout", "20m"];
    story.bedplate(&up);
    eprintln!("the rack is up after {:.0?}", begun.elapsed());

    let mut admin = CommandLine::in_cloud(&cloud.clouds_yaml, "admin");
    let listed = admin.json(&["hypervisor", "list"]);
    let mut hosts = listed.as_array().into_iter().flatten();
    let ours = hosts.find(|host| host["Hypervisor Hostname"] == machine.name.as_str());
    let ours = ours.unwrap_or_else(|| panic!("not among {listed}"));
    assert_eq!(
        (&ours["Hypervisor Type"], &ours["State"]),
        (&json!("QEMU"), &json!("up")),
        "{ours}"
    );
    until("its Neutron agent is alive", || {
        let agents = admin.json(&["network", "agent", "list", "--host", &machine.name]);
        (agents[0]["Alive"] == true).then_some(())
    });

    // The zone has the rack's name and contains only this host, so Nova chooses it although the request names no host.
    let disk = images_folder().join("tiny.raw");
    let disk = disk.to_str().expect("a path is text");
    let made = ["image", "create", "--file", disk, "--disk-format", "raw", "--public", "boots"];
    admin.done(&made);
    let mut tenant = CommandLine::in_cloud(&cloud.clouds_yaml, "alice");
    tenant.done(&["network", "create", "inside"]);
    let range = ["subnet", "create", "--network", "inside", "--subnet-range", "10.99.0.0/24"];
    tenant.done(&[&range[..], &["inside"]].concat());
    let wanted = ["server", "create", "--image", "boots", "--flavor", "m1.tiny"];
    let where_to = ["--network", "inside", "--availability-zone", "cloud", "first"];
    let server = tenant.json(&[&wanted[..], &where_to].concat());
    let server = server["id"].as_str().expect("a server has an id").to_owned();
    let shown = until("the server is active", || {
        let shown = admin.json(&["server", "show", &server]);
        assert_ne!(shown["status"], "ERROR", "{shown}");
        (shown["status"] == "ACTIVE").then_some(shown)
    });
    assert_eq!(shown["OS-EXT-SRV-ATTR:hypervisor_hostname"], machine.name.as_str(), "{shown}");
    // The server's console shows that it runs the image's boot loader, in a QEMU on the rack's machine, which is itself emulated.
    until("the server begins to boot", || {
        tenant.done(&["console", "log", "show", &server]).contains("SYSLINUX").then_some(())
    });
}

/// The hypervisor profile: how hypervisors reach the cloud, and where it puts them.
fn profile(cloud: &Cloud) -> Value {
    let image = image("hypervisor.qcow2");
    json!({
        "name": "kvm",
        "kind": "cloud-init",
        "instance_info": {
            "image_source": image.url,
            "image_os_hash_algo": "sha256",
            "image_os_hash_value": image.sha256,
            "image_disk_format": image.format,
        },
        "settings": {
            "keystone": {"auth_url": cloud.keystone, "username": "service", "password": PASSWORD},
            "message_bus": {"transport_url": format!("rabbit://guest:guest@{}:5672/", cloud.address)},
            "neutron": {"tunnels": true},
            "compute": {"virtualization": "qemu", "cpu_mode": "none"},
        },
        "placement": {"availability_zone": "rack", "aggregate": "rack"},
    })
}
