//! Turns of clusters with a real store and without a cloud.
#![expect(clippy::unwrap_used, reason = "a failed precondition ends the test")]

use std::time::Duration;

use cluster_conductor::{AuthorityKind, Conductor, Settings};
use cluster_core::{
    Cluster, ClusterParameters, ClusterUuid, ConditionKind, ConditionStatus, DesiredState, Ident,
    LedgerEntry, LedgerState, LedgerUuid, RepairLimits, RequestedCluster,
};
use cluster_store::{ClusterChange, Scope, Store};
use jiff::{SignedDuration, Timestamp};
use newtype_uuid::GenericUuid;
use sealing::SealingKeys;
use tokio_util::sync::CancellationToken;

fn now() -> Timestamp {
    Timestamp::from_second(1_700_000_000).unwrap()
}

fn keys() -> SealingKeys {
    SealingKeys::parse(&SealingKeys::generate().unwrap()).unwrap()
}

const REPAIR: RepairLimits = RepairLimits {
    not_ready_for: SignedDuration::from_secs(300),
    workers_at_once: 1,
    become_node_within: SignedDuration::from_secs(900),
    ..RepairLimits::DEFAULT
};

fn conductor(store: &Store, keys: SealingKeys) -> Conductor {
    let look_every = Duration::from_millis(20);
    let settings = Settings {
        hostname: "h".to_owned(),
        instance: "i".to_owned(),
        workers: 2,
        look_every,
        machines: Default::default(),
        vms: cluster_conductor::VmSettings::default(),
        repair: REPAIR,
        lending: Default::default(),
        backups: None,
        metrics: Default::default(),
        tracer: Default::default(),
        clock: now,
    };
    Conductor::new(settings, store.clone(), keys, None)
}

/// Makes a store with a cluster of one member.
async fn with_cluster() -> (Store, Cluster) {
    let store = Store::open("sqlite::memory:").await.unwrap();
    let blueprint = ClusterParameters::new("fcos".to_owned());
    let RequestedCluster { template, cluster, groups } =
        RequestedCluster::new(blueprint, 1, 0, now());
    store.insert_template(&template).await.unwrap();
    store.insert_cluster(&cluster, &groups, &[], None).await.unwrap();
    (store, cluster)
}

async fn find(store: &Store, id: ClusterUuid) -> Option<Cluster> {
    let ident = Ident::Id(id.into_untyped_uuid());
    store.find_clusters(&ident, &Scope::All).await.unwrap().pop()
}

/// Calls `look` until it finds something.
async fn wait_for<T>(mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let looking = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), looking).await.expect("it never came")
}

#[tokio::test]
async fn a_cluster_without_a_cloud_says_so() {
    let (store, cluster) = with_cluster().await;
    let stop = CancellationToken::new();
    let working = tokio::spawn(conductor(&store, keys()).run(stop.clone()));
    let conditions = wait_for(async || {
        let found = find(&store, cluster.id).await.unwrap().conditions;
        (!found.is_empty()).then_some(found)
    })
    .await;
    assert_eq!(conditions.len(), ConditionKind::ALL.len());
    for condition in &conditions {
        assert_eq!(
            (condition.status, condition.reason.as_str()),
            (ConditionStatus::False, "NoCloud")
        );
        assert!(!condition.is_final && !condition.next_action.is_empty());
    }
    stop.cancel();
    working.await.unwrap().unwrap();
    assert_eq!(store.list_services().await.unwrap()[0].hostname, "h");
}

#[tokio::test]
async fn a_cluster_is_deleted_once_its_ledger_is_empty() {
    let (store, cluster) = with_cluster().await;
    let line = LedgerEntry {
        id: LedgerUuid::new_v4(),
        of: cluster.id.into(),
        kind: "network".to_owned(),
        name: "c-network".to_owned(),
        cloud_id: None,
        state: LedgerState::Intended,
        created_at: now(),
        updated_at: None,
    };
    store.save_ledger(std::slice::from_ref(&line)).await.unwrap();
    let going = Cluster { desire: DesiredState::Gone, ..cluster.clone() };
    store.change_cluster(&ClusterChange::of(going)).await.unwrap();

    let conductor = conductor(&store, keys());
    let stop = CancellationToken::new();
    let working = tokio::spawn(conductor.clone().run(stop.clone()));
    // The cluster is observed and stays, because the cloud may still have one of its objects.
    let looked = wait_for(async || {
        find(&store, cluster.id).await.filter(|cluster| !cluster.conditions.is_empty())
    })
    .await;
    assert_eq!(looked.desire, DesiredState::Gone);
    store.remove_ledger_entry(line.id).await.unwrap();
    conductor.wake(cluster.id);
    wait_for(async || find(&store, cluster.id).await.is_none().then_some(())).await;
    stop.cancel();
    working.await.unwrap().unwrap();
}

#[tokio::test]
async fn an_authority_is_made_once_and_survives_a_restart() {
    let (store, cluster) = with_cluster().await;
    let file = SealingKeys::generate().unwrap();
    let kind = AuthorityKind::Kubernetes;
    let first = conductor(&store, SealingKeys::parse(&file).unwrap());
    let pem = first.authority_of(&cluster, kind).await.unwrap();
    let second = conductor(&store, SealingKeys::parse(&file).unwrap());
    assert_eq!(second.authority_of(&cluster, kind).await.unwrap(), pem);
    // A conductor with other keys cannot open the authority, and must not replace it silently.
    let stranger = conductor(&store, keys());
    let refused = stranger.authority_of(&cluster, kind).await.unwrap_err();
    assert!(!format!("{refused:?}").contains("PRIVATE"));
    assert_eq!(second.authority_of(&cluster, kind).await.unwrap(), pem);
}
