//! A node that is a compute host, beside a clusterd that drains the host: baremetald is killed at each of its effects and records. The host is
//! drained once, and its drain ends only where somebody asks for that.

use std::ops::RangeInclusive;

use api_client::baremetald;
use api_client::clusterd::{Drain, Places};
use api_client::shared::AuditRow;
use bmc_emulator::PowerRequest;
use lab::{Lab, Machine, Node, RackedMachine, Settings};
use openstack_emulator::Call;
use reqwest::Method;
use serde_json::{Value, json};

use PowerRequest::{ForceOff, On};

use super::{
    StateBefore, UNDEPLOYMENT, anywhere, installed, power_with_repeats, settings,
    states_with_repeats,
};
use crate::own_vm::until;
use crate::services::Clusters;

/// A node that is installed, and the cloud that knows its machine as a compute host.
struct Host {
    clusters: Clusters,
    lab: Lab,
    machine: RackedMachine,
    node: Node,
    /// The name of the host in the cloud.
    name: String,
}

/// The requests to clusterd and to Nova up to some time.
struct SentRequests {
    drains: usize,
    ends: usize,
    calls: usize,
}

impl Host {
    /// A node whose compute host carries a person's virtual machine.
    async fn start() -> Host {
        let clusters = Clusters::start().await;
        clusters.vm("lab-1").await;
        let more = format!("[clusters]\nurl = \"{}\"\n", clusters.api.url());
        let lab = Lab::with_mortal(Settings { more, ..settings() }).await;
        let machine = lab.rack(Machine::redfish("r1u9").without_tls()).await;
        let node = lab.available(&machine).await;
        lab.provision(node, "active").await.reaches("active").await;
        installed(&machine).await;
        let mut host = Host { clusters, lab, machine, node, name: String::new() };
        host.is_where_the_vm_is().await;
        host
    }

    /// Records that the node is the host that carries the virtual machine.
    async fn is_where_the_vm_is(&mut self) {
        self.name = self.host_of_the_vm().await;
        self.lab.set(self.node, "/instance_info/hypervisor_hostname", json!(self.name)).await;
    }

    async fn host_of_the_vm(&self) -> String {
        let Places { places } = self.clusters.api.get("/bedplate/v1/places/lab-1").await;
        places[0].host.clone().expect("a host")
    }

    async fn send(&self, method: Method, path: &str, body: Option<&Value>) {
        let path = format!("{}{path}", self.node.path());
        self.lab.api().send(method, &path, body).await.expect(&path);
    }

    async fn node(&self) -> baremetald::Node {
        self.lab.node(self.node).await
    }

    /// Returns the state of the host's drain, if it is drained.
    async fn drain(&self) -> Option<String> {
        let path = format!("/bedplate/v1/drains/{}", self.name);
        self.clusters.api.find::<Drain>(&path).await.map(|drain| drain.state)
    }

    /// Returns the requests so far: those to clusterd by its audit trail, those to Nova by the emulated cloud.
    async fn asked(&self) -> SentRequests {
        let rows: Vec<AuditRow> = self.clusters.api.list("/bedplate/v1/audit?limit=1000").await;
        let many = |method: &str| {
            let of_drains = |row: &&AuditRow| {
                row.route == "/bedplate/v1/drains/{host}"
                    && row.method == method
                    && row.outcome == "asked"
            };
            rows.iter().filter(of_drains).count()
        };
        let calls = self.clusters.site.cloud.calls().len();
        SentRequests { drains: many("PUT"), ends: many("DELETE"), calls }
    }

    /// Returns the requests to Nova since then that change a compute service or move a server.
    fn effects_since(&self, before: &SentRequests) -> Vec<&'static str> {
        let reported = |call: &Call| match (call.method.as_str(), call.path.as_str()) {
            ("PUT", path) if path.contains("/os-services/") => Some("service"),
            ("POST", path) if path.ends_with("/action") => Some("server"),
            _ => None,
        };
        self.clusters.site.cloud.calls()[before.calls..].iter().filter_map(reported).collect()
    }

    /// Waits until baremetald has no more to do with the drain.
    async fn is_over(&self) {
        let awaits = async || (!self.lab.awaits_drain(self.node).await).then_some(());
        until("the drain to be out of the record", awaits).await;
    }
}

/// Returns the range of requests for `effect` to clusterd if the service was killed at `points`: one, and one more for each kill after clusterd
/// took the request and before the answer was recorded. A service that was killed at another record meanwhile may have sent the request.
fn requests(points: &[String], effect: &str, stage: &str) -> RangeInclusive<usize> {
    let (mut surely, mut perhaps) = (1, 0);
    for point in points {
        // A requested power change is recorded before any request to clusterd.
        let is_at_the_record = point.starts_with("before update_node:")
            && point.ends_with(stage)
            && !point.contains('[');
        if is_at_the_record || point.starts_with(&format!("after {effect}:")) {
            surely += 1;
        } else if point.ends_with(stage) && !point.starts_with(&format!("before {effect}:")) {
            perhaps += 1;
        }
    }
    surely..=surely + perhaps
}

fn drains(points: &[String]) -> RangeInclusive<usize> {
    requests(points, "clusterd: drain", " asks for a drain")
}

fn ends(points: &[String]) -> RangeInclusive<usize> {
    requests(points, "clusterd: end of a drain", " ends a drain")
}

/// Requests a verb, unless the node shows by `is_recorded` that the verb was requested, and kills the service until the verb is `done`.
async fn outlived(
    host: &Host,
    is_recorded: impl Fn(&baremetald::Node) -> bool,
    ask: impl AsyncFn(),
    done: impl AsyncFn(),
) -> Vec<String> {
    let (every, spares) = anywhere();
    let ask = async || {
        if !is_recorded(&host.node().await) {
            ask().await;
        }
    };
    let done = async || {
        done().await;
        host.is_over().await;
    };
    host.lab.kill_at_every_point(every, spares, ask, done).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_compute_host_is_drained_once_for_each_request() {
    let mut host = Host::start().await;
    let power = "/states/power";
    let (off, on) = (json!({"target": "power off"}), json!({"target": "power on"}));
    let is_switched = |it: &baremetald::Node, to: &str| {
        it.power_state.as_deref() == Some(to) && it.target_power_state.is_none()
    };

    // The node is switched off, and drained once before.
    let (asked, before) = (host.asked().await, before(&host).await);
    let is_recorded = |it: &baremetald::Node| {
        [&it.target_power_state, &it.power_state]
            .iter()
            .any(|it| it.as_deref() == Some("power off"))
    };
    let ask = async || host.send(Method::PUT, power, Some(&off)).await;
    let is_off = |it: &baremetald::Node| is_switched(it, "power off");
    let done = async || drop(host.lab.until(host.node, "a machine that is off", is_off).await);
    let points = outlived(&host, is_recorded, ask, done).await;
    assert!(points.len() >= 3, "{points:#?}");
    assert_eq!(before.power(&host.machine), [ForceOff], "killed at {points:#?}");
    let now = host.asked().await;
    assert!(drains(&points).contains(&(now.drains - asked.drains)), "killed at {points:#?}");
    assert_eq!(now.ends, 0, "killed at {points:#?}");
    assert_eq!(host.effects_since(&asked), ["service", "server"], "killed at {points:#?}");
    assert_eq!(host.drain().await.as_deref(), Some("drained"));
    assert_ne!(host.host_of_the_vm().await, host.name);

    // Its maintenance finds that drain, and ends the drain once.
    let asked = host.asked().await;
    let is_recorded = |it: &baremetald::Node| it.maintenance;
    let ask = async || host.send(Method::PUT, "/maintenance", Some(&json!({}))).await;
    let points = outlived(&host, is_recorded, ask, async || {}).await;
    let now = host.asked().await;
    assert!(drains(&points).contains(&(now.drains - asked.drains)), "killed at {points:#?}");
    assert_eq!((now.ends, host.drain().await.as_deref()), (0, Some("drained")), "{points:#?}");
    let is_recorded = |it: &baremetald::Node| !it.maintenance;
    let ask = async || host.send(Method::DELETE, "/maintenance", None).await;
    let done = async || {
        let is_gone = async || host.drain().await.is_none().then_some(());
        until("the end of the drain", is_gone).await;
    };
    let points = outlived(&host, is_recorded, ask, done).await;
    let now = host.asked().await;
    assert!(ends(&points).contains(&(now.ends - asked.ends)), "killed at {points:#?}");
    assert_eq!(host.effects_since(&asked), ["service"], "it accepts servers again: {points:#?}");

    // The node is undeployed, and drained once before.
    host.send(Method::PUT, power, Some(&on)).await;
    host.lab.until(host.node, "a machine that is on", |it| is_switched(it, "power on")).await;
    installed(&host.machine).await;
    host.is_where_the_vm_is().await;
    let (asked, before) = (host.asked().await, self::before(&host).await);
    let changed = |it: &baremetald::Node| {
        it.provision_updated_at != before.node.provision_updated_at
            || it.target_provision_state.is_some()
    };
    let deleted = Node::target("deleted");
    let ask = async || host.send(Method::PUT, "/states/provision", Some(&deleted)).await;
    let done = async || host.lab.ends(host.node, &before.node, "available").await;
    let points = outlived(&host, changed, ask, done).await;
    assert!(points.len() >= 10, "{points:#?}");
    let repeats = before.repeated_boots(&host.machine, 1, 0);
    let states = [vec!["active"], states_with_repeats(UNDEPLOYMENT, repeats)].concat();
    assert_eq!(before.states(&host.lab, host.node).await, states, "killed at {points:#?}");
    let changes = power_with_repeats(&[ForceOff, On, ForceOff], 1, repeats);
    assert_eq!(before.power(&host.machine), changes, "killed at {points:#?}");
    let now = host.asked().await;
    assert!(drains(&points).contains(&(now.drains - asked.drains)), "killed at {points:#?}");
    assert_eq!(now.ends, asked.ends, "killed at {points:#?}");
    assert_eq!(host.effects_since(&asked), ["service", "server"], "killed at {points:#?}");
    assert_eq!(host.drain().await.as_deref(), Some("drained"));
}

async fn before(host: &Host) -> StateBefore {
    StateBefore::of(&host.lab, host.node, &host.machine).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_is_taken_back_ends_its_drain_once() {
    let host = Host::start().await;
    // No other host takes servers, so the virtual machine stays and the drain does not end.
    host.clusters.disable_other_hosts(&host.name).await;
    let before = before(&host).await;
    let (off, on) = (json!({"target": "power off"}), json!({"target": "power on"}));
    host.send(Method::PUT, "/states/power", Some(&off)).await;
    let is_drained = async || host.drain().await.map(drop);
    until("its drain", is_drained).await;

    let asked = host.asked().await;
    let is_recorded = |it: &baremetald::Node| it.target_power_state.as_deref() != Some("power off");
    let ask = async || host.send(Method::PUT, "/states/power", Some(&on)).await;
    let done = async || {
        let is_gone = async || host.drain().await.is_none().then_some(());
        until("the end of the drain", is_gone).await;
    };
    let points = outlived(&host, is_recorded, ask, done).await;
    let now = host.asked().await;
    assert!(ends(&points).contains(&(now.ends - asked.ends)), "killed at {points:#?}");
    assert_eq!(now.drains, asked.drains, "killed at {points:#?}");
    assert_eq!(before.power(&host.machine), [], "killed at {points:#?}");
    assert_eq!(host.host_of_the_vm().await, host.name);
}
