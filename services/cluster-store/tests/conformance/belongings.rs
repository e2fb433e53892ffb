//! What belongs to one cluster.

use cluster_core::{
    CertificateUuid, ClaimUuid, Cluster, EventUuid, LedgerEntry, LedgerState, LedgerUuid,
};
use cluster_store::{Certificate, Claim, Store, StoreError};

use crate::samples::{at, event, on_both, stored};

on_both! { Store:
    a_cluster_with_a_ledger_stays
    an_object_is_in_the_ledger_once
    events_go_in_pages_and_are_bounded
    a_secret_is_kept_or_replaced
    a_claim_is_redeemed_once_and_in_time
    certificates_are_noted
}

fn entry(of: &Cluster, name: &str) -> LedgerEntry {
    LedgerEntry {
        id: LedgerUuid::new_v4(),
        cluster: of.id,
        kind: "server".to_owned(),
        name: name.to_owned(),
        cloud_id: None,
        state: LedgerState::Intended,
        created_at: at(1),
        updated_at: None,
    }
}

async fn a_cluster_with_a_ledger_stays(store: Store) {
    let (_, cluster) = stored(&store, "p", "one").await;
    let line = entry(&cluster, "a");
    store.save_ledger(std::slice::from_ref(&line)).await.unwrap();
    let refused = store.delete_cluster(&cluster).await;
    assert!(matches!(refused, Err(StoreError::InUse { by: "its ledger" })), "{refused:?}");
    store.strike_ledger(line.id).await.unwrap();
    store.strike_ledger(line.id).await.unwrap();
    store.delete_cluster(&cluster).await.unwrap();
    let orphan = store.save_ledger(&[line]).await;
    assert!(matches!(orphan, Err(StoreError::NoOwner { owner: "cluster", .. })), "{orphan:?}");
}

async fn an_object_is_in_the_ledger_once(store: Store) {
    let (_, cluster) = stored(&store, "p", "one").await;
    let (one, two) = (entry(&cluster, "a"), entry(&cluster, "b"));
    store.save_ledger(&[one.clone(), two.clone()]).await.unwrap();
    // A turn after a crash intends the same again, and learns the id.
    let known = LedgerEntry {
        cloud_id: Some("id-1".to_owned()),
        state: LedgerState::Present,
        updated_at: Some(at(2)),
        ..entry(&cluster, "a")
    };
    store.save_ledger(std::slice::from_ref(&known)).await.unwrap();
    let want = [LedgerEntry { id: one.id, ..known }, two];
    assert_eq!(store.ledger_of(cluster.id).await.unwrap(), want);
}

async fn events_go_in_pages_and_are_bounded(store: Store) {
    let (_, cluster) = stored(&store, "p", "one").await;
    let many: Vec<_> = (0..1005).map(|n| event(&cluster, &format!("E{n}"))).collect();
    store.append_events(cluster.id, &many).await.unwrap();
    let first = store.events_of(cluster.id, 2, None).await.unwrap();
    assert_eq!(first[0].reason, "E5");
    let next = store.events_of(cluster.id, 2000, first[1].id).await.unwrap();
    assert_eq!((next.len(), next[0].reason.as_str()), (998, "E7"));
    let unknown = Some(EventUuid::new_v4());
    assert_eq!(store.events_of(cluster.id, 10, unknown).await.unwrap(), []);
}

async fn a_secret_is_kept_or_replaced(store: Store) {
    let (_, cluster) = stored(&store, "p", "one").await;
    let keep = async |text| store.keep_secret(cluster.id, "pki", text).await.unwrap();
    assert_eq!(keep("first").await, "first");
    assert_eq!(keep("second").await, "first");
    store.save_secret(cluster.id, "pki", "third").await.unwrap();
    assert_eq!(store.find_secret(cluster.id, "pki").await.unwrap().as_deref(), Some("third"));
    assert_eq!(store.find_secret(cluster.id, "other").await.unwrap(), None);
}

async fn a_claim_is_redeemed_once_and_in_time(store: Store) {
    let (_, cluster) = stored(&store, "p", "one").await;
    let claim = |digest: &str| Claim {
        id: ClaimUuid::new_v4(),
        cluster: cluster.id,
        machine: "default-worker-1".parse().unwrap(),
        digest: digest.to_owned(),
        expires_at: at(100),
        redeemed_at: None,
    };
    let (one, two) = (claim("d1"), claim("d2"));
    store.insert_claim(&one).await.unwrap();
    store.insert_claim(&two).await.unwrap();
    let redeem = async |digest, now| store.redeem_claim(digest, at(now)).await.unwrap();
    let redeemed = Claim { redeemed_at: Some(at(99)), ..one.clone() };
    assert_eq!(redeem("d1", 99).await, Some(redeemed.clone()));
    assert_eq!(redeem("d1", 99).await, None);
    assert_eq!(store.find_claim("d1").await.unwrap(), Some(redeemed));
    assert_eq!(redeem("d2", 100).await, None);
    assert_eq!(redeem("d3", 1).await, None);
    assert_eq!(store.find_claim("d2").await.unwrap(), Some(two));
}

async fn certificates_are_noted(store: Store) {
    let (_, cluster) = stored(&store, "p", "one").await;
    let line = Certificate {
        id: CertificateUuid::new_v4(),
        cluster: cluster.id,
        subject: "CN=admin".to_owned(),
        issued_to: "u".to_owned(),
        created_at: at(1),
        not_after: at(9),
    };
    store.insert_certificate(&line).await.unwrap();
    assert_eq!(store.certificates_of(cluster.id).await.unwrap(), [line]);
}
