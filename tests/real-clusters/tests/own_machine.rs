//! On a real OpenStack with fake hypervisors, a VM is requested by `bedplate vm`, resolved by name in Designate, switched off and kept when
//! its
//! lease ends, taken back, and deleted. Nothing of the VM is left afterwards.
//!
//! The durations come from the configuration. The image that a fake hypervisor makes of a server has a few bytes (`bedplate_nova.py`).

use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use api_client::clusterd::{Snapshot, Vm};
use compat::Service;
use real_clusters::{Cloud, clusterd};
use serde::de::DeserializeOwned;
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(600);
const ZONE: &str = "own.example.";
const NAME: &str = "lab-1.own.example.";

/// Lease stages whose undo window stays open during the test.
const SLOW: &str = "warn_before = ['30s'], notice = '20s', undo_window = '30m', undo_gives = '60s'";
/// Lease stages that reach the deletion while the test watches.
const QUICK: &str =
    "warn_before = ['30s'], notice = '20s', undo_window = '30s', undo_gives = '60s'";

/// A person who runs `bedplate vm …` with a clusterd of their own.
struct Person {
    bedplate: PathBuf,
    service: Service,
}

impl Person {
    fn new(cloud: &Cloud, schedule: &str) -> Person {
        let lease = "lease = { default = '60s', longest = '1h' }";
        let machines = format!(
            "[machines]\nnetwork = 'own'\nzone = '{ZONE}'\nimages = [{{ name = 'tiny' }}]\n{lease}\nschedule = {{ {schedule} }}\n"
        );
        let bedplate = compat::program("bedplate");
        Person { bedplate, service: clusterd(&cloud.clouds_yaml, "alice", &machines) }
    }

    /// The output of a command, or its error text if it failed.
    fn vm(&self, arguments: &[&str]) -> Result<String, String> {
        let mut command = Command::new(&self.bedplate);
        command.env_clear().args(["--clusters-url", &self.service.url, "-o", "json", "vm"]);
        let output = command.args(arguments).output().expect("bedplate starts");
        let text = |bytes| String::from_utf8(bytes).expect("text");
        if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
    }

    #[track_caller]
    fn json<T: DeserializeOwned>(&self, arguments: &[&str]) -> T {
        let said = self.vm(arguments).unwrap_or_else(|why| panic!("{arguments:?}: {why}"));
        serde_json::from_str(&said).expect("JSON")
    }

    /// Waits until `bedplate vm show` returns a VM that passes the check.
    fn shows(&self, what: &str, wanted: impl Fn(&Vm) -> bool) {
        until(what, || wanted(&self.json(&["show", "lab-1"])).then_some(()));
    }
}

#[test]
fn a_vm_is_lent_by_name_taken_back_and_deleted_in_a_real_openstack() {
    let Some(mut cloud) = Cloud::without_machines("alice") else { return };
    cloud.done(&format!("zone create --email hostmaster@own.example {ZONE}"));
    cloud.done("network create own");
    cloud.done("subnet create own --network own --subnet-range 10.30.0.0/24");
    let before = ProjectObjects::of(&mut cloud);

    // Each `Person` starts a clusterd with an empty database, so the second half of the test requests a new VM.
    let person = Person::new(&cloud, SLOW);
    let request = ["request", "lab-1", "--image", "tiny", "--flavor", "m1.tiny", "--wait"];
    let vm: Vm = person.json(&request);
    assert_eq!(vm.status, "ACTIVE", "{vm:?}");
    let address = vm.address.expect("an address");
    assert_eq!(cloud.json("server list")[0]["Status"], "ACTIVE");
    until("its name", || (cloud.dig(NAME) == [address.clone()]).then_some(()));

    person.shows("the end of its lease", |vm| vm.status == "EXPIRED");
    person.shows("its copy", |vm| vm.next_stage() == Some("warn_of_deletion"));
    assert_eq!(cloud.json("server list")[0]["Status"], "SHUTOFF");
    let kept = person.json::<Vec<Snapshot>>(&["snapshots", "lab-1"]).swap_remove(0);
    assert_eq!(kept.status, "active", "{kept:?}");
    let image = kept.image_id.expect("an image");
    let shown = cloud.json(&format!("image show {image}"));
    assert_eq!(shown["status"], "active", "{shown:#}");
    assert!(shown["size"].as_u64() > Some(0), "{shown:#}");

    let vm: Vm = person.json(&["undo", "lab-1", "--wait"]);
    assert_eq!((vm.status.as_str(), vm.address.as_ref()), ("ACTIVE", Some(&address)));
    assert_eq!(cloud.json("server list")[0]["Status"], "ACTIVE");
    assert_eq!(cloud.dig(NAME), [address]);
    person.vm(&["delete", "lab-1", "--wait", "--yes"]).expect("it is deleted");
    drop_kept(&person);
    until("nothing that is left", || (ProjectObjects::of(&mut cloud) == before).then_some(()));
    drop(person);

    let person = Person::new(&cloud, QUICK);
    person.vm(&request).expect("it is active");
    until("its end", || {
        let said = person.vm(&["show", "lab-1"]);
        said.is_err_and(|why| why.contains("could not be found")).then_some(())
    });
    assert_eq!(cloud.dig(NAME), [""; 0]);
    let kept: Vec<Snapshot> = person.json(&["snapshots"]);
    assert_eq!(kept[0].status, "active", "the copy outlives it");
    drop_kept(&person);
    until("nothing that is left", || (ProjectObjects::of(&mut cloud) == before).then_some(()));

    cloud.done("network delete own");
    cloud.done(&format!("zone delete {ZONE}"));
}

fn drop_kept(person: &Person) {
    let all = || person.json::<Vec<Snapshot>>(&["snapshots"]);
    for kept in all() {
        person.vm(&["delete-snapshot", &kept.uuid, "--yes"]).expect("it is deleted");
    }
    until("snapshots that are gone", || all().is_empty().then_some(()));
}

/// The objects of the project, to compare before and after.
#[derive(Debug, PartialEq)]
struct ProjectObjects {
    servers: Value,
    images: Value,
    ports: Value,
    names: Value,
}

impl ProjectObjects {
    fn of(cloud: &mut Cloud) -> ProjectObjects {
        ProjectObjects {
            servers: cloud.json("server list"),
            images: cloud.json("image list"),
            ports: cloud.json("port list --device-owner compute:nova"),
            names: Value::Array(
                cloud
                    .json(&format!("recordset list {ZONE}"))
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter(|set| {
                        !["SOA", "NS"].contains(&set["type"].as_str().unwrap_or_default())
                    })
                    .cloned()
                    .collect(),
            ),
        }
    }
}

fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            eprintln!("{what} after {:.0?}", begun.elapsed());
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "timed out: {what}");
        thread::sleep(Duration::from_millis(500));
    }
}
