//! Clusters whose leases end: warning, switch-off, undoing, deletion; and conductors that are killed in between.

use std::time::Duration;

use cluster_core::{Cluster, ClusterLease, ConditionKind, undo_lease};
use cluster_store::ClusterChange;
use jiff::Timestamp;
use lease::{Lease, LeaseSchedule, Terms};
use openstack_emulator::Kind;

use crate::given::{ClusterFixture, PATIENCE};

/// Stages that follow each other within seconds.
pub(crate) fn schedule(undo_window: &str) -> LeaseSchedule {
    let raw = format!(
        r#"{{"warn_before": ["3s", "1s"], "notice": "1s", "undo_window": "{undo_window}"}}"#
    );
    serde_json::from_str::<LeaseSchedule>(&raw).unwrap().without_snapshot()
}

/// The reasons of the stages' events, in their order.
const RUNGS: [&str; 4] = ["LeaseEnds", "LeaseEnded", "DeletionNear", "LeaseDeleted"];

impl ClusterFixture {
    /// Changes the cluster's record, as the API does.
    pub(crate) async fn write(&self, change: impl Fn(Cluster) -> Cluster) {
        loop {
            let changed = change(self.find().await.unwrap());
            match self.store.change_cluster(&ClusterChange::of(changed)).await {
                Ok(_) => return,
                Err(cluster_store::StoreError::Stale) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    pub(crate) async fn lend(&self, length: &str) {
        let length = length.parse().unwrap();
        self.write(|cluster| {
            let lending =
                ClusterLease { lease: Lease::new(Timestamp::now(), length), notify: None };
            Cluster { lending: Some(lending), ..cluster }
        })
        .await;
    }

    /// Returns the reasons of the events about the lease so far.
    async fn reported(&self) -> Vec<String> {
        let page = self.store.events_of(self.id, 1000, None).await.unwrap();
        let mut said: Vec<String> = page.into_iter().map(|event| event.reason).collect();
        // Events about conditions mention the end of the lease, too.
        said.retain(|reason| RUNGS.contains(&reason.as_str()));
        said
    }

    pub(crate) async fn until_servers(&self, status: &str) {
        let all_are = || self.of_kind(Kind::Server).iter().all(|it| it.text("status") == status);
        let looking = async {
            while !all_are() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        if tokio::time::timeout(PATIENCE, looking).await.is_err() {
            panic!("they never are {status}: {:?}", self.find().await);
        }
    }

    fn server_ids(&self) -> Vec<String> {
        let mut ids: Vec<String> = self.of_kind(Kind::Server).into_iter().map(|it| it.id).collect();
        ids.sort();
        ids
    }
}

#[tokio::test]
async fn a_cluster_is_switched_off_at_the_end_of_its_lease_and_on_when_that_is_undone() {
    let mut given = ClusterFixture::cluster(1, 1).await;
    given.settings.lending.schedule = schedule("1h");
    let _working = given.conductor();
    given.until_complete().await;
    let servers = given.server_ids();
    given.lend("4s").await;
    let off = |it: &cluster_core::Condition| it.message.contains("the members are switched off");
    let reported = given.until(ConditionKind::NodesHealthy, off).await;
    assert_eq!(reported.reason, "LeaseEnded");
    given.until_servers("SHUTOFF").await;
    assert_eq!(given.server_ids(), servers, "nothing is replaced");

    let schedule = given.settings.lending.schedule.clone();
    given
        .write(|cluster| {
            undo_lease(&cluster, "u", &schedule, Terms::default(), Timestamp::now()).unwrap()
        })
        .await;
    given.until_servers("ACTIVE").await;
    given.until_complete_again().await;
    assert_eq!(given.server_ids(), servers, "nothing is replaced");
    let awake = async {
        while given.find().await.unwrap().rest.is_some() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, awake).await.unwrap();
    given.deleted().await;
}

#[tokio::test]
async fn every_lease_stage_is_taken_in_order_whenever_conductors_are_killed() {
    let mut given = ClusterFixture::cluster_in_file(1, 1).await;
    given.settings.lending.schedule = schedule("3s");
    let first = given.process();
    given.until_complete().await;
    first.kill().await;
    given.lend("5s").await;
    let servers = given.server_ids();
    let mut rungs = Vec::new();
    let climbing = async {
        while given.find().await.is_some() {
            // Each conductor lives until it has written something, and is killed while it acts on that.
            let process = given.process();
            let before = given.find().await.map(|it| it.version);
            while given.find().await.map(|it| it.version) == before {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            process.kill().await;
            if let Some(cluster) = given.find().await {
                rungs = given.reported().await;
                if cluster.desire == cluster_core::DesiredState::Gone {
                    break;
                }
                assert_eq!(given.server_ids(), servers, "nothing is deleted before its time");
            }
        }
    };
    tokio::time::timeout(PATIENCE, climbing).await.unwrap();
    let last = given.process();
    given.until_gone().await;
    last.kill().await;
    rungs.dedup();
    assert_eq!(rungs, RUNGS);
}
