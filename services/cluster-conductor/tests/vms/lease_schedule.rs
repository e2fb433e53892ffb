//! The end of a VM's lease: warning, switch-off, snapshot and deletion, or undoing.

use cluster_core::{SnapshotState, VmPhase};
use jiff::{SignedDuration, Timestamp};
use lease::Terms;
use notices::{Notice, NoticesConfig, OutboxSender};
use openstack_emulator::{CreateOutcome, End, Kind};
use serde_json::json;

use crate::given::{VmFixture, lent, schedule};

#[tokio::test]
async fn a_lease_that_is_not_extended_goes_through_all_stages() {
    let mut given = VmFixture::vm(|vm| lent(vm, 4)).await;
    given.settings.vms.schedule = schedule("4s");
    given.settings.vms.keep_copies = SignedDuration::from_secs(2);
    let working = given.process();
    given.until_whole().await;
    let vm = given.until(|vm| vm.lease.as_ref().unwrap().taken.copied_at.is_some()).await;
    assert_eq!(vm.phase(), VmPhase::Expired);
    let copy = given.find_snapshot(vm.copy.unwrap()).await.unwrap();
    assert_eq!(copy.state, SnapshotState::Active);
    let reasons = given.reasons().await;
    let schedule: Vec<&str> =
        reasons.iter().map(String::as_str).filter(|it| it.starts_with("Lease")).collect();
    assert_eq!(schedule, ["LeaseEndsSoon", "LeaseEnded"]);
    assert!(!reasons.contains(&"CopySkipped".to_owned()), "{reasons:?}");
    given.until_gone().await;
    // The snapshot is deleted after its time.
    given.until_snapshot(copy.id, None).await;
    assert_eq!(given.new_images().len(), 0);
    working.kill().await;
}

/// Returns the receiver and the event of each notice in the outbox.
async fn letters(given: &VmFixture) -> Vec<(String, String)> {
    let outbox = given.store.outbox();
    let due = outbox.due(Timestamp::MAX, SignedDuration::ZERO, 100).await.unwrap();
    let read = |body: &str| serde_json::from_str::<Notice>(body).unwrap();
    due.into_iter().map(|it| (it.letter.receiver, read(&it.letter.body).event)).collect()
}

#[tokio::test]
async fn the_contact_and_the_webhook_are_notified_of_each_stage() {
    let mut given = VmFixture::vm(|vm| {
        let notify = Some("ann@example.org".parse().unwrap());
        cluster_core::Vm { notify, ..lent(vm, 3) }
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "hush\n").unwrap();
    let config: NoticesConfig = serde_json::from_value(json!({
        "webhook": {"url": "https://hooks.example.org/", "secret_file": secret},
        "mail": {"host": "mail.example.org", "from": "bedplate@example.org"},
    }))
    .unwrap();
    given.settings.lending.addressees =
        OutboxSender::new(&config, Timestamp::now).unwrap().addressees();
    given.settings.vms.schedule = schedule("2s");
    let working = given.process();
    // The notices are written with the stage itself.
    given.until(|vm| vm.lease.as_ref().unwrap().taken.warned.is_some()).await;
    let to_both = |event: &str| {
        ["webhook", "mail:ann@example.org"].map(|to| (to.to_owned(), event.to_owned()))
    };
    assert_eq!(letters(&given).await[..2], to_both("lease.ends"));
    given.until_gone().await;
    let rungs = ["lease.ends", "lease.ended", "lease.deletion_near", "lease.deleted"];
    assert_eq!(letters(&given).await, rungs.map(to_both).concat());
    working.kill().await;
}

#[tokio::test]
async fn undoing_the_end_starts_the_vm_and_deletes_the_snapshot() {
    let given = VmFixture::vm(|vm| lent(vm, 3)).await;
    let working = given.process();
    let vm = given.until(|vm| vm.lease.as_ref().unwrap().taken.copied_at.is_some()).await;
    let copy = vm.copy.unwrap();
    let schedule = given.settings.vms.schedule.clone();
    given
        .change(|mut vm| {
            let lease = vm.lease.take().unwrap();
            vm.lease =
                Some(lease.undone("u", &schedule, Terms::default(), Timestamp::now()).unwrap());
            vm
        })
        .await;
    let vm = given.until_phase(VmPhase::Active).await;
    assert_eq!(vm.copy, None);
    given.until_snapshot(copy, None).await;
    assert_eq!(given.new_images().len(), 0);
    given.delete().await;
    given.until_gone().await;
    working.kill().await;
}

#[tokio::test]
async fn a_snapshot_that_fails_is_reported_once_and_tried_again() {
    let given = VmFixture::vm(|vm| lent(vm, 3)).await;
    let working = given.process();
    given.until_whole().await;
    given.cloud.set_fate(CreateOutcome {
        kind: Kind::Image,
        name: "**".to_owned(),
        after: 0,
        times: Some(2),
        end: End::Error("no space".to_owned()),
    });
    let vm = given.until(|vm| vm.lease.as_ref().unwrap().taken.copied_at.is_some()).await;
    let reasons = given.reasons().await;
    assert_eq!(reasons.iter().filter(|it| *it == "SnapshotFailed").count(), 1, "{reasons:?}");
    assert_eq!(given.find_snapshot(vm.copy.unwrap()).await.unwrap().state, SnapshotState::Active);
    assert_eq!(given.new_images().len(), 1);
    working.kill().await;
}
