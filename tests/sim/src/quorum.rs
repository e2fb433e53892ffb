//! The quorum of a cluster's etcd, and the servers of machines that are switched off: as the cloud, the members and the machines show them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use openstack_emulator::kubernetes::Nodes;
use openstack_emulator::{Cloud, Kind, Object};
use serde_json::json;

use crate::chance::one_of;
use crate::trace::Trace;

/// The statuses of servers whose guests run.
const RUNNING: [&str; 4] = ["ACTIVE", "MIGRATING", "REBOOT", "HARD_REBOOT"];

/// Watches the servers of the cloud.
pub(crate) struct Watch {
    cloud: Cloud,
    nodes: Arc<Nodes>,
    trace: Trace,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The number of members of the complete cluster. There is at most one.
    members: Option<usize>,
    /// All members have run since, on hosts that took servers at first.
    is_whole: bool,
    /// The cluster was whole once.
    was_whole: bool,
    /// The cloud has lost a member, which is not replaced yet.
    is_broken: bool,
    /// The host of each server that ran on a running machine at the last look.
    running: BTreeMap<String, String>,
}

/// The etcd of the cluster at one look.
struct Etcd<'s> {
    /// Each member, and whether it runs.
    members: BTreeMap<String, bool>,
    servers: &'s [Object],
    /// The hosts that do not run.
    off: &'s BTreeSet<String>,
}

impl Watch {
    pub(crate) fn new(cloud: &Cloud, nodes: Arc<Nodes>, trace: &Trace) -> Watch {
        let (cloud, trace) = (cloud.clone(), trace.clone());
        Watch { cloud, nodes, trace, state: Mutex::default() }
    }

    /// Watches a cluster that is complete, with so many members of etcd.
    pub(crate) fn begin(&self, members: usize) {
        self.state().members = Some(members);
    }

    /// The cluster is deleted, or its control plane is replaced by a backup: it has no quorum to lose.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        let running = std::mem::take(&mut state.running);
        *state = State { running, ..State::default() };
    }

    /// Whether a member is to be replaced.
    pub(crate) fn is_broken(&self) -> bool {
        self.state().is_broken
    }

    /// Looks at all servers. `off` are the hosts whose machines do not run their system.
    pub(crate) fn look(&self, off: &BTreeSet<String>) {
        let servers = self.cloud.objects(Kind::Server);
        let mut state = self.state();
        self.look_at_hosts(&mut state, &servers, off);
        if let Some(etcd) = self.etcd(&state, &servers, off) {
            self.look_at_members(&mut state, &etcd);
        }
    }

    /// Checks that no server ran on a machine that was switched off. A server that somebody starts there later is no fault of the services.
    fn look_at_hosts(&self, state: &mut State, servers: &[Object], off: &BTreeSet<String>) {
        let runs =
            |it: &&Object| RUNNING.contains(&it.text("status")) && it.note("task") != "deleting";
        let here = |it: &Object| (it.id.clone(), it.note("host").to_owned());
        let mut running: BTreeMap<_, _> = servers.iter().filter(runs).map(here).collect();
        for (server, host) in &running {
            if off.contains(host) && state.running.get(server) == Some(host) {
                self.trace.violation(format!("{host} was switched off with server {server} on it"));
            }
        }
        running.retain(|_, host| !off.contains(host));
        state.running = running;
    }

    /// Checks that the members that run are a majority, and that some do not move while others do. A member that moves runs. Each host with a
    /// member is drained only while the others are a quorum, so a single member never moves.
    fn look_at_members(&self, state: &mut State, etcd: &Etcd<'_>) {
        let (running, still) = (etcd.count(&RUNNING), etcd.count(&["ACTIVE"]));
        let (members, off) = (&etcd.members, etcd.off);
        if state.was_whole && running <= members.len() / 2 {
            self.trace.violation(format!("etcd lost its quorum: {members:?}; hosts off: {off:?}"));
        } else if state.is_whole && still == 0 {
            self.trace.violation(format!("all members of etcd move at once: {members:?}"));
        }
        if Some(members.len()) == state.members && still == members.len() {
            state.is_broken = false;
            if !state.is_whole && self.take_servers(&etcd.hosts()) {
                (state.is_whole, state.was_whole) = (true, true);
            }
        }
    }

    /// Whether the scheduler uses all these hosts.
    fn take_servers(&self, hosts: &BTreeSet<&str>) -> bool {
        let all = self.cloud.objects(Kind::ComputeHost);
        let mut own = all.iter().filter(|it| hosts.contains(it.text("name")));
        own.all(|it| it.hidden.get("disabled") != Some(&json!(true)))
    }

    /// The cloud loses a member of a cluster that has others.
    pub(crate) fn break_a_member(&self) {
        let servers = self.cloud.objects(Kind::Server);
        let mut state = self.state();
        let none = BTreeSet::new();
        let Some(etcd) = self.etcd(&state, &servers, &none) else { return };
        if !state.is_whole || etcd.members.len() < 3 || etcd.count(&["ACTIVE"]) < 3 {
            return;
        }
        let names: Vec<&String> = etcd.members.keys().collect();
        let name = *one_of(&names);
        self.trace.note(format!("the cloud loses server {name}"));
        (state.is_whole, state.is_broken) = (false, true);
        for server in servers.iter().filter(|it| it.text("name") == name) {
            self.cloud.break_server(&server.id);
        }
    }

    /// The etcd of the cluster, if a complete one has servers.
    fn etcd<'s>(
        &self,
        state: &State,
        servers: &'s [Object],
        off: &'s BTreeSet<String>,
    ) -> Option<Etcd<'s>> {
        state.members?;
        let exists = |name: &String| servers.iter().any(|it| it.text("name") == name);
        let members = self.nodes.etcds().into_iter().find(|etcd| etcd.keys().any(exists))?;
        Some(Etcd { members, servers, off })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Etcd<'_> {
    /// How many members run on servers with one of these statuses, whose hosts run.
    fn count(&self, statuses: &[&str]) -> usize {
        let is_there = |name: &String| {
            self.servers.iter().any(|it| {
                it.text("name") == name
                    && statuses.contains(&it.text("status"))
                    && !self.off.contains(it.note("host"))
            })
        };
        self.members.iter().filter(|(name, runs)| **runs && is_there(name)).count()
    }

    /// The hosts of the members.
    fn hosts(&self) -> BTreeSet<&str> {
        let own = self.servers.iter().filter(|it| self.members.contains_key(it.text("name")));
        own.map(|it| it.note("host")).collect()
    }
}
