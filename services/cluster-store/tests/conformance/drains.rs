//! Drains of hosts, and the etcd quorum of the clusters on them.

use std::collections::BTreeSet;

use cluster_core::{
    Cluster, ClusterUuid, Drain, DrainPhase, DrainUuid, GroupRole, HostName, LedgerEntry,
    LedgerState, LedgerUuid, Member, NodeGroup, NodeGroupUuid, OwnServer,
};
use cluster_store::{ClusterChange, DrainGrantError, Store, StoreError};
use database::scratch::Scratch;

use crate::races::so_many;
use crate::samples::{at, cluster, find, on_both, template};

on_both! { Store:
    a_drain_is_granted_noted_and_forgotten
    a_drain_that_breaks_a_quorum_is_refused_and_changes_nothing
    a_member_that_comes_to_a_drained_host_makes_the_drain_stuck
    a_change_decided_before_a_drain_is_stale
    servers_are_known_by_their_ids_in_the_cloud
}

fn host(number: usize) -> HostName {
    format!("host-{number}").parse().unwrap()
}

fn master(number: usize) -> cluster_core::MemberName {
    format!("default-master-{number}").parse().unwrap()
}

/// Stores a cluster of three control-plane members that are all ready nodes.
async fn of_three(store: &Store, name: &str) -> Cluster {
    let template = template(name, name);
    store.insert_template(&template).await.unwrap();
    let new = cluster(&template, name);
    let named = ("default-master".parse().unwrap(), GroupRole::Master);
    let masters = NodeGroup::new(NodeGroupUuid::new_v4(), &new, named, 3, at(0));
    let new = Cluster { nodes: masters.refs().collect(), ..new };
    store.insert_cluster(&new, &[masters], &[], None).await.unwrap();
    new
}

fn drain(number: usize, of: &Cluster) -> Drain {
    let takes = BTreeSet::from([Member { cluster: of.id, machine: master(number) }]);
    Drain::new(
        (DrainUuid::new_v4(), host(number)),
        ("ann".to_owned(), None),
        BTreeSet::new(),
        takes,
        at(1),
    )
}

async fn a_drain_is_granted_noted_and_forgotten(store: Store) {
    let blue = of_three(&store, "blue").await;
    let granted = store.grant_drain(&drain(0, &blue)).await.unwrap();
    assert_eq!(store.find_drain(&host(0)).await.unwrap(), Some(granted.clone()));
    assert_eq!(store.drained_of(blue.id).await.unwrap(), [master(0)].into());
    // A second request for the same host leads to the same drain.
    let again = store.grant_drain(&drain(0, &blue)).await.unwrap();
    assert_eq!((again.version, &again.takes), (granted.version + 1, &granted.takes));
    let empty = Drain { phase: DrainPhase::Drained, takes: BTreeSet::new(), ..again.clone() };
    let noted = store.update_drain(&empty).await.unwrap();
    assert_eq!(store.drained_of(blue.id).await.unwrap(), BTreeSet::new());
    assert_eq!(store.drains().await.unwrap(), std::slice::from_ref(&noted));
    assert_eq!(store.drain_ids().await.unwrap(), [granted.id]);
    assert_eq!(store.drain_of(granted.id).await.unwrap(), Some(noted.clone()));
    assert!(matches!(store.update_drain(&again).await, Err(StoreError::Stale)));
    let ending = store.end_drain(&host(0)).await.unwrap().unwrap();
    assert_eq!(ending.phase, DrainPhase::Ending);
    assert!(matches!(store.forget_drain(&noted).await, Err(StoreError::Stale)));
    store.forget_drain(&ending).await.unwrap();
    assert_eq!(store.find_drain(&host(0)).await.unwrap(), None);
    assert_eq!(store.end_drain(&host(0)).await.unwrap(), None);
}

async fn a_drain_that_breaks_a_quorum_is_refused_and_changes_nothing(store: Store) {
    let blue = of_three(&store, "blue").await;
    store.grant_drain(&drain(0, &blue)).await.unwrap();
    let before = find(&store, blue.id).await.unwrap().version;
    let refused = store.grant_drain(&drain(1, &blue)).await;
    let Err(DrainGrantError::Refused(refused)) = refused else { panic!("{refused:?}") };
    assert_eq!(refused.lost[0].drained[&host(0)], [master(0)]);
    assert_eq!(store.find_drain(&host(1)).await.unwrap(), None);
    assert_eq!(find(&store, blue.id).await.unwrap().version, before);
    // A request that forces the cluster is granted.
    let forced = Drain { forced: [blue.id].into(), ..drain(1, &blue) };
    store.grant_drain(&forced).await.unwrap();
    // Another cluster is not affected.
    let red = of_three(&store, "red").await;
    store.grant_drain(&drain(2, &red)).await.unwrap();
}

async fn a_member_that_comes_to_a_drained_host_makes_the_drain_stuck(store: Store) {
    let blue = of_three(&store, "blue").await;
    let first = store.grant_drain(&drain(0, &blue)).await.unwrap();
    let nothing = Drain { takes: BTreeSet::new(), ..drain(1, &blue) };
    let second = store.grant_drain(&nothing).await.unwrap();
    let came = Drain { phase: DrainPhase::Drained, takes: drain(1, &blue).takes, ..second };
    let noted = store.update_drain(&came).await.unwrap();
    assert_eq!(noted.phase, DrainPhase::Stuck);
    assert!(noted.problem.as_ref().unwrap().contains("the drain of host-0"), "{noted:?}");
    assert_eq!(noted.held, noted.takes);
    assert_eq!(store.find_drain(&host(1)).await.unwrap(), Some(noted.clone()));
    let gone = Drain { takes: BTreeSet::new(), ..first };
    store.update_drain(&gone).await.unwrap();
    let noted = store.update_drain(&Drain { phase: DrainPhase::Drained, ..noted }).await.unwrap();
    assert_eq!((noted.phase, noted.problem), (DrainPhase::Drained, None));
    assert_eq!(noted.held, BTreeSet::new());
}

async fn a_change_decided_before_a_drain_is_stale(store: Store) {
    let blue = of_three(&store, "blue").await;
    let read = find(&store, blue.id).await.unwrap();
    store.grant_drain(&drain(0, &blue)).await.unwrap();
    let replaced = store.change_cluster(&ClusterChange::of(read)).await;
    assert!(matches!(replaced, Err(StoreError::Stale)), "{replaced:?}");
    // The same holds for a member that comes to the host later.
    let red = of_three(&store, "red").await;
    let nothing = Drain { takes: BTreeSet::new(), ..drain(1, &red) };
    let granted = store.grant_drain(&nothing).await.unwrap();
    let read = find(&store, red.id).await.unwrap();
    let came = Drain { takes: drain(1, &red).takes, ..granted };
    store.update_drain(&came).await.unwrap();
    let replaced = store.change_cluster(&ClusterChange::of(read)).await;
    assert!(matches!(replaced, Err(StoreError::Stale)), "{replaced:?}");
}

async fn servers_are_known_by_their_ids_in_the_cloud(store: Store) {
    let blue = of_three(&store, "blue").await;
    let line = |kind: &str, id: &str| LedgerEntry {
        id: LedgerUuid::new_v4(),
        of: blue.id.into(),
        kind: kind.to_owned(),
        name: format!("name-of-{id}"),
        cloud_id: Some(id.to_owned()),
        state: LedgerState::Present,
        created_at: at(0),
        updated_at: None,
    };
    let lines = [line("server/default-master-1", "s-1"), line("port/default-master-1", "p-1")];
    store.save_ledger(&lines).await.unwrap();
    let asked = ["s-1", "p-1", "s-2"].map(str::to_owned);
    let found = store.server_owners(&asked).await.unwrap();
    let member = Member { cluster: blue.id, machine: master(1) };
    assert_eq!(found.servers, [("s-1".to_owned(), OwnServer::Member(member))].into());
    let clusters: Vec<(ClusterUuid, usize)> =
        found.clusters.iter().map(|(cluster, groups)| (cluster.id, groups.len())).collect();
    assert_eq!(clusters, [(blue.id, 1)]);
    assert!(store.server_owners(&[]).await.unwrap().servers.is_empty());
}

/// Two processes work on one database.
mod of_two_programs {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn one_of_two_concurrent_drains_is_granted_on_sqlite() {
        one_is_taken(Scratch::sqlite()).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn one_of_two_concurrent_drains_is_granted_on_postgres() {
        let Some(scratch) = Scratch::postgres().await else { return };
        one_is_taken(scratch).await;
    }
}

const ROUNDS: usize = 20;

async fn one_is_taken(scratch: Scratch) {
    let stores =
        [Store::open(&scratch.url).await.unwrap(), Store::open(&scratch.url).await.unwrap()];
    let mut winners = BTreeSet::new();
    for round in 0..ROUNDS {
        let blue = of_three(&stores[0], &format!("blue-{round}")).await;
        // Both orders of requests, each by another process.
        let asked = so_many(2, |n| {
            let number = (n + round) % 2;
            let (store, drain) = (stores[n].clone(), drain(number, &blue));
            async move {
                loop {
                    match store.grant_drain(&drain).await {
                        Ok(_) => break Ok(number),
                        Err(DrainGrantError::Refused(refused)) => break Err(refused),
                        Err(DrainGrantError::Store(StoreError::Stale)) => {}
                        Err(DrainGrantError::Store(error)) => panic!("{error:?}"),
                    }
                }
            }
        });
        let asked = asked.await;
        let (granted, refused): (Vec<_>, Vec<_>) = asked.into_iter().partition(Result::is_ok);
        assert_eq!((granted.len(), refused.len()), (1, 1), "{granted:?} {refused:?}");
        let first = *granted[0].as_ref().unwrap();
        let refused = refused[0].as_ref().unwrap_err();
        assert_eq!(refused.lost[0].drained[&host(first)], [master(first)]);
        winners.insert(first);
        for drain in stores[1].drains().await.unwrap() {
            stores[1].forget_drain(&drain).await.unwrap();
        }
    }
    assert_eq!(winners.len(), 2, "each order was tried");
}
