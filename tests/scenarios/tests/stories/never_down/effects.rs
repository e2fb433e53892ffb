//! Compares what the emulators have seen with what was asked for: nothing is lost, doubled or orphaned.

use std::collections::BTreeSet;

use api_client::baremetald::{History, Node};
use bmc_emulator::PowerRequest::On;
use lab::{Lab, RackedMachine};
use openstack_emulator::{Cloud, Kind};
use reqwest::Method;

use super::client::send;
use crate::kill_points::{ERASES, StateBefore, WRITES};

/// Asserts that each machine was brought up once: each boot was requested once, and the agent got each command once.
pub(super) async fn each_machine_came_up_once(lab: &Lab, machines: &[RackedMachine]) {
    for machine in machines {
        let path = format!("/v1/nodes/{}", machine.name());
        let (answer, _) = send(lab.api(), Method::GET, &path, None).await;
        let shown: Node = answer.read("a node");
        assert_eq!((shown.state(), shown.last_error.as_deref()), ("active", None), "{shown:?}");
        let begin = StateBefore::default();
        assert_eq!(begin.steps(machine), [ERASES, WRITES].concat(), "{}", machine.name());
        // Each boot of the ramdisk ends in a state that waits for the agent; the last boot is that of the disk.
        let path = format!("{path}/history?detail=true&limit=1000");
        let (answer, _) = send(lab.api(), Method::GET, &path, None).await;
        let History { history } = answer.read("the history");
        let mut states: Vec<&str> =
            history.iter().filter_map(|it| it.event_type.as_deref()).collect();
        // A step of the agent has an entry in the state in which it began.
        states.dedup();
        let waits = |state: &&&str| state.contains(" wait") || state.starts_with("wait ");
        let boots = states.iter().filter(waits).count() + 1;
        let power = begin.requested_power(machine);
        let switched_on = power.iter().filter(|it| **it == On).count();
        assert_eq!(switched_on, boots, "{}: {power:?} {states:?}", machine.name());
    }
}

/// Asserts that each machine is one compute host of the cloud, and in each of its aggregates once.
pub(super) fn each_machine_is_one_host(cloud: &Cloud, machines: &[RackedMachine]) {
    let hosts = cloud.objects(Kind::ComputeHost);
    for machine in machines {
        let own = hosts.iter().filter(|host| host.text("name") == machine.name()).count();
        assert_eq!(own, 1, "{}", machine.name());
    }
    for aggregate in cloud.objects(Kind::Aggregate) {
        let name = aggregate.text("name").to_owned();
        let members: Vec<&str> =
            aggregate.list("hosts").iter().filter_map(|it| it.as_str()).collect();
        let different: BTreeSet<&str> = members.iter().copied().collect();
        assert_eq!(members.len(), different.len(), "{name}: {members:?}");
        let own = machines.iter().filter(|machine| different.contains(machine.name())).count();
        assert!(own == machines.len() || own == 0, "{name}: {members:?}");
    }
}

/// Asserts that the cloud has so many servers, each with a name of its own, and that none was ever deleted.
pub(super) fn each_server_was_made_once(cloud: &Cloud, number: usize) {
    let servers = cloud.objects(Kind::Server);
    let names: BTreeSet<&str> = servers.iter().map(|server| server.text("name")).collect();
    assert_eq!((servers.len(), names.len()), (number, number), "{names:?}");
    let deleted = cloud.count(|call| call.method == "DELETE" && call.path.contains("/servers/"));
    assert_eq!(deleted, 0, "a server was made twice, and deleted");
}

/// The objects that clusters and VMs have in a cloud.
const KINDS: [Kind; 17] = [
    Kind::ApplicationCredential,
    Kind::Trust,
    Kind::Server,
    Kind::ServerGroup,
    Kind::Network,
    Kind::Subnet,
    Kind::Router,
    Kind::Port,
    Kind::FloatingIp,
    Kind::LoadBalancer,
    Kind::Listener,
    Kind::Pool,
    Kind::Member,
    Kind::HealthMonitor,
    Kind::Recordset,
    Kind::Volume,
    Kind::SecurityGroup,
];

/// The objects of a cloud, without those that a cloud makes for a project by itself.
pub(super) fn objects(cloud: &Cloud) -> BTreeSet<(Kind, String, String)> {
    let all = KINDS
        .into_iter()
        .flat_map(|kind| cloud.objects(kind).into_iter().map(move |object| (kind, object)));
    let is_own = |kind: Kind, name: &str| !(kind == Kind::SecurityGroup && name == "default");
    let named = all.filter(|(kind, object)| is_own(*kind, object.text("name")));
    named.map(|(kind, object)| (kind, object.text("name").to_owned(), object.id)).collect()
}

/// Asserts that the cloud has nothing more than before.
pub(super) fn nothing_is_orphaned(cloud: &Cloud, before: &BTreeSet<(Kind, String, String)>) {
    let orphans: Vec<_> = objects(cloud).difference(before).cloned().collect();
    assert!(orphans.is_empty(), "{orphans:?}");
}
