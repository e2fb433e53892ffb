//! The life of a VM: creation, use, deletion, and possible failures.

use cluster_conductor::{VmError, VmRequestObjects};
use cluster_core::{SnapshotState, Vm, VmPhase};
use cluster_store::VmScope;
use openstack::compute::servers;
use openstack_emulator::{Act, CreateOutcome, End, Kind, Rule};

use crate::given::{VmFixture, session};

#[tokio::test]
async fn a_vm_gets_its_name_and_leaves_nothing_behind() {
    let given = VmFixture::vm(|vm| vm).await;
    assert!(given.store.sealed_user_data(given.id).await.unwrap().is_some());
    let working = given.process();
    let vm = given.until_whole().await;
    given.assert_once();
    assert_eq!(vm.host().as_deref(), Some("dev.example.org"));
    let records = given.of_kind(Kind::Recordset);
    let record = records.iter().find(|it| it.text("type") == "A").unwrap();
    let leads_to: Vec<&str> = record.list("records").iter().filter_map(|it| it.as_str()).collect();
    assert_eq!(leads_to, [vm.public_address.unwrap().to_string()]);

    // Only the digest of the user-data is kept, to recognise the same user-data again.
    assert_eq!(given.store.sealed_user_data(given.id).await.unwrap(), None);
    let noted = vm.user_data.clone().unwrap();
    assert!(!noted.is_kept && !noted.digest.contains(left::canary::USER_DATA));
    let document = format!("{vm:?} {:?}", given.events().await);
    assert!(!document.contains(left::canary::USER_DATA), "{document}");
    assert_eq!(given.reasons().await, ["Built"]);

    given.delete().await;
    given.until_gone().await;
    working.kill().await;
}

#[tokio::test]
async fn a_vm_may_boot_from_a_volume_that_is_deleted_with_it() {
    let given =
        VmFixture::vm(|vm| Vm { root_volume: Some(7), public: None, zone: None, ..vm }).await;
    let working = given.process();
    let vm = given.until_phase(VmPhase::Active).await;
    let volumes = given.of_kind(Kind::Volume);
    assert_eq!((volumes.len(), volumes[0].number("size")), (1, 7));
    assert!(vm.check_snapshot().is_err());
    given.delete().await;
    given.until_gone().await;
    working.kill().await;
}

#[tokio::test]
async fn a_volume_that_cannot_be_created_ends_in_a_reported_failure() {
    let given = VmFixture::vm(|vm| Vm { root_volume: Some(7), ..vm }).await;
    given.cloud.set_fate(CreateOutcome {
        kind: Kind::Volume,
        name: "**".to_owned(),
        after: 0,
        times: None,
        end: End::Error("no space".to_owned()),
    });
    let working = given.process();
    let vm = given.until_phase(VmPhase::Failed).await;
    assert_eq!(vm.problem.unwrap().reason, "BuildFailed");
    assert!(given.reasons().await.contains(&"BuildFailed".to_owned()));
    let asked = given.cloud.count(|call| call.method == "POST" && call.path.ends_with("/volumes"));
    assert_eq!(asked, 3);
    given.delete().await;
    given.until_gone().await;
    working.kill().await;
}

#[tokio::test]
async fn a_server_that_was_deleted_is_reported_and_not_created_again() {
    let given = VmFixture::vm(|vm| vm).await;
    let working = given.process();
    let vm = given.until_whole().await;
    servers::delete(&session(&given.cloud), &vm.server.unwrap().id).await.unwrap();
    given.until_phase(VmPhase::Lost).await;
    assert!(given.reasons().await.contains(&"ServerGone".to_owned()));
    given.delete().await;
    given.until_gone().await;
    assert_eq!(given.cloud.count(|it| it.method == "POST" && it.path.ends_with("/servers")), 1);
    working.kill().await;
}

#[tokio::test]
async fn lost_answers_make_no_duplicates() {
    let given = VmFixture::vm(|vm| vm).await;
    for path in [
        "/network/**/security-groups",
        "/network/**/security-group-rules",
        "/network/**/ports",
        "/network/**/floatingips",
        "/compute/**/servers",
        "/compute/**/action",
        "/dns/**/recordsets",
    ] {
        given.cloud.misbehave(Rule::new("POST", path, Act::LoseAnswer).times(2));
    }
    let working = given.process();
    given.until_whole().await;
    given.assert_once();
    let id = given.snapshot("one").await;
    given.until_snapshot(id, Some(SnapshotState::Active)).await;
    assert_eq!(given.new_images().len(), 1);
    given.cloud.misbehave(Rule::new("DELETE", "/**", Act::LoseAnswer).times(5));
    given.delete_snapshot(id).await;
    given.until_snapshot(id, None).await;
    given.delete().await;
    given.until_gone().await;
    assert_eq!(given.new_images().len(), 0);
    working.kill().await;
}

#[tokio::test]
async fn a_snapshot_outlives_its_vm_and_boots_another_one() {
    let given = VmFixture::vm(|vm| vm).await;
    let working = given.process();
    given.until_whole().await;
    let id = given.snapshot("golden").await;
    let made = given.until_snapshot(id, Some(SnapshotState::Active)).await.unwrap();
    given.delete().await;
    given.until_gone().await;
    let who = cluster_conductor::ObjectUser { project: &given.project, is_admin: false };
    let theirs = VmScope::Person { project: given.project.clone(), user: "u".to_owned() };
    let order = VmRequestObjects {
        who,
        snapshots: &theirs,
        image: "golden",
        flavor: crate::given::FLAVOR,
        network: None,
        is_public: false,
        root_volume: None,
    };
    let found = given.idle_conductor().resolve_vm(order).await.unwrap();
    assert_eq!(Some(found.image.id), made.image);
    // A VM that boots the snapshot can read its content, so another person of the project may not boot it.
    let anothers = VmScope::Person { project: given.project.clone(), user: "v".to_owned() };
    let id_of = made.id.to_string();
    for image in ["golden", &id_of] {
        let order = VmRequestObjects { snapshots: &anothers, image, ..order };
        let refused = given.idle_conductor().resolve_vm(order).await;
        assert!(matches!(refused, Err(VmError::NotOffered { .. })), "{refused:?}");
    }
    given.delete_snapshot(id).await;
    given.until_snapshot(id, None).await;
    assert_eq!(given.new_images().len(), 0);
    working.kill().await;
}
