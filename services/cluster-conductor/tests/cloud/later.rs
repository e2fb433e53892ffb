//! Conductors that are killed at every call of a cluster's later life: a repair, a new credential, the end of its lease and the undoing,
//! and the deletion of what Kubernetes created in the cloud.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cluster_core::undo_lease;
use jiff::Timestamp;
use lease::Terms;
use openstack::block_storage::volumes::{self, NewVolume, Source};
use openstack::load_balancer::load_balancers::{self, NewLoadBalancer};
use openstack_emulator::{Cloud, Kind, Stop};

use crate::given::{Given, PATIENCE, session};
use crate::lease::ladder;
use crate::life::workers;

/// A part of the life of a cluster with one control-plane member and one worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// The worker's server is deleted, and a new member replaces the worker.
    Repair,
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
    const ALL: [Part; 5] = [Part::Repair, Part::Credential, Part::Off, Part::On, Part::Delete];

    async fn ask(self, given: &Given) {
        match self {
            Part::Repair => {
                let servers = given.of_kind(Kind::Server);
                let worker =
                    servers.iter().find(|it| it.text("name").contains("-worker-")).unwrap();
                given.delete_server(&worker.id).await;
            }
            Part::Credential => given.ask(|cluster, _| cluster.credential += 1, workers()).await,
            Part::Off => given.lend("4s").await,
            Part::On => {
                let ladder = given.settings.lending.ladder.clone();
                let undone = |cluster| {
                    undo_lease(&cluster, "u", &ladder, Terms::default(), Timestamp::now()).unwrap()
                };
                given.write(undone).await;
            }
            Part::Delete => {
                given.make_inside().await;
                given.delete().await;
            }
        }
    }

    /// Waits until the part ends.
    async fn ends(self, given: &Given) {
        match self {
            Part::Repair => {
                given
                    .until_groups(|group| {
                        group.role != workers() || group.machines == [1].into_iter().collect()
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

impl Given {
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

    /// Creates a load balancer and a volume as Kubernetes would.
    async fn make_inside(&self) {
        let session = session(&self.cloud);
        let subnet = self.of_kind(Kind::Subnet).swap_remove(0).id;
        let balancer = NewLoadBalancer {
            name: format!("kube_service_{}_default_web", self.id),
            vip_subnet_id: Some(subnet),
            ..NewLoadBalancer::default()
        };
        load_balancers::create(&session, &balancer).await.unwrap();
        let cluster = ("cinder.csi.openstack.org/cluster".to_owned(), self.id.to_string());
        let volume = NewVolume {
            name: "pvc-1".to_owned(),
            size: 1,
            kind: None,
            availability_zone: None,
            source: Source::Empty,
            metadata: BTreeMap::from([cluster]),
        };
        volumes::create(&session, &volume).await.unwrap();
        let is_done = |cloud: &Cloud| {
            let all = cloud.objects(Kind::LoadBalancer);
            all.iter().all(|it| it.text("provisioning_status") == "ACTIVE").then_some(())
        };
        self.cloud.wait_until(is_done).await;
    }
}

/// Kills a conductor at each call of each part, once per call, and asserts the state of the cluster after each part.
async fn life(stop: Stop, at_least: [usize; 5]) {
    let mut given = Given::cluster_in_file(1, 1).await;
    given.settings.look_every = Duration::from_millis(50);
    given.settings.lending.ladder = ladder("1h");
    let first = given.process();
    given.until_complete().await;
    first.kill().await;
    let mut counts = Vec::new();
    for part in Part::ALL {
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
        given.assert_once(1, 1);
        given.assert_ledger_agrees().await;
        last.kill().await;
        let after: Vec<String> = given.of_kind(Kind::Server).into_iter().map(|it| it.id).collect();
        assert_eq!(before == after, part != Part::Repair, "{part:?}");
    }
    let are_enough = counts.iter().zip(at_least).all(|(count, at_least)| *count >= at_least);
    assert!(are_enough, "{counts:?} of {at_least:?}");
}

async fn at_calls(given: &Given, part: Part, stop: Stop) -> BTreeSet<String> {
    let mut points = BTreeSet::new();
    given.cloud.set_trap(stop);
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

/// The least number of calls of each part.
const CALLS: [usize; 5] = [25, 15, 3, 3, 20];

#[tokio::test]
async fn killed_before_each_call_of_a_clusters_later_life() {
    life(Stop::Before, CALLS).await;
}

#[tokio::test]
async fn killed_after_each_call_of_a_clusters_later_life() {
    life(Stop::After, CALLS).await;
}
