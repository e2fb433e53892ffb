//! Conductors that are killed at calls of a cluster's later life: a repair, a new credential, the end of its lease and the undoing,
//! and the deletion of what Kubernetes created in the cloud.

use std::collections::BTreeSet;
use std::time::Duration;

use cluster_core::{GroupRole, undo_lease};
use jiff::Timestamp;
use lease::Terms;
use openstack_emulator::{Cloud, Kind, Stop};
use peers::kill_every;

use crate::crash::EVERY;
use crate::given::{ClusterFixture, PATIENCE};
use crate::lease::schedule;
use crate::life::workers;

/// A part of the life of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// The worker's server is deleted, and a new member replaces the worker.
    Repair,
    /// The server of the second of three control-plane members is deleted: etcd forgets that member, and a new member replaces it.
    RepairControlPlane,
    /// The cluster gets a new credential.
    Credential,
    /// The lease ends, and the servers are switched off.
    Off,
    /// The end is undone, and the servers are switched on.
    On,
    /// The cluster is deleted, with the load balancer of a Service and the volume of a claim.
    Delete,
}

impl Part {
    async fn ask(self, given: &ClusterFixture) {
        match self {
            Part::Repair => given.lose("-worker-").await,
            Part::RepairControlPlane => given.lose("-master-1").await,
            Part::Credential => given.ask(|cluster, _| cluster.credential += 1, workers()).await,
            Part::Off => given.lend("4s").await,
            Part::On => {
                let schedule = given.settings.lending.schedule.clone();
                let undone = |cluster| {
                    undo_lease(&cluster, "u", &schedule, Terms::default(), Timestamp::now())
                        .unwrap()
                };
                given.write(undone).await;
            }
            Part::Delete => {
                given.make_inside(given.id).await;
                given.delete().await;
            }
        }
    }

    async fn ends(self, given: &ClusterFixture) {
        match self {
            Part::Repair => {
                given
                    .until_groups(|group| {
                        group.role != workers() || group.machines == [1].into_iter().collect()
                    })
                    .await;
                given.until_complete_again().await;
            }
            Part::RepairControlPlane => {
                let others = [0, 2, 3].into_iter().collect();
                given
                    .until_groups(|group| {
                        group.role != GroupRole::Master || group.machines == others
                    })
                    .await;
                given.until_complete_again().await;
            }
            Part::Credential => {
                given.until_complete().await;
                given.until_once_again().await;
            }
            Part::Off => {
                given.until_rest(true).await;
                given.until_servers("SHUTOFF").await;
            }
            Part::On => {
                given.until_servers("ACTIVE").await;
                given.until_complete_again().await;
                given.until_rest(false).await;
            }
            Part::Delete => given.until_gone().await,
        }
    }
}

impl ClusterFixture {
    /// Deletes the server with this in its name.
    async fn lose(&self, name: &str) {
        let servers = self.of_kind(Kind::Server);
        let lost = servers.iter().find(|it| it.text("name").contains(name)).unwrap();
        self.delete_server(&lost.id).await;
    }

    /// Waits until the cluster is off or starting because of its lease, or no longer so.
    async fn until_rest(&self, wanted: bool) {
        let looking = async {
            while self.find().await.unwrap().rest.is_some() != wanted {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        if tokio::time::timeout(PATIENCE, looking).await.is_err() {
            panic!("it never rests or wakes: {:?}", self.find().await);
        }
    }
}

/// Kills a conductor at calls of each part, once per call, and asserts the state of the cluster after each part.
async fn life(masters: u32, stop: Stop, parts: &[(Part, usize)]) {
    let mut given = ClusterFixture::cluster_in_file(masters, 1).await;
    given.settings.look_every = Duration::from_millis(50);
    given.settings.lending.schedule = schedule("1h");
    let first = given.process();
    given.until_complete().await;
    first.kill().await;
    let mut counts = Vec::new();
    for (part, _) in parts.iter().copied() {
        let before: Vec<String> = given.of_kind(Kind::Server).into_iter().map(|it| it.id).collect();
        part.ask(&given).await;
        counts.push(at_calls(&given, part, stop).await.len());
        if part == Part::Delete {
            let last = given.process();
            part.ends(&given).await;
            last.kill().await;
            break;
        }
        let last = given.process();
        part.ends(&given).await;
        given.until_once_again().await;
        given.assert_once(masters as usize, 1);
        given.assert_ledger_agrees().await;
        last.kill().await;
        let after: Vec<String> = given.of_kind(Kind::Server).into_iter().map(|it| it.id).collect();
        let is_repair = [Part::Repair, Part::RepairControlPlane].contains(&part);
        assert_eq!(before != after, is_repair, "{part:?}");
    }
    let are_enough = counts
        .iter()
        .zip(parts)
        .all(|(count, (_, at_least))| *count >= at_least / kill_every(EVERY));
    assert!(are_enough, "{counts:?} of {parts:?}");
}

async fn at_calls(given: &ClusterFixture, part: Part, stop: Stop) -> BTreeSet<String> {
    let mut points = BTreeSet::new();
    given.cloud.set_trap_at(stop, kill_every(EVERY));
    loop {
        let process = given.process();
        let caught = tokio::select! {
            biased;
            call = given.cloud.wait_until(Cloud::caught) => Some(call),
            () = part.ends(given) => None,
        };
        process.kill().await;
        let Some(call) = caught else { break };
        // Objects that Kubernetes created are in the ledger only after an observation.
        if part != Part::Delete {
            given.assert_all_is_named().await;
        }
        assert!(points.insert(call), "it was caught before: {points:?}");
        given.cloud.open_trap();
    }
    given.cloud.remove_trap();
    points
}

/// The parts of a cluster's life, each with its least number of calls.
const LIFE: [(Part, usize); 5] =
    [(Part::Repair, 25), (Part::Credential, 15), (Part::Off, 3), (Part::On, 3), (Part::Delete, 20)];

#[tokio::test]
async fn killed_before_calls_of_a_clusters_later_life() {
    life(1, Stop::Before, &LIFE).await;
}

#[tokio::test]
async fn killed_after_calls_of_a_clusters_later_life() {
    life(1, Stop::After, &LIFE).await;
}

const CONTROL_PLANE: [(Part, usize); 1] = [(Part::RepairControlPlane, 40)];

#[tokio::test]
async fn killed_before_calls_of_a_control_plane_repair() {
    life(3, Stop::Before, &CONTROL_PLANE).await;
}

#[tokio::test]
async fn killed_after_calls_of_a_control_plane_repair() {
    life(3, Stop::After, &CONTROL_PLANE).await;
}
