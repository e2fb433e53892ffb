//! PostgreSQL stops and starts, freezes and thaws, and commits without an answer, while a machine is installed and while clusters are made:
//! requests get 503 in time meanwhile, no service is restarted, work ends as it should, and nothing is done twice.

use std::time::Duration;

use bmc_emulator::PowerRequest::{ForceOff, On};
use lab::{Answer, Lab, LossyWay, Machine, Node, Postgres, RackedMachine, Settings};
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

/// Asserts that the service refuses in its own envelope, in time, and says when to try again.
#[track_caller]
fn is_refused(answer: &Answer, begun: Instant, said: &str) {
    assert!(begun.elapsed() < IN_TIME, "after {:?}: {answer:?}", begun.elapsed());
    assert_eq!(answer.status, 503, "{answer:?}");
    assert!(answer.retry_after.is_some(), "{answer:?}");
    assert!(said.contains("the database") || said.contains("cannot be recorded"), "{answer:?}");
}

/// Ironic's envelope: JSON in a JSON string.
fn fault(answer: &Answer) -> String {
    let inner = answer.body["error_message"].as_str().unwrap_or_default();
    let inner: Value = serde_json::from_str(inner).unwrap_or_default();
    let said = inner["faultstring"].as_str().or(inner["description"].as_str());
    said.unwrap_or_default().to_owned()
}

async fn refuses(lab: &Lab, node: Node) {
    let path = format!("/v1/nodes/{}", node.0);
    let power = format!("{path}/states/power");
    let off = json!({"target": "power off"});
    for (method, path, body) in [(Method::GET, &path, None), (Method::PUT, &power, Some(&off))] {
        let begun = Instant::now();
        let answer = lab.api().send(method, path, body).await;
        is_refused(&answer, begun, &fault(&answer));
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
    let ended = |node: &Value| {
        assert!(node["last_error"].is_null(), "{node:#}");
        let changed = node["provision_updated_at"] != before.node["provision_updated_at"];
        (changed && node["provision_state"] == end).then_some(())
    };
    lab.api().until(&format!("/v1/nodes/{}", node.0), end, ended).await;
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
    let path = format!("/v1/nodes/{}/states/provision", node.0);
    let asked = lab.api().send(Method::PUT, &path, Some(&Node::target("deleted"))).await;
    is_refused(&asked, begun, &fault(&asked));
    assert!(way.has_lost() && fault(&asked).contains("may have been made"), "{asked:?}");
    let power = &[ForceOff, On, ForceOff];
    ends_once(&lab, node, &machine, &before, &(UNDEPLOYMENT, power, ERASES)).await;
}

/// Magnum's envelope: a list of one.
fn detail(answer: &Answer) -> String {
    answer.body["errors"][0]["detail"].as_str().unwrap_or_default().to_owned()
}

/// A cluster of so many machines, by its template.
fn cluster(name: &str, masters: u32, workers: u32) -> Value {
    json!({"name": name, "cluster_template_id": "small", "master_count": masters, "node_count": workers})
}

async fn is_there(given: &Services, name: &str, status: &str) {
    until(status, async || {
        let answer = given.ask_clusters(Method::GET, &format!("/v1/clusters/{name}"), None).await;
        let said = answer.body["status"].as_str().unwrap_or_default().to_owned();
        assert!(!said.ends_with("FAILED"), "{answer:?}");
        (said == status).then_some(())
    })
    .await;
}

async fn refuses_clusters(given: &Services) {
    let other = cluster("other", 1, 1);
    for (method, path, body) in [
        (Method::GET, "/v1/clusters/blue", None),
        (Method::GET, "/v1/clusters", None),
        (Method::POST, "/v1/clusters", Some(&other)),
    ] {
        let begun = Instant::now();
        let answer = given.ask_clusters(method, path, body).await;
        is_refused(&answer, begun, &detail(&answer));
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
    given.ask_clusters(Method::POST, "/v1/clustertemplates", Some(&template)).await.expect("it is");

    // The database stops after the request for the first server.
    let blue = cluster("blue", 3, 1);
    given.ask_clusters(Method::POST, "/v1/clusters", Some(&blue)).await.expect("it is made");
    until("a server", async || (servers_made(&given) > 0).then_some(())).await;
    server.stop().await;
    refuses_clusters(&given).await;
    server.start_again().await;
    is_there(&given, "blue", "CREATE_COMPLETE").await;
    assert_eq!(servers_made(&given), 4);

    // The database freezes as soon as another server is desired.
    let grown = json!([{"op": "replace", "path": "/node_count", "value": 2}]);
    let asked = given.ask_clusters(Method::PATCH, "/v1/clusters/blue", Some(&grown)).await;
    asked.expect("it grows");
    server.freeze().await;
    refuses_clusters(&given).await;
    server.thaw().await;
    is_there(&given, "blue", "UPDATE_COMPLETE").await;
    assert_eq!(servers_made(&given), 5);

    // The database commits the request, and the answer is lost.
    way.lose_commit_of("green");
    let begun = Instant::now();
    let green = cluster("green", 1, 1);
    let asked = given.ask_clusters(Method::POST, "/v1/clusters", Some(&green)).await;
    is_refused(&asked, begun, &detail(&asked));
    assert!(way.has_lost() && detail(&asked).contains("may have been made"), "{asked:?}");
    is_there(&given, "green", "CREATE_COMPLETE").await;
    assert_eq!(servers_made(&given), 7);
}
