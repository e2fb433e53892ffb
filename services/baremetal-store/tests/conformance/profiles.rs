//! Hypervisor profiles, and nodes that are joining or leaving an OpenStack.

use std::sync::Arc;

use baremetal_core::{EarlierReport, Hypervisor, JoinState, Node, NodeIdent, Profile, State};
use baremetal_store::{PagePart, Store, StoreError};
use sealing::Keyring;
use serde_json::{Value, json};

use crate::scratch::{at, bare_node, on_both, unfinished};

on_both! { Store:
    a_profile_is_written_found_changed_and_deleted
    a_profile_that_a_rack_names_cannot_be_deleted
    the_secrets_of_a_profile_are_sealed_and_reencrypted
    joining_nodes_are_listed_and_host_names_are_unique
}

fn profile(name: &str) -> Profile {
    let document = json!({
        "name": name, "kind": "cloud-init", "instance_info": {"image_source": "http://i"},
        "settings": {
            "keystone": {"auth_url": "http://k", "username": "nova", "password": "canary-1"},
            "message_bus": {"transport_url": "rabbit://nova:canary-2@bus/"},
        },
    });
    serde_json::from_value(document).unwrap()
}

async fn a_profile_is_written_found_changed_and_deleted(store: Store) {
    assert_eq!(store.find_profile("kvm").await.unwrap(), None);
    store.insert_profile(&profile("kvm"), at(1)).await.unwrap();
    let twice = store.insert_profile(&profile("kvm"), at(1)).await;
    assert!(matches!(twice, Err(StoreError::Duplicate { field: "name", .. })), "{twice:?}");
    let found = store.find_profile("kvm").await.unwrap().unwrap();
    assert_eq!((found.version, found.created_at, found.updated_at), (1, at(1), None));
    assert_eq!(found.profile, profile("kvm"));

    let changed = Profile { description: Some("x".to_owned()), ..profile("kvm") };
    store.update_profile(&changed, 1, at(2)).await.unwrap();
    let late = store.update_profile(&changed, 1, at(3)).await;
    assert!(matches!(late, Err(StoreError::Stale)), "{late:?}");
    store.insert_profile(&profile("a"), at(4)).await.unwrap();
    let all = store.list_profiles_part(1000, PagePart::whole()).await.unwrap().found;
    let all: Vec<_> = all.iter().map(|it| (it.profile.name.as_str(), it.version)).collect();
    assert_eq!(all, [("a", 1), ("kvm", 2)]);

    assert!(matches!(store.delete_profile("kvm", 1).await, Err(StoreError::Stale)));
    store.delete_profile("kvm", 2).await.unwrap();
    assert_eq!(store.find_profile("kvm").await.unwrap(), None);
}

async fn a_profile_that_a_rack_names_cannot_be_deleted(store: Store) {
    let goal = |profile: Value| json!({"goal": {"profile": profile}});
    let missing = store.insert_rack("r1", &goal(json!("kvm"))).await;
    assert!(matches!(missing, Err(StoreError::Stale)), "{missing:?}");
    store.insert_profile(&profile("kvm"), at(1)).await.unwrap();
    store.insert_rack("r1", &json!({})).await.unwrap();
    store.update_rack("r1", &goal(json!("kvm")), 1).await.unwrap();
    let used = store.delete_profile("kvm", 1).await;
    assert!(matches!(used, Err(StoreError::InUse { .. })), "{used:?}");
    store.update_rack("r1", &json!({"goal": null}), 2).await.unwrap();
    store.delete_profile("kvm", 1).await.unwrap();
    let gone = store.update_rack("r1", &goal(json!("kvm")), 3).await;
    assert!(matches!(gone, Err(StoreError::Stale)), "{gone:?}");
}

async fn the_secrets_of_a_profile_are_sealed_and_reencrypted(store: Store) {
    let folder = tempfile::tempdir().unwrap();
    store.insert_profile(&profile("old"), at(0)).await.unwrap();
    let keys = Arc::new(Keyring::open(&folder.path().join("seal.keys"), &[]).unwrap());
    // Secrets that were stored in the clear are sealed when the keys are set.
    let store = store.with_keys(keys.clone()).await.unwrap();
    store.insert_profile(&profile("kvm"), at(1)).await.unwrap();
    let kept = async |name: &str| {
        let found = store.find_profile(name).await.unwrap().unwrap().profile;
        let text = serde_json::to_string(&found).unwrap();
        assert!(!text.contains("canary"), "{text}");
        assert_eq!(store.secrets().with_profile(&found).unwrap(), profile(name));
        (found, text)
    };
    kept("old").await;
    let (sealed, before) = kept("kvm").await;
    let old = keys.keys().current().to_owned();
    assert_eq!(store.seals_in_use().await.unwrap(), [(old.clone(), 2)]);
    // A secret that was sealed for one profile cannot be unsealed in another.
    let stolen = Profile { name: "other".parse().unwrap(), ..sealed };
    assert!(store.secrets().with_profile(&stolen).is_err());

    let new = keys.rotate().unwrap();
    store.reseal().await.unwrap();
    assert_ne!(kept("kvm").await.1, before);
    let mut in_use = store.seals_in_use().await.unwrap();
    in_use.sort_by_key(|(_, rows)| *rows);
    assert_eq!(in_use, [(old, 0), (new, 2)]);
}

async fn joining_nodes_are_listed_and_host_names_are_unique(store: Store) {
    let hypervisor = |host: &str, state| Hypervisor {
        profile: "kvm".to_owned(),
        host: host.to_owned(),
        availability_zone: None,
        aggregate: Some("a".to_owned()),
        limits: baremetal_core::JoinLimits::default(),
        state,
        since: at(3),
        before: EarlierReport::At(at(2)),
        id: Some("u".to_owned()),
    };
    let node = |host, join, state| Node {
        provision_state: state,
        hypervisor: Some(hypervisor(host, join)),
        ..bare_node()
    };
    let joining = node("h1", JoinState::AwaitingProvider, State::Active);
    store.insert_node(&joining).await.unwrap();
    store.insert_node(&node("h2", JoinState::Installing, State::Deploying)).await.unwrap();
    store.insert_node(&node("h3", JoinState::Joined, State::Active)).await.unwrap();
    let leaving = node("h4", JoinState::Leaving, State::Available);
    store.insert_node(&leaving).await.unwrap();
    store.insert_node(&node("h5", JoinState::Leaving, State::Cleaning)).await.unwrap();
    let mut both = [joining.id, leaving.id];
    both.sort();
    assert_eq!(unfinished(&store).await, both);
    let found = store.find_node(&NodeIdent::Id(joining.id)).await.unwrap().unwrap();
    assert_eq!(found.hypervisor, joining.hypervisor);

    let twin = node("h1", JoinState::Installing, State::Available);
    let refused = store.insert_node(&twin).await;
    assert!(matches!(refused, Err(StoreError::Duplicate { field: "host", .. })), "{refused:?}");
    let there = Node { hypervisor: Some(hypervisor("h1", JoinState::Joined)), ..found };
    store.update_node(&there, &[]).await.unwrap();
    assert_eq!(unfinished(&store).await, [leaving.id]);
}
