//! By which keys secrets are sealed, and what keys are needed for.

use std::net::{IpAddr, Ipv4Addr};

use cluster_core::{ClaimUuid, UserData, Vm};
use cluster_store::{Claim, Store, StoreError, VmChange};
use sealing::SealingKeys;

use crate::samples::{at, on_both, stored};
use crate::vms::vm;

on_both! { Store:
    a_key_that_seals_something_is_not_forgotten
    what_is_something_else_by_now_is_not_sealed_anew
    a_key_that_seals_what_a_machine_is_told_is_not_forgotten
    a_machine_needs_the_key_that_it_reports_by
}

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn sealed(id: &str, text: &str) -> String {
    let line = SealingKeys::generate().unwrap().replacen('1', id, 1);
    SealingKeys::parse(&line).unwrap().seal("p", text.as_bytes()).unwrap()
}

async fn a_key_that_seals_something_is_not_forgotten(store: Store) {
    let (_, cluster) = stored(&store, "p", "one").await;
    for name in ["a", "b", "c"] {
        store.save_secret(cluster.id, name, &sealed("1", name)).await.unwrap();
    }
    store.save_secret(cluster.id, "c", &sealed("2", "c")).await.unwrap();
    let in_use = store.seals_in_use().await.unwrap();
    assert_eq!(in_use, [("1".to_owned(), 2, 0), ("2".to_owned(), 1, 0)]);
    assert!(matches!(store.forget_seal("1").await, Err(StoreError::InUse { .. })));

    let first = store.secrets_sealed_by("1", None, 1).await.unwrap();
    let second = store.secrets_sealed_by("1", first.first(), 9).await.unwrap();
    let both: Vec<_> = first.into_iter().chain(second).collect();
    assert_eq!(both.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    let anew: Vec<_> = both.into_iter().map(|it| (it, sealed("2", "x"))).collect();
    assert_eq!(store.reseal_secrets(&anew).await.unwrap(), 2);
    assert_eq!(store.reseal_secrets(&anew).await.unwrap(), 0);
    store.forget_seal("1").await.unwrap();
    assert_eq!(store.seals_in_use().await.unwrap(), [("2".to_owned(), 3, 0)]);
}

async fn what_is_something_else_by_now_is_not_sealed_anew(store: Store) {
    let (_, cluster) = stored(&store, "p", "one").await;
    store.save_secret(cluster.id, "a", &sealed("1", "old")).await.unwrap();
    let read = store.secrets_sealed_by("1", None, 9).await.unwrap();
    let newer = sealed("1", "newer");
    store.save_secret(cluster.id, "a", &newer).await.unwrap();
    let anew: Vec<_> = read.into_iter().map(|it| (it, sealed("2", "old"))).collect();
    assert_eq!(store.reseal_secrets(&anew).await.unwrap(), 0);
    assert_eq!(store.find_secret(cluster.id, "a").await.unwrap(), Some(newer));
}

async fn a_key_that_seals_what_a_machine_is_told_is_not_forgotten(store: Store) {
    let told = |name: &str| {
        let user_data = UserData { digest: "d".to_owned(), is_kept: true };
        Vm { user_data: Some(user_data), ..vm("p", "u", name) }
    };
    let (waiting, built) = (told("waiting"), told("built"));
    for one in [&waiting, &built] {
        store.insert_vm(one, Some(&sealed("1", "told")), &[], None).await.unwrap().unwrap();
    }
    store.insert_vm(&vm("p", "u", "untold"), None, &[], None).await.unwrap().unwrap();
    assert_eq!(store.seals_in_use().await.unwrap(), [("1".to_owned(), 2, 0)]);
    assert!(matches!(store.forget_seal("1").await, Err(StoreError::InUse { .. })));

    let first = store.user_data_sealed_by("1", None, 1).await.unwrap();
    let second = store.user_data_sealed_by("1", Some(first[0].vm), 9).await.unwrap();
    assert_eq!((first.len(), second.len()), (1, 1));
    let both: Vec<_> = first.into_iter().chain(second).collect();
    let anew: Vec<_> = both.into_iter().map(|it| (it, sealed("2", "told"))).collect();
    // One is built meanwhile: what it was told is gone, and does not come back.
    let noted = built.user_data.clone().map(|it| UserData { is_kept: false, ..it });
    let built = Vm { user_data: noted, ..built };
    store.change_vm(&VmChange::of(built.clone())).await.unwrap();
    assert_eq!(store.reseal_user_data(&anew).await.unwrap(), 1);
    assert_eq!(store.reseal_user_data(&anew).await.unwrap(), 0);
    assert_eq!(store.sealed_user_data(built.id).await.unwrap(), None);
    let kept = store.sealed_user_data(waiting.id).await.unwrap();
    assert!(anew.iter().any(|(it, anew)| it.vm == waiting.id && Some(anew) == kept.as_ref()));
    // It is no change of the machine: who read it before writes it still.
    store.change_vm(&VmChange::of(waiting)).await.unwrap();
    store.forget_seal("1").await.unwrap();
    assert_eq!(store.seals_in_use().await.unwrap(), [("2".to_owned(), 1, 0)]);
}

async fn a_machine_needs_the_key_that_it_reports_by(store: Store) {
    let (_, cluster) = stored(&store, "p", "one").await;
    store.save_secret(cluster.id, "a", &sealed("2", "a")).await.unwrap();
    let claim = |digest: &str| Claim {
        id: ClaimUuid::new_v4(),
        cluster: cluster.id,
        machine: "default-worker-0".parse().unwrap(),
        digest: digest.to_owned(),
        facts: "{}".to_owned(),
        expires_at: at(100),
        redeemed_at: None,
        redeemed_by: None,
    };
    let old = claim("d1");
    store.insert_claim(&old).await.unwrap();
    store.redeem_claim(old.id, HERE, at(1), at(0), "1").await.unwrap();
    let in_use = store.seals_in_use().await.unwrap();
    assert_eq!(in_use, [("1".to_owned(), 0, 1), ("2".to_owned(), 1, 0)]);
    // An answer that was lost and given again is by the key there is now.
    store.redeem_claim(old.id, HERE, at(5), at(0), "2").await.unwrap();
    assert_eq!(store.seals_in_use().await.unwrap()[1], ("2".to_owned(), 1, 1));
    // The machine was made anew, and nobody speaks for the old one.
    store.insert_claim(&claim("d2")).await.unwrap();
    let in_use = store.seals_in_use().await.unwrap();
    assert_eq!(in_use, [("1".to_owned(), 0, 0), ("2".to_owned(), 1, 0)]);
}
