//! Concurrent writers lose no write, and nothing is granted twice.

use cluster_core::{DefaultLimits, Limit, Limits, NodeGroup, QuotaScope, Resource};
use cluster_store::{ClusterChange, QuotaWriteError, RedeemOutcome, Store, StoreError};
use database::scratch::Scratch;

use crate::samples::{LARGE, at, cluster, find, group, is_admitted, on_both, stored};

on_both! { Store:
    stale_changes_lose_nothing
    a_claim_is_redeemed_by_one
    concurrent_makers_of_a_secret_get_the_same_one
}

const TASKS: usize = 16;

/// Runs `act` [`TASKS`] times at once.
async fn at_once<T, D>(act: impl Fn(usize) -> D) -> Vec<T>
where
    D: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    so_many(TASKS, act).await
}

pub(crate) async fn so_many<T, D>(tasks: usize, act: impl Fn(usize) -> D) -> Vec<T>
where
    D: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    let tasks: Vec<_> = (0..tasks).map(|n| tokio::spawn(act(n))).collect();
    let mut outcomes = Vec::new();
    for task in tasks {
        outcomes.push(task.await.unwrap());
    }
    outcomes
}

async fn stale_changes_lose_nothing(store: Store) {
    let (_, cluster) = stored(&store, "p", "one").await;
    let id = cluster.id;
    at_once(|n| {
        let store = store.clone();
        async move {
            loop {
                let cluster = find(&store, id).await.unwrap();
                let added = vec![group(&cluster, &format!("g{n}"), 1)];
                match store
                    .change_cluster(&ClusterChange { added, ..ClusterChange::of(cluster) })
                    .await
                {
                    Ok(_) => break,
                    Err(StoreError::Stale) => {}
                    Err(error) => panic!("{error:?}"),
                }
            }
        }
    })
    .await;
    assert_eq!(store.groups_of(id).await.unwrap().len(), TASKS + 1);
    assert_eq!(find(&store, id).await.unwrap().version, TASKS as i64 + 1);
}

async fn a_claim_is_redeemed_by_one(store: Store) {
    let (_, cluster) = stored(&store, "p", "one").await;
    let claim = cluster_store::Claim {
        id: cluster_core::ClaimUuid::new_v4(),
        cluster: cluster.id,
        machine: "default-worker-0".parse().unwrap(),
        digest: "d".to_owned(),
        facts: String::new(),
        expires_at: at(100),
        redeemed_at: None,
        redeemed_by: None,
    };
    store.insert_claim(&claim).await.unwrap();
    let redeemed = at_once(|n| {
        let (store, by) = (store.clone(), [10, 0, 0, n as u8].into());
        async move { store.redeem_claim(claim.id, by, at(1), at(0), "1").await.unwrap() }
    });
    let redeemed = redeemed.await;
    assert_eq!(redeemed.iter().filter(|it| **it == RedeemOutcome::First).count(), 1);
    assert_eq!(redeemed.iter().filter(|it| **it == RedeemOutcome::No).count(), TASKS - 1);
}

async fn concurrent_makers_of_a_secret_get_the_same_one(store: Store) {
    let (_, cluster) = stored(&store, "p", "one").await;
    let id = cluster.id;
    let kept = at_once(|n| {
        let store = store.clone();
        async move { store.keep_secret(id, "pki", &format!("s{n}")).await.unwrap() }
    });
    let kept = kept.await;
    assert!(kept.iter().all(|text| *text == kept[0]), "{kept:?}");
}

/// Two processes work on one database.
mod of_two_programs {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn ten_of_two_hundred_requests_use_up_a_limit_on_sqlite() {
        the_last_ten(Scratch::sqlite()).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn ten_of_two_hundred_requests_use_up_a_limit_on_postgres() {
        let Some(scratch) = Scratch::postgres().await else { return };
        the_last_ten(scratch).await;
    }
}

const CROWD: usize = 200;

fn limit(resource: Resource, most: u64) -> Limits {
    Limits([(resource, Limit::AtMost(most))].into())
}

async fn the_last_ten(scratch: Scratch) {
    let stores =
        [Store::open(&scratch.url).await.unwrap(), Store::open(&scratch.url).await.unwrap()];
    let project = QuotaScope { project: "p".to_owned(), person: None };
    let person = QuotaScope { person: Some("u".to_owned()), ..project.clone() };
    let nobody = DefaultLimits::default();
    let (template, first) = stored(&stores[0], "p", "one").await;

    // There is one cluster with two members, so the limit has room for ten more.
    let defaults =
        DefaultLimits { project: limit(Resource::Clusters, 11), ..DefaultLimits::default() };
    let made = so_many(CROWD, |n| {
        let (store, new) = (stores[n % 2].clone(), cluster(&template, &format!("c{n}")));
        let defaults = defaults.clone();
        async move { is_admitted(store.insert_cluster(&new, &[], &[], Some(&defaults)).await) }
    });
    assert_eq!(made.await.into_iter().filter(|made| *made).count(), 10);
    let used = stores[1].account(&project, &nobody).await.unwrap().used;
    assert_eq!((used[Resource::Clusters], used[Resource::Nodes]), (11, 2));

    // Two hundred node groups of four processors each, and a limit with room for ten of them.
    stores[0].set_limits(&person, &limit(Resource::Vcpus, 43), at(2)).await.unwrap();
    let grown = so_many(CROWD, |n| {
        let (store, id) = (stores[n % 2].clone(), first.id);
        async move {
            loop {
                let cluster = find(&store, id).await.unwrap();
                let new = group(&cluster, &format!("g{n}"), 1);
                let added = vec![NodeGroup { size: Some(LARGE), ..new }];
                let change = ClusterChange { added, ..ClusterChange::of(cluster) };
                match store.change_within(&change, &DefaultLimits::default()).await {
                    Err(QuotaWriteError::Store(StoreError::Stale)) => {}
                    written => break is_admitted(written),
                }
            }
        }
    });
    assert_eq!(grown.await.into_iter().filter(|grown| *grown).count(), 10);
    let used = stores[1].account(&person, &nobody).await.unwrap().used;
    assert_eq!((used[Resource::Vcpus], used[Resource::Nodes]), (40, 12));
    assert_eq!(stores[0].groups_of(first.id).await.unwrap().len(), 11);
}
