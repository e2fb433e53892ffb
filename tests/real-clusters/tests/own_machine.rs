//! On a real OpenStack whose hypervisors only pretend, a person's own machine is asked for by `bedplate vm`, found by its name in Designate's DNS,
//! shut off and kept when its lease ends, taken back, and gone in the end. Nothing of it is left.
//!
//! How long things last is configuration. What a hypervisor that pretends writes into an image is a few bytes (`bedplate_nova.py`).

use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use compat::Service;
use real_clusters::{Cloud, clusterd};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(240);
const ZONE: &str = "own.example.";
const NAME: &str = "lab-1.own.example.";

/// A ladder whose undo window stays open.
const SLOW: &str = "warn_before = ['30s'], notice = '20s', undo_window = '30m', undo_gives = '60s'";
/// One that goes down to the end by itself, while somebody looks.
const QUICK: &str =
    "warn_before = ['30s'], notice = '20s', undo_window = '30s', undo_gives = '60s'";

/// `bedplate vm …`, of this clusterd.
struct Person {
    bedplate: PathBuf,
    service: Service,
}

impl Person {
    fn new(cloud: &Cloud, ladder: &str) -> Person {
        let lease = "lease = { default = '60s', longest = '1h' }";
        let machines = format!(
            "[machines]\nnetwork = 'own'\nzone = '{ZONE}'\nimages = [{{ name = 'tiny' }}]\n{lease}\nladder = {{ {ladder} }}\n"
        );
        let bedplate = compat::program("bedplate");
        Person { bedplate, service: clusterd(&cloud.clouds_yaml, "alice", &machines) }
    }

    /// What it said, where it did as told, and what it complained of, where not.
    fn vm(&self, arguments: &[&str]) -> Result<String, String> {
        let mut command = Command::new(&self.bedplate);
        command.env_clear().args(["--clusters-url", &self.service.url, "-o", "json", "vm"]);
        let output = command.args(arguments).output().expect("bedplate starts");
        let text = |bytes| String::from_utf8(bytes).expect("text");
        if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
    }

    #[track_caller]
    fn json(&self, arguments: &[&str]) -> Value {
        let said = self.vm(arguments).unwrap_or_else(|why| panic!("{arguments:?}: {why}"));
        serde_json::from_str(&said).expect("JSON")
    }

    /// Waits until it shows what is wanted.
    fn shows(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        until(what, || Some(self.json(&["show", "lab-1"])).filter(|vm| wanted(vm)))
    }
}

#[test]
fn a_machine_is_lent_by_name_taken_back_and_gone_in_a_real_openstack() {
    let Some(mut cloud) = Cloud::without_machines("alice") else { return };
    cloud.done(&format!("zone create --email hostmaster@own.example {ZONE}"));
    cloud.done("network create own");
    cloud.done("subnet create own --network own --subnet-range 10.30.0.0/24");
    let before = Left::of(&mut cloud);

    // Each clusterd of these has a state of its own, so the second story is another machine's.
    let person = Person::new(&cloud, SLOW);
    let request = ["request", "lab-1", "--image", "tiny", "--flavor", "m1.tiny", "--wait"];
    let vm = person.json(&request);
    assert_eq!(vm["status"], "ACTIVE", "{vm:#}");
    let address = vm["address"].as_str().expect("an address").to_owned();
    assert_eq!(cloud.json("server list")[0]["Status"], "ACTIVE");
    until("its name", || (cloud.dig(NAME) == [address.clone()]).then_some(()));

    person.shows("the end of its lease", |vm| vm["status"] == "EXPIRED");
    person.shows("its copy", |vm| vm["lease"]["next"]["step"] == "warn_of_deletion");
    assert_eq!(cloud.json("server list")[0]["Status"], "SHUTOFF");
    let kept = person.json(&["snapshots", "lab-1"]);
    assert_eq!(kept[0]["status"], "active", "{kept:#}");
    let image = kept[0]["image_id"].as_str().expect("an image").to_owned();
    let shown = cloud.json(&format!("image show {image}"));
    assert_eq!(shown["status"], "active", "{shown:#}");
    assert!(shown["size"].as_u64() > Some(0), "{shown:#}");

    let vm = person.json(&["undo", "lab-1", "--wait"]);
    assert_eq!((&vm["status"], &vm["address"]), (&json!("ACTIVE"), &json!(address)), "{vm:#}");
    assert_eq!(cloud.json("server list")[0]["Status"], "ACTIVE");
    assert_eq!(cloud.dig(NAME), [address]);
    person.vm(&["delete", "lab-1", "--wait", "--yes"]).expect("it is deleted");
    drop_kept(&person);
    until("nothing that is left", || (Left::of(&mut cloud) == before).then_some(()));
    drop(person);

    let person = Person::new(&cloud, QUICK);
    person.json(&request);
    until("its end", || {
        let said = person.vm(&["show", "lab-1"]);
        said.is_err_and(|why| why.contains("could not be found")).then_some(())
    });
    assert_eq!(cloud.dig(NAME), [""; 0]);
    assert_eq!(person.json(&["snapshots"])[0]["status"], "active", "the copy outlives it");
    drop_kept(&person);
    until("nothing that is left", || (Left::of(&mut cloud) == before).then_some(()));

    cloud.done("network delete own");
    cloud.done(&format!("zone delete {ZONE}"));
}

fn drop_kept(person: &Person) {
    for kept in person.json(&["snapshots"]).as_array().expect("a list") {
        let id = kept["uuid"].as_str().expect("an id");
        person.vm(&["delete-snapshot", id, "--yes"]).expect("it is deleted");
    }
    until("snapshots that are gone", || (person.json(&["snapshots"]) == json!([])).then_some(()));
}

/// What the project has.
#[derive(Debug, PartialEq)]
struct Left {
    servers: Value,
    images: Value,
    ports: Value,
    names: Value,
}

impl Left {
    fn of(cloud: &mut Cloud) -> Left {
        Left {
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
        assert!(begun.elapsed() < PATIENCE, "in vain: {what}");
        thread::sleep(Duration::from_millis(500));
    }
}
