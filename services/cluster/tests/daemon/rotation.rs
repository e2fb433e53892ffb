//! CA rotation of a cluster in use: members ask over real TLS, and clusterd is killed at each step.
#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]

use std::collections::BTreeSet;

use cluster_core::{
    CaRevision, Cluster, ConditionStatus, NodeGroup, RotationStep, Status,
    members_without_revision, start_rotation, status,
};
use cluster_core::{ClusterObservation, ClusterSpec};
use cluster_store::{ClusterChange, StoreError};
use jiff::Timestamp;
use kubernetes::{Access, Client, nodes};
use openstack_emulator::{Cloud, Kind, Stop};
use peers::kill_every;

use crate::fixture::{self, ClusterFixture};

/// clusterd is killed at every `EVERY`-th call that was not made before, and with `BEDPLATE_SOAK` at each.
const EVERY: usize = 3;

/// The number of Kubernetes nodes that this kubeconfig lists, or the error.
pub(crate) async fn nodes_of(kubeconfig: &str) -> Result<usize, String> {
    let access = Access::from_kubeconfig(kubeconfig, None).map_err(|error| error.to_string())?;
    let client = Client::new(&access).map_err(|error| error.to_string())?;
    nodes::list(&client).await.map(|all| all.len()).map_err(|error| error.to_string())
}

impl ClusterFixture {
    /// The kubeconfig that a user gets now.
    pub(crate) async fn kubeconfig(&self) -> String {
        let cluster = self.find().await;
        self.idle_conductor().kubeconfig(&cluster, "alice").await.unwrap().unwrap()
    }

    /// Requests a CA rotation as soon as one is permitted, as the API does.
    async fn ask_for_rotation(&self) {
        loop {
            let (cluster, groups) = (self.find().await, self.groups().await);
            let machines = self.store.machines_of(self.id).await.unwrap();
            let held = machines.into_iter().filter_map(|it| Some((it.machine, it.authorities?)));
            if let Ok(authorities) =
                start_rotation(&cluster, &groups, &held.collect(), &BTreeSet::new(), true)
            {
                let asked = Cluster { authorities, asked_at: Timestamp::now(), ..cluster };
                match self.store.change_cluster(&ClusterChange::of(asked)).await {
                    Ok(_) => return,
                    Err(StoreError::Stale) => continue,
                    Err(error) => panic!("{error}"),
                }
            }
            fixture::pause().await;
        }
    }

    pub(crate) async fn until(&self, what: &str, is: impl Fn(&Cluster) -> bool) -> Cluster {
        let looking = async {
            loop {
                let cluster = self.find().await;
                if is(&cluster) {
                    return cluster;
                }
                fixture::pause().await;
            }
        };
        match tokio::time::timeout(fixture::PATIENCE, looking).await {
            Ok(found) => found,
            Err(_) => panic!("never {what}: {:?}", self.find().await),
        }
    }

    pub(crate) async fn until_complete(&self) -> Cluster {
        let is_complete = |it: &Cluster| {
            it.completed_at.is_some_and(|done| done >= it.asked_at)
                && it.conditions.iter().all(|it| it.status == ConditionStatus::True)
        };
        self.until("complete", is_complete).await
    }
}

#[tokio::test]
async fn a_ca_rotation_completes_although_clusterd_is_killed_at_each_step() {
    let given = ClusterFixture::cluster(3, 1).await;
    let mut working = given.clusterd().await;
    given.until_complete().await;
    let old = given.kubeconfig().await;
    assert_eq!(nodes_of(&old).await, Ok(4));

    given.ask_for_rotation().await;
    let mut steps = Vec::new();
    let mut now = CaRevision::default();
    while now != CaRevision::default().replaced() {
        let cluster = given.until("further", |it| it.authorities != now).await;
        now = cluster.authorities;
        if now.is_settled() {
            break;
        }
        assert_eq!(status(&cluster, Timestamp::now()), Status::UpdateInProgress);
        steps.push(now.step());
        // The successor continues the rotation wherever it was interrupted.
        drop(working);
        working = given.clusterd().await;
    }
    use RotationStep::{KubeletsAsk, NewSigns, TrustBoth, TrustNew};
    assert_eq!(steps, [TrustBoth, NewSigns, KubeletsAsk, TrustNew]);
    let cluster = given.until_complete().await;
    assert_eq!(status(&cluster, Timestamp::now()), Status::UpdateComplete);
    assert_eq!(nodes_of(&given.kubeconfig().await).await, Ok(4));
    let refused = nodes_of(&old).await.unwrap_err();
    assert!(refused.contains("certificate"), "{refused}");

    // A member that is created later starts with the new certificate authorities.
    let mut group = given.groups().await.pop().unwrap();
    group.add_machine();
    given.change(vec![group]).await;
    given.until_complete().await;
    assert_eq!(nodes_of(&given.kubeconfig().await).await, Ok(5));
    drop(working);
}

/// Kills clusterd at calls, once each, until the record of the cluster is as `is_over` says. Returns the calls.
pub(crate) async fn kill_at_calls(
    given: &ClusterFixture,
    stop: Stop,
    is_over: impl Fn(&Cluster) -> bool,
) -> BTreeSet<String> {
    let mut points = BTreeSet::new();
    given.cloud.set_trap_at(stop, kill_every(EVERY));
    loop {
        let working = given.clusterd().await;
        let caught = tokio::select! {
            biased;
            call = given.cloud.wait_until(Cloud::caught) => Some(call),
            _ = given.until("further", &is_over) => None,
        };
        working.kill().await;
        let Some(call) = caught else { break };
        assert!(points.insert(call), "caught before: {points:?}");
        given.cloud.open_trap();
    }
    given.cloud.remove_trap();
    points
}

/// The objects of the cluster's project in the cloud: kinds, names and ids.
pub(crate) fn cloud_objects(given: &ClusterFixture) -> BTreeSet<String> {
    let projects = given.cloud.objects(Kind::Project);
    let own = projects.iter().find(|it| it.text("name") == "tenant-a").unwrap();
    let all = given.cloud.objects_of(&own.id);
    all.into_iter().map(|(kind, name, id)| format!("{kind:?} {name} {id}")).collect()
}

/// Kills clusterd at calls of a rotation, with the least number of calls of each step.
async fn killed(stop: Stop, at_least: [usize; 4]) {
    let given = ClusterFixture::cluster(3, 1).await;
    let first = given.clusterd().await;
    given.until_complete().await;
    let (old, before) = (given.kubeconfig().await, cloud_objects(&given));
    first.kill().await;
    given.ask_for_rotation().await;
    let (mut steps, mut counts) = (Vec::new(), Vec::new());
    loop {
        let now = given.find().await.authorities;
        if now.is_settled() {
            break;
        }
        let points = kill_at_calls(&given, stop, |it| it.authorities != now).await;
        steps.push(now.step());
        counts.push(points.len());
    }
    use RotationStep::{KubeletsAsk, NewSigns, TrustBoth, TrustNew};
    assert_eq!(steps, [TrustBoth, NewSigns, KubeletsAsk, TrustNew]);
    assert_eq!(given.find().await.authorities, CaRevision::default().replaced());
    let are_enough =
        counts.iter().zip(at_least).all(|(count, at_least)| *count >= at_least / kill_every(EVERY));
    assert!(are_enough, "{counts:?} of {at_least:?}");

    let last = given.clusterd().await;
    given.until_complete().await;
    last.kill().await;
    assert_eq!(cloud_objects(&given), before, "nothing is made, lost or doubled");
    assert_eq!(nodes_of(&given.kubeconfig().await).await, Ok(4));
    let refused = nodes_of(&old).await.unwrap_err();
    assert!(refused.contains("certificate"), "{refused}");
}

/// The least number of calls of each step. The first and the last step restart what runs in the cluster.
const CALLS: [usize; 4] = [24, 20, 20, 24];

#[tokio::test]
async fn killed_before_calls_of_a_rotation() {
    killed(Stop::Before, CALLS).await;
}

#[tokio::test]
async fn killed_after_calls_of_a_rotation() {
    killed(Stop::After, CALLS).await;
}

#[tokio::test]
async fn a_ca_rotation_creates_no_member_and_does_not_wait_for_a_lost_one() {
    let given = ClusterFixture::cluster(1, 2).await;
    let working = given.clusterd().await;
    given.until_complete().await;
    given.ask_for_rotation().await;
    let lost = given.lose("default-worker-0").await;
    let done = given.until("settled", |it| it.authorities == CaRevision::default().replaced());
    let cluster = done.await;
    let groups = given.groups().await;
    let spec = ClusterSpec { cluster: &cluster, groups: &groups };
    let machines = given.store.machines_of(given.id).await.unwrap();
    let mut seen = ClusterObservation::default();
    let held = machines.into_iter().filter_map(|it| Some((it.machine, it.authorities?)));
    seen.authorities.held = held.collect();
    assert_eq!(members_without_revision(&spec, &seen), [], "all that stay hold the last revision");
    assert!(!groups.iter().flat_map(NodeGroup::refs).any(|machine| machine == lost));
    given.until("whole again", |it| it.nodes.len() == 3).await;
    given.until_complete().await;
    assert_eq!(nodes_of(&given.kubeconfig().await).await, Ok(3));
    drop(working);
}
