//! PostgreSQL stops and starts, freezes and thaws, and commits without an answer, while a machine is installed and while clusters are made:
//! requests get 503 in time meanwhile, no service is restarted, work ends as it should, and nothing is done twice.

use std::time::Duration;

use api_client::Refusal;
use api_client::clusterd::ClusterStatus;
use bmc_emulator::PowerRequest::{ForceOff, On};
use lab::{Lab, LossyWay, Machine, Node, Postgres, RackedMachine, Settings};
use machine_emulator::{BootSource, Event, Stage};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::kill_points::{DEPLOYMENT, ERASES, StateBefore, UNDEPLOYMENT, WRITES};
use crate::own_vm::until;
use crate::services::Services;

/// The boot timeout. A healthy machine reports sooner, even on a busy computer.
const BOOT_TIMEOUT: &str = "10s";
/// The database is away for longer than the boot timeout.
const OUTAGE: Duration = Duration::from_secs(11);
/// A node that waits for the database has a turn every second.
const TURNS: Duration = Duration::from_secs(3);
/// The longest time to an answer without the database. A request may wait for the database twice, each time for a little more than a second,
/// on a busy computer.
const IN_TIME: Duration = Duration::from_secs(10);

/// Asserts that the service has refused in its own envelope, in time, and says when to try again.
#[track_caller]
fn is_in_time(refusal: &Refusal, begun: Instant) {
    assert!(begun.elapsed() < IN_TIME, "after {:?}: {refusal:?}", begun.elapsed());
    assert_eq!(refusal.status, 503, "{refusal:?}");
    assert!(refusal.retry_after.is_some(), "{refusal:?}");
    let said = refusal.message.as_deref().unwrap_or_default();
    assert!(said.contains("the database") || said.contains("cannot be recorded"), "{refusal:?}");
}

/// Asserts that the service says that a request may have been carried out.
#[track_caller]
fn may_be_made(refusal: &Refusal) {
    assert!(refusal.sentence().contains("may have been made"), "{refusal:?}");
}

async fn refuses(lab: &Lab, node: Node) {
    let path = node.path();
    let power = format!("{path}/states/power");
    let off = json!({"target": "power off"});
    for (method, path, body) in [(Method::GET, &path, None), (Method::PUT, &power, Some(&off))] {
        let begun = Instant::now();
        is_in_time(&lab.api().refused(method, path, body).await, begun);
    }
}

/// Waits for the end of the node's work, and asserts that everything happened once.
async fn ends_once(
    lab: &Lab,
    node: Node,
    machine: &RackedMachine,
    before: &StateBefore,
    want: &Want,
) {
    let (states, power, steps) = *want;
    let end = *states.last().expect("it ends somewhere");
    lab.ends(node, &before.node, end).await;
    assert_eq!(before.states(lab, node).await, states);
    assert_eq!(before.power(machine), power);
    assert_eq!(before.steps(machine), steps);
}

/// The states, the changes of power and the steps of some work.
type Want =
    (&'static [&'static str], &'static [bmc_emulator::PowerRequest], &'static [&'static str]);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_is_installed_while_the_database_comes_and_goes() {
    let Some(server) = Postgres::start(&["baremetald"]).await else {
        return peers::skip("database_away", "no PostgreSQL is installed");
    };
    let way = LossyWay::to(&server).await;
    let settings = Settings {
        database: Some(way.url("baremetald")),
        boot_timeout: BOOT_TIMEOUT,
        ..Settings::default()
    };
    let lab = Lab::with_child(settings).await;
    let machine = lab.rack(Machine::redfish("r1u1").without_tls()).await;
    let node = lab.available(&machine).await;

    // The machine boots while the database is away. The time does not count against it.
    let before = StateBefore::of(&lab, node, &machine).await;
    machine.misbehave(|faults| faults.agent_is_silent = true);
    lab.provision(node, "active").await.reaches("wait call-back").await;
    let is_up = |stage: &Stage| *stage == Stage::Ramdisk(BootSource::Network);
    machine.stage().wait_for(is_up).await.expect("it boots its ramdisk");
    server.stop().await;
    let away_since = Instant::now();
    refuses(&lab, node).await;
    lab::until("a long outage", || away_since.elapsed() > OUTAGE).await;
    refuses(&lab, node).await;
    server.start_again().await;
    // The agent reports after the conductor has looked at the node.
    let back_since = Instant::now();
    lab::until("several turns", || back_since.elapsed() > TURNS).await;
    machine.misbehave(|faults| faults.agent_is_silent = false);
    ends_once(&lab, node, &machine, &before, &(DEPLOYMENT, &[On, ForceOff, On], WRITES)).await;

    // The agent writes the image while the database is frozen, and ends before that is over.
    let before = StateBefore::of(&lab, node, &machine).await;
    machine.misbehave(|faults| faults.hold_image = true);
    lab.provision(node, "rebuild").await.reaches("wait call-back").await;
    let happens = async |event: Event| {
        lab::until("the agent at work", || before.happened(&machine).contains(&event)).await;
    };
    happens(Event::Begins("write_image".to_owned())).await;
    server.freeze().await;
    refuses(&lab, node).await;
    machine.misbehave(|faults| faults.hold_image = false);
    happens(Event::Did("write_image".to_owned())).await;
    refuses(&lab, node).await;
    server.thaw().await;
    let power = &[ForceOff, On, ForceOff, On];
    ends_once(&lab, node, &machine, &before, &(DEPLOYMENT, power, WRITES)).await;

    // The database commits the request, and the answer is lost: the conductor finds the request.
    let before = StateBefore::of(&lab, node, &machine).await;
    way.lose_commit_of("deleting");
    let begun = Instant::now();
    let path = format!("{}/states/provision", node.path());
    let refusal = lab.api().refused(Method::PUT, &path, Some(&Node::target("deleted"))).await;
    is_in_time(&refusal, begun);
    assert!(way.has_lost());
    may_be_made(&refusal);
    let power = &[ForceOff, On, ForceOff];
    ends_once(&lab, node, &machine, &before, &(UNDEPLOYMENT, power, ERASES)).await;
}

/// A cluster of so many machines, by its template.
fn cluster(name: &str, masters: u32, workers: u32) -> Value {
    json!({"name": name, "cluster_template_id": "small", "master_count": masters, "node_count": workers})
}

async fn is_there(given: &Services, name: &str, status: &str) {
    let is_there = |it: &ClusterStatus| {
        assert!(!it.status.ends_with("FAILED"), "{it:?}");
        (it.status == status).then_some(())
    };
    given.clusters.api.until(&format!("/bedplate/v1/clusters/{name}"), status, is_there).await;
}

async fn refuses_clusters(given: &Services) {
    let other = cluster("other", 1, 1);
    for (method, path, body) in [
        (Method::GET, "/v1/clusters/blue", None),
        (Method::GET, "/v1/clusters", None),
        (Method::POST, "/v1/clusters", Some(&other)),
    ] {
        let begun = Instant::now();
        is_in_time(&given.clusters.api.refused(method, path, body).await, begun);
    }
}

/// Returns the number of servers that the cloud was asked for.
fn servers_made(given: &Services) -> usize {
    given.clusters.site.cloud.count(|call| call.method == "POST" && call.path.ends_with("/servers"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clusters_are_made_while_the_database_comes_and_goes() {
    let Some(server) = Postgres::start(&["baremetald", "clusterd"]).await else {
        return peers::skip("database_away", "no PostgreSQL is installed");
    };
    let way = LossyWay::to(&server).await;
    let database = |name: &str| format!("[database]\nurl = '{}'\ntimeout = '1s'\n", way.url(name));
    let given = Services::start_with(database).await;
    let template = json!({
        "name": "small", "coe": "kubernetes", "image_id": "fedora-coreos", "external_network_id": "public",
        "flavor_id": "m1.small", "master_flavor_id": "m1.small", "master_lb_enabled": true,
        "labels": {"kube_tag": "v1.34.1"},
    });
    let api = &given.clusters.api;
    api.create("/v1/clustertemplates", &template).await;

    // The database stops after the request for the first server.
    let blue = cluster("blue", 3, 1);
    api.create("/v1/clusters", &blue).await;
    until("a server", async || (servers_made(&given) > 0).then_some(())).await;
    server.stop().await;
    refuses_clusters(&given).await;
    server.start_again().await;
    is_there(&given, "blue", "CREATE_COMPLETE").await;
    assert_eq!(servers_made(&given), 4);

    // The database freezes as soon as another server is desired.
    let grown = json!([{"op": "replace", "path": "/node_count", "value": 2}]);
    api.send(Method::PATCH, "/v1/clusters/blue", Some(&grown)).await.expect("it grows");
    server.freeze().await;
    refuses_clusters(&given).await;
    server.thaw().await;
    is_there(&given, "blue", "UPDATE_COMPLETE").await;
    assert_eq!(servers_made(&given), 5);

    // The database commits the request, and the answer is lost.
    way.lose_commit_of("green");
    let begun = Instant::now();
    let green = cluster("green", 1, 1);
    let refusal = api.refused(Method::POST, "/v1/clusters", Some(&green)).await;
    is_in_time(&refusal, begun);
    assert!(way.has_lost());
    may_be_made(&refusal);
    is_there(&given, "green", "CREATE_COMPLETE").await;
    assert_eq!(servers_made(&given), 7);
}
