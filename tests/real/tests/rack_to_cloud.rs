//! A machine of the rack becomes a compute host of an OpenStack that is not ours, by one command, and a server runs on it.

use std::env;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use compat::CommandLine;
use real::{Firmware, Given, Machine, Story, image, images_folder};
use serde_json::{Value, json};

/// Machines of the rack and their servers are emulated, the latter by emulated ones, on two processors that have a cloud beside them.
const PATIENCE: Duration = Duration::from_mins(15);

/// The password of everybody in the cloud of `openstack.sh`.
const PASSWORD: &str = "bedplate";

#[test]
fn a_rack_joins_the_cloud_by_one_command_and_runs_a_server() {
    let Some(cloud) = Cloud::told() else { return };
    let given = Given {
        // room for the services of a compute host, and for one server
        sizes: &[("RACK_MEMORY", "3072"), ("RACK_CPUS", "2"), ("RACK_DISK", "8G")],
        uplink: Some(&cloud.address),
    };
    let Some(mut story) = Story::begin_given("cloud", &[Firmware::Uefi], &given) else { return };
    let machine = story.machine(0);
    let manifest = story.rack.folder.join("rack.yaml");
    story.bedplate(&["rack", "enroll", manifest.to_str().expect("a path is text")]);
    let drive = format!("configdrive={}", cloud.drive(&machine));
    story.client.done(&["node", "set", &machine.name, "--instance-info", &drive]);

    let image = image("hypervisor.qcow2");
    let checksum = format!("sha256:{}", image.sha256);
    let begun = Instant::now();
    story.bedplate(&["rack", "up", "cloud", "--image", &image.url, "--checksum", &checksum]);
    eprintln!("the rack is up after {:.0?}", begun.elapsed());

    let mut admin = CommandLine::in_cloud(&cloud.clouds_yaml, "admin");
    until("the machine is a hypervisor of the cloud", || {
        let listed = admin.json(&["hypervisor", "list"]);
        let mut listed = listed.as_array().into_iter().flatten();
        let ours = listed.find(|host| host["Hypervisor Hostname"] == machine.name.as_str())?;
        assert_eq!(ours["Hypervisor Type"], "QEMU", "{ours}");
        (ours["State"] == "up").then_some(())
    });
    until("its Neutron agent is alive", || {
        let agents = admin.json(&["network", "agent", "list", "--host", &machine.name]);
        (agents[0]["Alive"] == true).then_some(())
    });
    admin.done(&["aggregate", "create", "--zone", "rack", "rack"]);
    admin.done(&["aggregate", "add", "host", "rack", &machine.name]);

    // Nobody else is in the zone, so Nova chooses ours without being told a host.
    let disk = images_folder().join("tiny.raw");
    let disk = disk.to_str().expect("a path is text");
    let made = ["image", "create", "--file", disk, "--disk-format", "raw", "--public", "boots"];
    admin.done(&made);
    let mut tenant = CommandLine::in_cloud(&cloud.clouds_yaml, "alice");
    tenant.done(&["network", "create", "inside"]);
    let range = ["subnet", "create", "--network", "inside", "--subnet-range", "10.99.0.0/24"];
    tenant.done(&[&range[..], &["inside"]].concat());
    let wanted = ["server", "create", "--image", "boots", "--flavor", "m1.tiny"];
    let where_to = ["--network", "inside", "--availability-zone", "rack", "first"];
    let server = tenant.json(&[&wanted[..], &where_to].concat());
    let server = server["id"].as_str().expect("a server has an id").to_owned();
    let shown = until("the server is active", || {
        let shown = admin.json(&["server", "show", &server]);
        assert_ne!(shown["status"], "ERROR", "{shown}");
        (shown["status"] == "ACTIVE").then_some(shown)
    });
    assert_eq!(shown["OS-EXT-SRV-ATTR:hypervisor_hostname"], machine.name.as_str(), "{shown}");
    // Its own console says that it runs the image's boot loader, in a QEMU of the rack's machine, which is one itself.
    until("the server begins to boot", || {
        tenant.done(&["console", "log", "show", &server]).contains("SYSLINUX").then_some(())
    });
}

/// Looks until it is so, not often: whoever is asked has few processors. What it took is said.
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            eprintln!("{what} after {:.0?}", begun.elapsed());
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "in vain: {what}");
        thread::sleep(Duration::from_secs(5));
    }
}

/// The cloud that `openstack.sh` brought up at an address that machines of a rack reach.
struct Cloud {
    clouds_yaml: PathBuf,
    address: String,
    keystone: String,
}

impl Cloud {
    fn told() -> Option<Self> {
        let clouds_yaml = env::var_os("BEDPLATE_TEST_OPENSTACK").map(PathBuf::from);
        let keystone = env::var("OS_AUTH_URL").ok();
        let told = clouds_yaml.zip(keystone).and_then(|(clouds_yaml, keystone)| {
            let address = keystone.strip_prefix("http://")?.split(':').next()?.to_owned();
            Some(Cloud { clouds_yaml, address, keystone })
        });
        let told = told.filter(|cloud| !cloud.address.starts_with("127."));
        if told.is_none() {
            eprintln!("SKIPPED: no cloud that a rack reaches; `make test-hypervisor` makes one");
        }
        told
    }

    /// What the machine is told: how its services reach the cloud, as `images/hypervisor` reads it.
    fn drive(&self, machine: &Machine) -> Value {
        let credentials = format!(
            "auth_type = password\nauth_url = {}\nusername = service\npassword = {PASSWORD}\nuser_domain_name = Default\n\
             project_name = service\nproject_domain_name = Default\n",
            self.keystone
        );
        let default = format!(
            "[DEFAULT]\nhost = {}\ntransport_url = rabbit://guest:guest@{}:5672/\n",
            machine.name, self.address
        );
        let nova = format!(
            "{default}[service_user]\nsend_service_user_token = true\n{credentials}[placement]\n{credentials}\
             [neutron]\n{credentials}[libvirt]\nvirt_type = qemu\ncpu_mode = none\n"
        );
        let neutron = format!("{default}[agent]\ntunnel_types = vxlan\n");
        let file = |service: &str, content: &str| {
            json!({
                "path": format!("/etc/{service}/{service}.conf.d/50-cloud.conf"),
                "owner": format!("root:{service}"), "permissions": "0640", "content": content,
            })
        };
        let files = [file("nova", &nova), file("neutron", &neutron)];
        // JSON is YAML, which cloud-init reads.
        let user_data = format!("#cloud-config\n{}\n", json!({"write_files": files}));
        json!({
            "meta_data": {"uuid": machine.uuid, "name": machine.name, "hostname": machine.name},
            "network_data": {
                "links": [{"id": "nic", "type": "phy", "ethernet_mac_address": machine.mac}],
                "networks": [{"id": "provisioning", "link": "nic", "type": "ipv4_dhcp"}],
                "services": [],
            },
            "user_data": user_data,
        })
    }
}
