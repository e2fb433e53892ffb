//! Secrets are sealed in the database, and stay readable while keys are rotated.

use std::path::Path;
use std::sync::Arc;

use baremetal_core::{
    DeployStep, DeployTemplate, Driver, InspectionRule, Interface, Node, NodeIdent, NodeUuid,
    RequestedStep, RuleAction, Runbook, RunbookStep, Step, StepKind, StepName, StepRunner, Stored,
    Task, VolumeTarget, WantedSteps, Work, WorkUuid,
};
use baremetal_store::{ReencryptionResult, Store, StoreError};
use sealing::{KeyFileError, Keyring, SealingKeys};
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::scratch::{at, on_both};

on_both! { Store:
    secrets_are_sealed_and_can_be_unsealed
    secrets_in_the_clear_are_sealed_at_the_first_start
    after_a_rotation_and_reencryption_the_old_key_can_be_retired
    a_write_of_a_node_read_before_a_rotation_is_refused
    a_missing_key_keeps_the_store_from_opening
    another_key_with_the_same_id_keeps_the_store_from_opening
    a_rack_keeps_its_secrets_sealed
    a_volume_keeps_its_secrets_sealed
    a_runbook_keeps_its_secrets_sealed
    a_deploy_template_keeps_its_secrets_sealed
    the_steps_of_a_node_keep_their_secrets_sealed
    an_inspection_rule_keeps_its_secrets_sealed
    processes_that_share_a_key_file_follow_a_rotation
}

/// Opens or creates the key file of a test.
pub(crate) fn keyring(folder: &Path) -> Arc<Keyring> {
    Arc::new(Keyring::open(&folder.join("seal.keys"), &[]).unwrap())
}

fn node(number: usize) -> Node {
    let mut node = Node::new(NodeUuid::new_v4(), Driver::Redfish, at(0));
    let info = json!({
        "redfish_address": format!("https://{}", node.id), "redfish_password": format!("canary-{number}"),
        "nested": {"api_token": "canary"},
    });
    node.driver_info = info.as_object().unwrap().clone();
    let info = json!({"image_source": "http://i", "configdrive": {"user_data": "canary"}});
    node.instance_info = info.as_object().unwrap().clone();
    node
}

/// Formats the stored objects with secrets as they are.
fn infos(node: &Node) -> String {
    format!("{:?} {:?}", node.driver_info, node.instance_info)
}

fn password(store: &Store, node: &Node) -> String {
    let secret = store.secrets().text(node, "redfish_password").unwrap().unwrap();
    secret.expose_secret().to_owned()
}

async fn read(store: &Store, id: NodeUuid) -> Node {
    store.find_node(&NodeIdent::Id(id)).await.unwrap().unwrap()
}

/// Adds nodes with passwords, and returns the passwords.
async fn fill(store: &Store, count: usize) -> Vec<(NodeUuid, String)> {
    let mut known = Vec::new();
    for number in 0..count {
        let node = node(number);
        store.insert_node(&node).await.unwrap();
        known.push((node.id, format!("canary-{number}")));
    }
    known
}

async fn opens(store: &Store, known: &[(NodeUuid, String)]) {
    for (id, secret) in known {
        assert_eq!(password(store, &read(store, *id).await), *secret);
    }
}

async fn secrets_are_sealed_and_can_be_unsealed(store: Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = store.with_keys(keyring(folder.path())).await.unwrap();
    let new = node(1);
    store.insert_node(&new).await.unwrap();
    let found = read(&store, new.id).await;
    assert!(!infos(&found).contains("canary"), "{}", infos(&found));
    assert_eq!(found.driver_info["redfish_address"], new.driver_info["redfish_address"]);
    assert_eq!(password(&store, &found), "canary-1");
    assert_eq!(store.secrets().with_instance(&found).unwrap().instance_info, new.instance_info);

    let mut changed = found.clone();
    changed.driver_info.insert("redfish_password".to_owned(), json!("canary-2"));
    let written = store.update_node(&changed, &[]).await.unwrap();
    assert_eq!(written, read(&store, new.id).await);
    assert_eq!(password(&store, &written), "canary-2");
    // An unchanged secret was not sealed again.
    assert_eq!(written.driver_info["nested"], found.driver_info["nested"]);
}

async fn secrets_in_the_clear_are_sealed_at_the_first_start(store: Store) {
    let folder = tempfile::tempdir().unwrap();
    let known = fill(&store, 120).await;
    let bare = crate::scratch::bare_node();
    store.insert_node(&bare).await.unwrap();
    assert!(infos(&read(&store, known[7].0).await).contains("canary"));

    let sealed = store.with_keys(keyring(folder.path())).await.unwrap();
    let found = read(&sealed, known[7].0).await;
    assert!(!infos(&found).contains("canary"));
    assert_eq!((found.version, found.updated_at), (2, None));
    opens(&sealed, &known).await;
    let id = sealed.keyring().unwrap().keys().current().to_owned();
    assert_eq!(sealed.seals_in_use().await.unwrap(), [(id, 120)]);
    // The second time nothing is left to seal.
    let again = sealed.with_keys(keyring(folder.path())).await.unwrap();
    assert_eq!(read(&again, known[7].0).await, found);
    assert_eq!(read(&again, bare.id).await.version, 1);
}

async fn after_a_rotation_and_reencryption_the_old_key_can_be_retired(store: Store) {
    let folder = tempfile::tempdir().unwrap();
    let ring = keyring(folder.path());
    let store = store.with_keys(ring.clone()).await.unwrap();
    let known = fill(&store, 130).await;
    let (old, new) = (ring.keys().current().to_owned(), ring.rotate().unwrap());
    assert!(matches!(store.forget_seal(&old).await, Err(StoreError::InUse { .. })));
    // A node that is written meanwhile is sealed with the new key.
    let one = read(&store, known[0].0).await;
    store.update_node(&one, &[]).await.unwrap();
    assert_eq!(in_use(&store).await, sorted([(old.clone(), 129), (new.clone(), 1)]));

    assert_eq!(store.reseal().await.unwrap(), ReencryptionResult { done: 129, broken: 0 });
    assert_eq!(store.reseal().await.unwrap(), ReencryptionResult::default());
    store.forget_seal(&old).await.unwrap();
    ring.retire(&old).unwrap();
    opens(&store, &known).await;
    assert_eq!(in_use(&store).await, [(new, 130)]);
}

async fn a_write_of_a_node_read_before_a_rotation_is_refused(store: Store) {
    let folder = tempfile::tempdir().unwrap();
    let ring = keyring(folder.path());
    let store = store.with_keys(ring.clone()).await.unwrap();
    let known = fill(&store, 1).await;
    let before = read(&store, known[0].0).await;
    ring.rotate().unwrap();
    store.reseal().await.unwrap();
    assert!(matches!(store.update_node(&before, &[]).await, Err(StoreError::Stale)));
    opens(&store, &known).await;
}

async fn a_missing_key_keeps_the_store_from_opening(store: Store) {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let sealed = store.clone().with_keys(keyring(one.path())).await.unwrap();
    let ring = sealed.keyring().unwrap().clone();
    let id = ring.rotate().unwrap();
    fill(&sealed, 1).await;
    let refused = store.clone().with_keys(keyring(other.path())).await.err().unwrap();
    let StoreError::Corrupt { source, .. } = refused else { panic!("{refused:?}") };
    assert!(source.to_string().contains(&format!("does not hold key {id}")), "{source}");
    // A missing key file is not replaced by a new one.
    let known = store.known_keys().await.unwrap();
    let gone = other.path().join("gone.keys");
    let refused = Keyring::open(&gone, &known).unwrap_err();
    assert!(matches!(refused, KeyFileError::Missing { .. }), "{refused}");
    assert!(!gone.exists());
}

/// Makes a key with a numbered id, as earlier versions did.
fn numbered(id: &str) -> Arc<Keyring> {
    let made = SealingKeys::generate().unwrap();
    let line = format!("{id}:{}", made.split_once(':').unwrap().1);
    SealingKeys::parse(&line).unwrap().into()
}

async fn another_key_with_the_same_id_keeps_the_store_from_opening(store: Store) {
    let (ours, other) = (numbered("1"), numbered("1"));
    // A key that has sealed nothing yet may be replaced by another key with the same id.
    store.clone().with_keys(other.clone()).await.unwrap();
    let sealed = store.clone().with_keys(ours.clone()).await.unwrap();
    let known = fill(&sealed, 2).await;
    let canary = store.known_keys().await.unwrap()[0].canary.clone().unwrap();
    assert!(canary.starts_with("sealed:v1:1:"), "{canary}");
    let refused = store.clone().with_keys(other).await.err().unwrap();
    let StoreError::Corrupt { source, .. } = refused else { panic!("{refused:?}") };
    assert!(source.to_string().contains("the key 1 in the file is not the key 1"), "{source}");
    opens(&store.with_keys(ours).await.unwrap(), &known).await;
}

async fn in_use(store: &Store) -> Vec<(String, u64)> {
    sorted(store.seals_in_use().await.unwrap())
}

fn sorted(keys: impl Into<Vec<(String, u64)>>) -> Vec<(String, u64)> {
    let mut keys = keys.into();
    keys.sort();
    keys
}

async fn a_rack_keeps_its_secrets_sealed(store: Store) {
    let folder = tempfile::tempdir().unwrap();
    let ring = keyring(folder.path());
    let store = store.with_keys(ring.clone()).await.unwrap();
    let plain = json!({"goal": {"instance_info": {"configdrive": {"user_data": "canary"}}}});
    store.insert_rack("r", &plain).await.unwrap();
    ring.rotate().unwrap();
    assert_eq!(store.reseal().await.unwrap(), ReencryptionResult { done: 1, broken: 0 });
    let (mut found, version) = store.find_rack("r").await.unwrap().unwrap();
    assert!(!found.to_string().contains("canary") && version == 2, "{found}");
    let Value::Object(document) = &mut found else { panic!("{found}") };
    store.secrets().open_rack("r", document).unwrap();
    assert_eq!(found, plain);
}

async fn a_volume_keeps_its_secrets_sealed(store: Store) {
    let folder = tempfile::tempdir().unwrap();
    let ring = keyring(folder.path());
    let store = store.with_keys(ring.clone()).await.unwrap();
    let owner = node(1);
    store.insert_node(&owner).await.unwrap();
    let properties = json!({"auth_password": "canary", "target_portal": "192.0.2.40:3260"});
    let properties = properties.as_object().unwrap().clone();
    // Only the properties of a volume are secret; the notes stay readable.
    let extra = json!({"password": "of the rack door"}).as_object().unwrap().clone();
    let target = VolumeTarget { node: owner.id, properties, extra, ..VolumeTarget::default() };
    let target = Stored::new(Uuid::new_v4(), target, at(0));
    store.insert_resource(&target).await.unwrap();
    let read = async || {
        let found = store.find_resource::<VolumeTarget>(target.id).await.unwrap().unwrap();
        assert_eq!(found.content.extra, target.content.extra);
        assert_eq!(found.content.properties["target_portal"], "192.0.2.40:3260");
        let Value::String(sealed) = &found.content.properties["auth_password"] else {
            panic!("{found:?}")
        };
        assert!(!sealed.contains("canary"), "{sealed}");
        (found.version, sealed.clone())
    };
    let (version, before) = read().await;
    ring.rotate().unwrap();
    assert_eq!(store.reseal().await.unwrap(), ReencryptionResult { done: 2, broken: 0 });
    let (after, sealed) = read().await;
    assert!(after == version && sealed != before, "{sealed}");
    let in_use = store.seals_in_use().await.unwrap();
    assert_eq!(in_use.iter().map(|(_, rows)| rows).sum::<u64>(), 2, "{in_use:?}");
    // A volume without passwords needs no key.
    let plain = VolumeTarget { node: owner.id, boot_index: 1, ..VolumeTarget::default() };
    store.insert_resource(&Stored::new(Uuid::new_v4(), plain, at(0))).await.unwrap();
    let in_use = store.seals_in_use().await.unwrap();
    assert_eq!(in_use.iter().map(|(_, rows)| rows).sum::<u64>(), 2, "{in_use:?}");
}

/// A step with a secret argument.
fn step() -> RequestedStep {
    let args = json!({"settings": [{"password": "canary"}]}).as_object().unwrap().clone();
    let name = StepName { interface: Interface::Bios, step: "apply".to_owned() };
    RequestedStep { name, args, children: None }
}

async fn a_runbook_keeps_its_secrets_sealed(store: Store) {
    let folder = tempfile::tempdir().unwrap();
    let ring = keyring(folder.path());
    let store = store.with_keys(ring.clone()).await.unwrap();
    let step = RunbookStep { step: step(), order: 1 };
    let content = Runbook { name: "r".to_owned(), steps: vec![step], ..Runbook::default() };
    let it = Stored::new(Uuid::new_v4(), content.clone(), at(0));
    store.insert_resource(&it).await.unwrap();
    ring.rotate().unwrap();
    assert_eq!(store.reseal().await.unwrap(), ReencryptionResult { done: 1, broken: 0 });
    let found = store.find_resource::<Runbook>(it.id).await.unwrap().unwrap();
    assert!(!format!("{found:?}").contains("canary"), "{found:?}");
    assert_eq!(store.secrets().with_runbook(&found).unwrap(), content);
}

async fn a_deploy_template_keeps_its_secrets_sealed(store: Store) {
    let folder = tempfile::tempdir().unwrap();
    let ring = keyring(folder.path());
    let store = store.with_keys(ring.clone()).await.unwrap();
    let (name, steps) = ("CUSTOM_A".to_owned(), vec![DeployStep { step: step(), priority: 9 }]);
    let content = DeployTemplate { name, steps, ..DeployTemplate::default() };
    let it = Stored::new(Uuid::new_v4(), content.clone(), at(0));
    store.insert_resource(&it).await.unwrap();
    ring.rotate().unwrap();
    assert_eq!(store.reseal().await.unwrap(), ReencryptionResult { done: 1, broken: 0 });
    let found = store.find_resource::<DeployTemplate>(it.id).await.unwrap().unwrap();
    assert!(!format!("{found:?}").contains("canary"), "{found:?}");
    assert_eq!(store.secrets().with_template(&found).unwrap(), content);
}

async fn the_steps_of_a_node_keep_their_secrets_sealed(store: Store) {
    let folder = tempfile::tempdir().unwrap();
    let ring = keyring(folder.path());
    let store = store.with_keys(ring.clone()).await.unwrap();
    let RequestedStep { name, args, .. } = step();
    let (kind, runner) = (StepKind::Service, StepRunner::Agent);
    let planned =
        Task::Step(Step { kind, runner, name, args, priority: 0, reboots: false, children: None });
    let steps = WantedSteps::Service(vec![step()]);
    let work = Work { steps, ..Work::new(WorkUuid::new_v4(), vec![planned], at(0)) };
    let node = Node { work: Some(work), ..Node::new(NodeUuid::new_v4(), Driver::Ipmi, at(0)) };
    store.insert_node(&node).await.unwrap();
    ring.rotate().unwrap();
    assert_eq!(store.reseal().await.unwrap(), ReencryptionResult { done: 1, broken: 0 });
    let found = read(&store, node.id).await;
    let sealed: Vec<String> = found.step_args().map(|it| it["settings"].to_string()).collect();
    assert!(sealed.len() == 2 && !sealed.concat().contains("canary"), "{sealed:?}");
    assert_eq!(store.secrets().with_steps(&found).unwrap().work, node.work);
}

/// A sensitive rule is sealed as a whole, so that a secret of any name is.
async fn an_inspection_rule_keeps_its_secrets_sealed(store: Store) {
    let folder = tempfile::tempdir().unwrap();
    let ring = keyring(folder.path());
    let store = store.with_keys(ring.clone()).await.unwrap();
    let rule = |sensitive: bool, value: Value| {
        let action = json!({"op": "set-attribute", "args": {"path": "extra/a", "value": value}});
        let actions = vec![serde_json::from_value::<RuleAction>(action).unwrap()];
        let content = InspectionRule { sensitive, actions, ..InspectionRule::default() };
        Stored::new(Uuid::new_v4(), content, at(0))
    };
    let open = rule(false, json!([{"password": "canary"}]));
    let sensitive = rule(true, json!("canary"));
    for it in [&open, &sensitive] {
        store.insert_resource(it).await.unwrap();
    }
    ring.rotate().unwrap();
    assert_eq!(store.reseal().await.unwrap(), ReencryptionResult { done: 2, broken: 0 });
    for it in [open, sensitive] {
        let found = store.find_resource::<InspectionRule>(it.id).await.unwrap().unwrap();
        assert!(!format!("{found:?}").contains("canary"), "{found:?}");
        assert_eq!(found.content.actions.is_empty(), it.content.sensitive);
        let foreign = Stored { id: Uuid::new_v4(), ..found.clone() };
        assert!(store.secrets().with_rule(&foreign).is_err(), "the seal is for one rule");
        assert_eq!(store.secrets().with_rule(&found).unwrap().content, it.content);
    }
}

async fn processes_that_share_a_key_file_follow_a_rotation(store: Store) {
    let folder = tempfile::tempdir().unwrap();
    let one = store.clone().with_keys(keyring(folder.path())).await.unwrap();
    // Another process reads its own copy of the keys from the same file.
    let two = store.with_keys(keyring(folder.path())).await.unwrap();
    let known = fill(&two, 3).await;
    let old = one.keyring().unwrap().keys().current().to_owned();
    let new = one.keyring().unwrap().rotate().unwrap();
    assert_eq!(one.reseal().await.unwrap(), ReencryptionResult { done: 3, broken: 0 });
    opens(&two, &known).await;
    fill(&two, 1).await;
    assert_eq!(in_use(&two).await, sorted([(old, 0), (new, 4)]));
}
