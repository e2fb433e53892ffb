//! The register of the keys that seal secrets.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use cluster_core::{ClaimUuid, UserData, Vm};
use cluster_store::{Claim, Store, StoreError, VmChange};
use sealing::{Keyring, SealingKeys};

use crate::samples::{at, on_both, stored};
use crate::vms::vm;

on_both! { Store:
    a_key_that_seals_something_is_not_forgotten
    the_sealing_key_is_distinguished_from_another_with_the_same_id
    a_secret_that_changed_meanwhile_is_not_re_encrypted
    a_key_that_seals_user_data_is_not_forgotten
    a_member_needs_the_key_of_its_report_token
}

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn sealed(id: &str, text: &str) -> String {
    keys(id).seal("p", text.as_bytes()).unwrap()
}

/// Makes a key with a number as its id, as earlier versions did.
fn keys(id: &str) -> SealingKeys {
    let made = SealingKeys::generate().unwrap();
    SealingKeys::parse(&format!("{id}:{}", made.split_once(':').unwrap().1)).unwrap()
}

async fn the_sealing_key_is_distinguished_from_another_with_the_same_id(store: Store) {
    let (_, cluster) = stored(&store, "p", "one").await;
    let (ours, other): (Arc<Keyring>, Arc<Keyring>) = (keys("1").into(), keys("1").into());
    // An earlier version registered the key without a canary.
    let place = format!("{}/a", cluster.id);
    store.save_secret(cluster.id, "a", &ours.seal(&place, b"s").unwrap()).await.unwrap();
    let known = store.known_keys().await.unwrap();
    assert_eq!((known[0].canary.is_some(), known[0].needed), (false, 1));
    for _ in 0..2 {
        let refused = store.clone().with_keys(other.clone()).await.err().unwrap();
        let StoreError::Corrupt { source, .. } = refused else { panic!("{refused:?}") };
        assert!(source.to_string().contains("the key 1 in the file is not the key 1"), "{source}");
        // The first start with the right key stores the canary.
        store.clone().with_keys(ours.clone()).await.unwrap();
        let known = store.known_keys().await.unwrap();
        assert!(known[0].canary.is_some() && known[0].sample.is_none());
    }
    let refused = store.clone().with_keys(keys("2").into()).await.err().unwrap();
    let StoreError::Corrupt { source, .. } = refused else { panic!("{refused:?}") };
    assert!(source.to_string().contains("does not hold key 1"), "{source}");
    // A new key is registered with its canary.
    store.delete_secret(cluster.id, "a").await.unwrap();
    let fresh: Arc<Keyring> = keys("3").into();
    let store = store.with_keys(fresh.clone()).await.unwrap();
    store.save_secret(cluster.id, "b", &fresh.seal("p", b"s").unwrap()).await.unwrap();
    let known = store.known_keys().await.unwrap();
    assert!(known.iter().any(|key| key.id == "3" && key.canary.is_some()), "{known:?}");
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

async fn a_secret_that_changed_meanwhile_is_not_re_encrypted(store: Store) {
    let (_, cluster) = stored(&store, "p", "one").await;
    store.save_secret(cluster.id, "a", &sealed("1", "old")).await.unwrap();
    let read = store.secrets_sealed_by("1", None, 9).await.unwrap();
    let newer = sealed("1", "newer");
    store.save_secret(cluster.id, "a", &newer).await.unwrap();
    let anew: Vec<_> = read.into_iter().map(|it| (it, sealed("2", "old"))).collect();
    assert_eq!(store.reseal_secrets(&anew).await.unwrap(), 0);
    assert_eq!(store.find_secret(cluster.id, "a").await.unwrap(), Some(newer));
}

async fn a_key_that_seals_user_data_is_not_forgotten(store: Store) {
    let reported = |name: &str| {
        let user_data = UserData { digest: "d".to_owned(), is_kept: true };
        Vm { user_data: Some(user_data), ..vm("p", "u", name) }
    };
    let (waiting, built) = (reported("waiting"), reported("built"));
    for one in [&waiting, &built] {
        store.insert_vm(one, Some(&sealed("1", "told")), &[], None).await.unwrap();
    }
    store.insert_vm(&vm("p", "u", "untold"), None, &[], None).await.unwrap();
    assert_eq!(store.seals_in_use().await.unwrap(), [("1".to_owned(), 2, 0)]);
    assert!(matches!(store.forget_seal("1").await, Err(StoreError::InUse { .. })));

    let first = store.user_data_sealed_by("1", None, 1).await.unwrap();
    let second = store.user_data_sealed_by("1", Some(first[0].vm), 9).await.unwrap();
    assert_eq!((first.len(), second.len()), (1, 1));
    let both: Vec<_> = first.into_iter().chain(second).collect();
    let anew: Vec<_> = both.into_iter().map(|it| (it, sealed("2", "told"))).collect();
    // A VM is built meanwhile: its user-data is deleted, and re-encryption does not bring it back.
    let noted = built.user_data.clone().map(|it| UserData { is_kept: false, ..it });
    let built = Vm { user_data: noted, ..built };
    store.change_vm(&VmChange::of(built.clone())).await.unwrap();
    assert_eq!(store.reseal_user_data(&anew).await.unwrap(), 1);
    assert_eq!(store.reseal_user_data(&anew).await.unwrap(), 0);
    assert_eq!(store.sealed_user_data(built.id).await.unwrap(), None);
    let kept = store.sealed_user_data(waiting.id).await.unwrap();
    assert!(anew.iter().any(|(it, anew)| it.vm == waiting.id && Some(anew) == kept.as_ref()));
    // Re-encryption does not change the VM: a writer that read the VM before can still write.
    store.change_vm(&VmChange::of(waiting)).await.unwrap();
    store.forget_seal("1").await.unwrap();
    assert_eq!(store.seals_in_use().await.unwrap(), [("2".to_owned(), 1, 0)]);
}

async fn a_member_needs_the_key_of_its_report_token(store: Store) {
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
    // An answer that is given again uses the current key.
    store.redeem_claim(old.id, HERE, at(5), at(0), "2").await.unwrap();
    assert_eq!(store.seals_in_use().await.unwrap()[1], ("2".to_owned(), 1, 1));
    // The member got a new claim, so the reports of the old one no longer count.
    store.insert_claim(&claim("d2")).await.unwrap();
    let in_use = store.seals_in_use().await.unwrap();
    assert_eq!(in_use, [("1".to_owned(), 0, 0), ("2".to_owned(), 1, 0)]);
}
