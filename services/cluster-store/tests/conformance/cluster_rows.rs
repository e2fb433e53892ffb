//! The rows of a cluster: ledger, events, secrets, claims, member reports and certificates.

use std::net::{IpAddr, Ipv4Addr};

use cluster_core::{
    CertificateUuid, ClaimUuid, Cluster, EventUuid, LedgerEntry, LedgerState, LedgerUuid,
};
use cluster_store::{
    BootstrapReport, Certificate, Claim, MachineReport, RedeemOutcome, Store, StoreError,
};

use crate::samples::{at, event, on_both, stored};

on_both! { Store:
    a_cluster_with_a_ledger_stays
    an_object_is_in_the_ledger_once
    events_go_in_pages_and_are_bounded
    events_are_followed_by_their_numbers
    a_secret_is_kept_or_replaced
    a_claim_is_redeemed_once_and_in_time
    a_lost_answer_is_given_again_until_the_member_reports
    an_answer_is_given_again_four_times_at_most
    a_claim_is_renewed_until_it_is_redeemed
    only_the_holder_of_the_last_claim_speaks_for_a_member
    a_member_is_forgotten_with_its_server
    certificates_are_recorded
}

fn entry(of: &Cluster, name: &str) -> LedgerEntry {
    LedgerEntry {
        id: LedgerUuid::new_v4(),
        of: of.id.into(),
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
    store.remove_ledger_entry(line.id).await.unwrap();
    store.remove_ledger_entry(line.id).await.unwrap();
    store.delete_cluster(&cluster).await.unwrap();
    let orphan = store.save_ledger(&[line]).await;
    assert!(matches!(orphan, Err(StoreError::NoOwner { owner: "cluster", .. })), "{orphan:?}");
}

async fn an_object_is_in_the_ledger_once(store: Store) {
    let (_, cluster) = stored(&store, "p", "one").await;
    let (one, two) = (entry(&cluster, "a"), entry(&cluster, "b"));
    store.save_ledger(&[one.clone(), two.clone()]).await.unwrap();
    // After a crash a turn writes the same intent again, and then learns the id.
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

async fn events_are_followed_by_their_numbers(store: Store) {
    let (_, cluster) = stored(&store, "p", "one").await;
    let (_, other) = stored(&store, "p", "two").await;
    let writers = (0..8).map(|writer| {
        let (store, cluster, other) = (store.clone(), cluster.clone(), other.clone());
        tokio::spawn(async move {
            for number in 0..20 {
                let reason = format!("E{writer}-{number}");
                store.append_events(cluster.id, &[event(&cluster, &reason)]).await.unwrap();
                store.append_events(other.id, &[event(&other, &reason)]).await.unwrap();
            }
        })
    });
    let writers: Vec<_> = writers.collect();
    let mut listener = store.listen(cluster.id);
    let (mut after, mut reported) = (0, Vec::new());
    // The first event is the one about the cluster's creation.
    while reported.len() < 1 + 8 * 20 {
        let page = store.events_after(cluster.id, after, 7).await.unwrap().unwrap();
        match page.last() {
            Some((number, _)) => after = *number,
            None => listener.heard().await,
        }
        reported.extend(page.into_iter().map(|(_, event)| event));
    }
    for writer in writers {
        writer.await.unwrap();
    }
    // No event came later with a number that had been passed.
    assert_eq!(store.events_of(cluster.id, 1000, None).await.unwrap(), reported);
    assert_eq!(store.events_after(cluster.id, after, 7).await.unwrap(), Some(Vec::new()));
    store.delete_cluster(&cluster).await.unwrap();
    listener.heard().await;
    assert_eq!(store.events_after(cluster.id, after, 7).await.unwrap(), None);
}

async fn a_secret_is_kept_or_replaced(store: Store) {
    let (_, cluster) = stored(&store, "p", "one").await;
    let keep = async |text| store.keep_secret(cluster.id, "pki", text).await.unwrap();
    assert_eq!(keep("first").await, "first");
    assert_eq!(keep("second").await, "first");
    store.save_secret(cluster.id, "pki", "third").await.unwrap();
    assert_eq!(store.find_secret(cluster.id, "pki").await.unwrap().as_deref(), Some("third"));
    assert_eq!(store.find_secret(cluster.id, "other").await.unwrap(), None);
    store.delete_secret(cluster.id, "other").await.unwrap();
    store.delete_secret(cluster.id, "pki").await.unwrap();
    assert_eq!(store.find_secret(cluster.id, "pki").await.unwrap(), None);
}

fn claim(of: &Cluster, machine: &str, digest: &str) -> Claim {
    Claim {
        id: ClaimUuid::new_v4(),
        cluster: of.id,
        machine: machine.parse().unwrap(),
        digest: digest.to_owned(),
        facts: "{}".to_owned(),
        expires_at: at(100),
        redeemed_at: None,
        redeemed_by: None,
    }
}

fn said(step: &str, seconds: i64) -> BootstrapReport {
    let (step, message) = (step.to_owned(), "exit-code".to_owned());
    BootstrapReport { step, failed: true, message, at: at(seconds) }
}

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const THERE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

async fn a_claim_is_redeemed_once_and_in_time(store: Store) {
    let (_, cluster) = stored(&store, "p", "one").await;
    let (one, two) =
        (claim(&cluster, "default-worker-0", "d1"), claim(&cluster, "default-worker-1", "d2"));
    store.insert_claim(&one).await.unwrap();
    store.insert_claim(&two).await.unwrap();
    let redeem = async |claim: &Claim, by, now| {
        store.redeem_claim(claim.id, by, at(now), at(now - 10), "1").await.unwrap()
    };
    assert_eq!(redeem(&one, HERE, 99).await, RedeemOutcome::First);
    assert_eq!(redeem(&one, THERE, 99).await, RedeemOutcome::No);
    let redeemed = Claim { redeemed_at: Some(at(99)), redeemed_by: Some(HERE), ..one.clone() };
    assert_eq!(store.find_claim(one.id).await.unwrap(), Some(redeemed));
    assert_eq!(redeem(&two, HERE, 100).await, RedeemOutcome::No);
    assert_eq!(redeem(&claim(&cluster, "x-1", "d3"), HERE, 1).await, RedeemOutcome::No);
    assert_eq!(store.find_claim(two.id).await.unwrap(), Some(two));
}

async fn a_lost_answer_is_given_again_until_the_member_reports(store: Store) {
    let (_, cluster) = stored(&store, "p", "one").await;
    let redeem = async |claim: &Claim, now| {
        store.redeem_claim(claim.id, HERE, at(now), at(now - 10), "1").await.unwrap()
    };
    let one = claim(&cluster, "default-worker-0", "d1");
    store.insert_claim(&one).await.unwrap();
    assert_eq!(redeem(&one, 50).await, RedeemOutcome::First);
    assert_eq!(redeem(&one, 59).await, RedeemOutcome::Again);
    assert_eq!(redeem(&one, 60).await, RedeemOutcome::No);
    assert_eq!(redeem(&one, 55).await, RedeemOutcome::Again);
    store.note_report(one.id, &said("join", 55), at(25)).await.unwrap();
    assert_eq!(redeem(&one, 55).await, RedeemOutcome::No);
}

async fn an_answer_is_given_again_four_times_at_most(store: Store) {
    let (_, cluster) = stored(&store, "p", "one").await;
    let one = claim(&cluster, "default-worker-0", "d1");
    store.insert_claim(&one).await.unwrap();
    let redeem = async |by| store.redeem_claim(one.id, by, at(50), at(40), "1").await.unwrap();
    assert_eq!(redeem(HERE).await, RedeemOutcome::First);
    let mut handed_out = 0;
    while redeem(HERE).await == RedeemOutcome::Again {
        handed_out += 1;
        assert!(handed_out < 6, "it goes on");
    }
    assert_eq!(handed_out, 4);
    assert_eq!(redeem(HERE).await, RedeemOutcome::TooOften);
    assert_eq!(redeem(THERE).await, RedeemOutcome::No);
}

async fn a_claim_is_renewed_until_it_is_redeemed(store: Store) {
    let (_, cluster) = stored(&store, "p", "one").await;
    let one = claim(&cluster, "default-worker-0", "d1");
    store.insert_claim(&one).await.unwrap();
    assert!(store.renew_claim(one.id, "[]", at(200)).await.unwrap());
    let renewed = Claim { facts: "[]".to_owned(), expires_at: at(200), ..one.clone() };
    assert_eq!(store.claim_of(cluster.id, &one.machine).await.unwrap(), Some(renewed));
    store.redeem_claim(one.id, HERE, at(150), at(140), "1").await.unwrap();
    assert!(!store.renew_claim(one.id, "{}", at(300)).await.unwrap());
}

async fn only_the_holder_of_the_last_claim_speaks_for_a_member(store: Store) {
    let (_, cluster) = stored(&store, "p", "one").await;
    let (old, new) =
        (claim(&cluster, "default-worker-0", "d1"), claim(&cluster, "default-worker-0", "d2"));
    let note = async |of: &Claim, said: &BootstrapReport| {
        let since = at(said.at.as_second() - at(0).as_second() - 30);
        store.note_report(of.id, said, since).await.unwrap()
    };
    store.insert_claim(&old).await.unwrap();
    assert_eq!(note(&old, &said("join", 5)).await, Some(cluster.id));
    assert_eq!(note(&old, &said("join", 34)).await, None);
    assert_eq!(note(&old, &said("mark", 34)).await, Some(cluster.id));
    assert_eq!(note(&old, &said("mark", 64)).await, Some(cluster.id));
    assert_eq!(store.note_authorities(old.id, 3).await.unwrap(), Some(cluster.id));
    assert_eq!(store.note_authorities(old.id, 3).await.unwrap(), None);
    store.insert_claim(&new).await.unwrap();
    assert_eq!(store.note_authorities(old.id, 4).await.unwrap(), None);
    assert_eq!(store.claim_of(cluster.id, &new.machine).await.unwrap(), Some(new.clone()));
    assert_eq!(note(&old, &said("join", 65)).await, None);
    let silent = MachineReport {
        machine: new.machine.clone(),
        claim: new.id,
        redeemed_at: None,
        redeemed_by: None,
        said: None,
        authorities: None,
    };
    assert_eq!(store.machines_of(cluster.id).await.unwrap(), std::slice::from_ref(&silent));
    store.redeem_claim(new.id, HERE, at(7), at(0), "1").await.unwrap();
    assert_eq!(note(&new, &said("join", 8)).await, Some(cluster.id));
    assert_eq!(store.note_authorities(new.id, 4).await.unwrap(), Some(cluster.id));
    let heard = MachineReport {
        redeemed_at: Some(at(7)),
        redeemed_by: Some(HERE),
        said: Some(said("join", 8)),
        authorities: Some(4),
        ..silent
    };
    assert_eq!(store.machines_of(cluster.id).await.unwrap(), [heard]);
}

async fn a_member_is_forgotten_with_its_server(store: Store) {
    let (_, cluster) = stored(&store, "p", "one").await;
    let (gone, stays) =
        (claim(&cluster, "default-worker-1", "d1"), claim(&cluster, "default-worker-11", "d2"));
    let line = |kind: &str| LedgerEntry { kind: kind.to_owned(), ..entry(&cluster, kind) };
    let (port, server) = (line("port/default-worker-1"), line("server/default-worker-1"));
    store.save_ledger(&[port.clone(), server.clone()]).await.unwrap();
    store.insert_claim(&gone).await.unwrap();
    store.insert_claim(&stays).await.unwrap();
    store.remove_ledger_entry(port.id).await.unwrap();
    assert_eq!(store.machines_of(cluster.id).await.unwrap().len(), 2);
    store.remove_ledger_entry(server.id).await.unwrap();
    let left = store.machines_of(cluster.id).await.unwrap();
    assert_eq!(left.iter().map(|it| it.claim).collect::<Vec<_>>(), [stays.id]);
    assert_eq!(store.find_claim(gone.id).await.unwrap(), None);
    store.delete_cluster(&cluster).await.unwrap();
    assert_eq!(store.find_claim(stays.id).await.unwrap(), None);
}

async fn certificates_are_recorded(store: Store) {
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
