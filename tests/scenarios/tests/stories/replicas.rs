//! Three baremetald share one PostgreSQL. One of them is killed, stopped or paused while it installs a machine: another one finishes the work
//! in time, and nothing is done twice.

use std::time::Duration;

use api_client::baremetald::{self, Conductor};
use bmc_emulator::PowerRequest::{ForceOff, On};
use lab::{Lab, Machine, Node, Postgres, RackedMachine, Replica, Settings};
use machine_emulator::Event;
use reqwest::Method;
use serde_json::Value;
use tokio::time::Instant;

use crate::kill_points::{DEPLOYMENT, StateBefore, WRITES};

/// The time after which the work of a process that died goes on elsewhere.
const TAKEN_OVER: Duration = Duration::from_secs(10);
/// The time after which the work of a process that was told to stop goes on elsewhere. A busy computer needs longer than half a second.
const HANDED_OVER: Duration = Duration::from_secs(2);

/// The database is away for longer than a lease lasts.
const OUTAGE: Duration = Duration::from_secs(8);

/// The host name of the lab's own baremetald, from which the machines boot.
const FIRST: &str = "lab";
const SECOND: &str = "two";
const THIRD: &str = "three";

/// Three baremetald on one PostgreSQL, and a machine whose node belongs to the second.
struct Site {
    lab: Lab,
    second: Replica,
    third: Replica,
    machine: RackedMachine,
    node: Node,
    server: Postgres,
}

impl Site {
    /// Returns `None` if PostgreSQL is not installed.
    async fn start() -> Option<Site> {
        let Some(server) = Postgres::start(&["baremetald"]).await else {
            peers::skip("replicas", "no PostgreSQL is installed");
            return None;
        };
        // A BMC keeps the session of a service that died for a minute, and has few of them.
        let settings = Settings {
            database: Some(server.url("baremetald")),
            bmc_timeout: "90s",
            power_timeout: "90s",
            ..Settings::default()
        };
        let lab = Lab::with_child(settings).await;
        let (second, third) = (lab.replica(SECOND).await, lab.replica(THIRD).await);
        let (machine, node) = node_of(&lab, SECOND).await;
        lab.provision(node, "manage").await.reaches("manageable").await;
        lab.provision(node, "provide").await.reaches("available").await;
        Some(Site { lab, second, third, machine, node, server })
    }

    /// Requests the installation of the machine, and waits until its agent writes the image, which it cannot finish.
    async fn begins_to_install(&self) -> StateBefore {
        let before = StateBefore::of(&self.lab, self.node, &self.machine).await;
        self.machine.misbehave(|faults| faults.hold_image = true);
        // The request is made elsewhere: the conductor that works on the node is notified.
        let path = format!("{}/states/provision", self.node.path());
        let asked = self.third.api().send(Method::PUT, &path, Some(&Node::target("active"))).await;
        asked.expect("an installation");
        let writes = Event::Begins("write_image".to_owned());
        lab::until("an image that is written", || before.happened(&self.machine).contains(&writes))
            .await;
        before
    }

    /// Waits until another conductor works on the node, and asserts that this comes in time.
    async fn is_taken_over(&self, begun: Instant, limit: Duration) {
        let elsewhere = |it: &Value| (it["conductor"] != SECOND).then_some(());
        self.lab.api().until(&self.node.path(), "another conductor", elsewhere).await;
        assert!(begun.elapsed() < limit, "after {:?}", begun.elapsed());
    }

    /// Waits until the machine is installed, and asserts that everything happened once.
    async fn is_installed_once(&self, before: &StateBefore) {
        self.machine.misbehave(|faults| faults.hold_image = false);
        self.lab.ends(self.node, &before.node, "active").await;
        assert_eq!(before.states(&self.lab, self.node).await, DEPLOYMENT);
        assert_eq!(before.power(&self.machine), [On, ForceOff, On]);
        assert_eq!(before.steps(&self.machine), WRITES);
    }
}

/// Puts machines into the rack until the node of one belongs to this conductor.
async fn node_of(lab: &Lab, hostname: &str) -> (RackedMachine, Node) {
    is_shared_by(lab, &[FIRST, THIRD, SECOND]).await;
    for number in 0..50 {
        let machine = lab.rack(Machine::redfish(&format!("r1u{number}")).without_tls()).await;
        let node = lab.enroll(&machine).await;
        let shown: Value = lab.api().get(&node.path()).await;
        if shown["conductor"] == hostname {
            return (machine, node);
        }
    }
    panic!("no node belongs to {hostname}");
}

/// Waits until the first baremetald shares the nodes with these, itself included.
async fn is_shared_by(lab: &Lab, hostnames: &[&str]) {
    let mut want: Vec<&str> = hostnames.to_vec();
    want.sort_unstable();
    let all_know = |it: &Value| (it["hosts"] == Value::from(want.clone())).then_some(());
    lab.api().until("/v1/drivers/redfish", "these conductors", all_know).await;
}

/// Whether a conductor is alive.
async fn is_alive(lab: &Lab, hostname: &str) -> bool {
    let shown: Value = lab.api().get(&format!("/v1/conductors/{hostname}")).await;
    shown["alive"] == true
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_work_of_a_killed_process_is_finished_by_another() {
    let Some(site) = Site::start().await else { return };
    let before = site.begins_to_install().await;
    let begun = Instant::now();
    site.second.signal("KILL").await;
    site.is_taken_over(begun, TAKEN_OVER).await;
    assert!(!is_alive(&site.lab, SECOND).await && is_alive(&site.lab, FIRST).await);
    site.is_installed_once(&before).await;
    let shown: baremetald::Node = site.third.api().get(&site.node.path()).await;
    assert_eq!(shown.state(), "active");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_stops_hands_its_work_over_at_once() {
    let Some(site) = Site::start().await else { return };
    let before = site.begins_to_install().await;
    let begun = Instant::now();
    site.second.signal("TERM").await;
    site.is_taken_over(begun, HANDED_OVER).await;
    assert!(!is_alive(&site.lab, SECOND).await);
    site.is_installed_once(&before).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_was_paused_does_nothing_twice() {
    let Some(site) = Site::start().await else { return };
    let before = site.begins_to_install().await;
    let begun = Instant::now();
    site.second.signal("STOP").await;
    site.is_taken_over(begun, TAKEN_OVER).await;
    site.is_installed_once(&before).await;
    site.second.signal("CONT").await;
    is_shared_by(&site.lab, &[FIRST, THIRD, SECOND]).await;
    // The node belongs to the second one again, which works on it as before.
    let back = |it: &Value| (it["conductor"] == SECOND).then_some(());
    site.lab.api().until(&site.node.path(), "its conductor", back).await;
    assert_eq!(before.steps(&site.machine), WRITES);
    assert_eq!(before.power(&site.machine), [On, ForceOff, On]);
    site.lab.provision(site.node, "deleted").await.reaches("available").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_is_paused_at_its_first_effect_does_nothing_twice() {
    let Some(site) = Site::start().await else { return };
    let before = StateBefore::of(&site.lab, site.node, &site.machine).await;
    let path = format!("{}/states/provision", site.node.path());
    let asked = site.third.api().send(Method::PUT, &path, Some(&Node::target("active"))).await;
    asked.expect("an installation");
    let begun = Instant::now();
    site.second.signal("STOP").await;
    site.is_taken_over(begun, TAKEN_OVER).await;
    // The paused process goes on in the middle of the work of its successor.
    site.lab.reaches(site.node, "wait call-back").await;
    site.second.signal("CONT").await;
    site.is_installed_once(&before).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_goes_on_after_all_leases_have_passed() {
    let Some(site) = Site::start().await else { return };
    let before = site.begins_to_install().await;
    site.server.stop().await;
    let away_since = Instant::now();
    lab::until("a long outage", || away_since.elapsed() > OUTAGE).await;
    site.server.start_again().await;
    is_shared_by(&site.lab, &[FIRST, THIRD, SECOND]).await;
    site.is_installed_once(&before).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drained_process_works_on_nothing() {
    let Some(site) = Site::start().await else { return };
    let before = site.begins_to_install().await;
    let path = format!("/bedplate/v1/conductors/{SECOND}");
    let drain = format!("{path}/drain");
    site.third.api().send(Method::PUT, &drain, None).await.expect("a drain");
    let is_drained = |it: &Conductor| (it.state == "drained").then(|| it.clone());
    let drained = site.lab.api().until(&path, "a drained conductor", is_drained).await;
    assert_eq!((drained.nodes, drained.turns_of_others), (0, 0));
    site.is_installed_once(&before).await;
    site.third.api().send(Method::DELETE, &drain, None).await.expect("the end of the drain");
    let works = |it: &Conductor| (it.state == "working").then(|| it.clone());
    let working = site.lab.api().until(&path, "a conductor that works", works).await;
    assert!(working.nodes > 0, "{working:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_process_with_the_host_name_of_a_living_one_ends() {
    let Some(site) = Site::start().await else { return };
    let refused = site.lab.replica_named_as("other", SECOND).await;
    assert!(refused.contains("is running as conductor two"), "{refused}");
    let stranger = site.lab.replica_with_own_key("four").await;
    assert!(stranger.contains("with another key"), "{stranger}");
    assert!(is_alive(&site.lab, SECOND).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_sealing_key_reaches_all_processes() {
    let Some(site) = Site::start().await else { return };
    let rotated = site.third.api().send(Method::POST, "/bedplate/v1/keys/rotate", None).await;
    let id = rotated.expect("a rotation")["id"].clone();
    for api in [site.lab.api(), site.second.api(), site.third.api()] {
        let keys: Value = api.get("/bedplate/v1/keys").await;
        let first =
            keys["keys"].as_array().and_then(|keys| keys.iter().find(|it| it["seals"] == true));
        assert_eq!(first.map(|key| &key["id"]), Some(&id), "{keys}");
    }
    // The process that installs the machine opens the password of its BMC, which another one has sealed with the new key.
    site.lab.set(site.node, "/driver_info/redfish_password", left::canary::BMC.into()).await;
    let before = site.begins_to_install().await;
    site.is_installed_once(&before).await;
}
