//! Sixteen at once: nothing is lost, nothing is given twice.

use cluster_store::{Change, Redeemed, Store, StoreError};

use crate::samples::{at, cluster, find, group, on_both, project, stored, template};

on_both! { Store:
    a_limit_holds_against_all_at_once
    stale_changes_lose_nothing
    a_claim_is_redeemed_by_one
    two_that_make_keys_get_the_same
}

const TASKS: usize = 16;

/// Runs `act` so many times at once.
async fn at_once<T, D>(act: impl Fn(usize) -> D) -> Vec<T>
where
    D: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    let tasks: Vec<_> = (0..TASKS).map(|n| tokio::spawn(act(n))).collect();
    let mut outcomes = Vec::new();
    for task in tasks {
        outcomes.push(task.await.unwrap());
    }
    outcomes
}

async fn a_limit_holds_against_all_at_once(store: Store) {
    let template = template("p", "t");
    store.insert_template(&template).await.unwrap();
    let made = at_once(|n| {
        let (store, new) = (store.clone(), cluster(&template, &format!("c{n}")));
        async move { store.insert_cluster(&new, &[], &[], Some(5)).await.unwrap() }
    });
    assert_eq!(made.await.into_iter().filter(|made| *made).count(), 5);
    assert_eq!(store.count_clusters(&project("p")).await.unwrap().0, 5);
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
                match store.change_cluster(&Change { added, ..Change::of(cluster) }).await {
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
        async move { store.redeem_claim(claim.id, by, at(1), at(0)).await.unwrap() }
    });
    let redeemed = redeemed.await;
    assert_eq!(redeemed.iter().filter(|it| **it == Redeemed::First).count(), 1);
    assert_eq!(redeemed.iter().filter(|it| **it == Redeemed::No).count(), TASKS - 1);
}

async fn two_that_make_keys_get_the_same(store: Store) {
    let (_, cluster) = stored(&store, "p", "one").await;
    let id = cluster.id;
    let kept = at_once(|n| {
        let store = store.clone();
        async move { store.keep_secret(id, "pki", &format!("s{n}")).await.unwrap() }
    });
    let kept = kept.await;
    assert!(kept.iter().all(|text| *text == kept[0]), "{kept:?}");
}
