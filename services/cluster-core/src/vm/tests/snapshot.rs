//! Snapshots: their use of limits, their images, and how long they are kept.

use super::*;

const STATES: [SnapshotState; 5] = [
    SnapshotState::Wanted,
    SnapshotState::Making,
    SnapshotState::Active,
    SnapshotState::Failed,
    SnapshotState::Leaving,
];

#[test]
fn a_snapshot_uses_disk_until_it_failed_for_good() {
    for state in STATES {
        for why in [SnapshotOrigin::Asked, SnapshotOrigin::LeaseEnded] {
            let of = Snapshot { state, why, ..copy() };
            let is_over = state == SnapshotState::Failed && why == SnapshotOrigin::Asked;
            let gib = if is_over { 0 } else { SMALL.disk_gib };
            assert_eq!(of.takes(), Amounts::from_iter([(Resource::DiskGib, gib)]), "{of:?}");
        }
    }
}

#[test]
fn a_vm_boots_from_a_snapshot_whose_image_is_active() {
    let image = VmImage {
        id: "i".to_owned(),
        name: "one".to_owned(),
        told: UserDataFormat::CloudInit,
        min_disk_gib: SMALL.disk_gib,
        min_ram_mib: 0,
    };
    for state in STATES {
        let of = Snapshot { state, image: Some("i".to_owned()), ..copy() };
        let want = (state == SnapshotState::Active).then(|| image.clone());
        assert_eq!(of.bootable(), want, "{state:?}");
        assert_eq!(Snapshot { image: None, ..of }.bootable(), None);
    }
}

#[test]
fn states_and_formats_have_the_same_names_in_the_api_and_in_json() {
    for state in STATES {
        assert_eq!(serde_json::to_string(&state).unwrap(), format!("{:?}", state.as_str()));
    }
    for format in [UserDataFormat::CloudInit, UserDataFormat::Ignition] {
        assert_eq!(serde_json::to_string(&format).unwrap(), format!("{:?}", format.as_str()));
    }
}

#[test]
fn a_snapshot_can_be_made_of_a_server_that_exists() {
    let lease = Lease::new(at(-900), Length::from_secs(800).unwrap());
    let lease = lease.with_stage_taken(&LeaseStage::SwitchOff { deleted_at: at(900) }, at(0));
    let expired = |is| Vm { lease: Some(lease.clone()), ..built(is) };
    let state = |phase| Err(VmRefusal::State(phase));
    let rows = [
        (built(ServerState::On), Ok(())),
        (built(ServerState::Off), Ok(())),
        (built(ServerState::Changing), Ok(())),
        (expired(ServerState::Off), Ok(())),
        (expired(broken()), state(VmPhase::Expired)),
        (built(ServerState::Building), state(VmPhase::Busy)),
        (built(broken()), state(VmPhase::Failed)),
        (built(ServerState::Leaving), state(VmPhase::Lost)),
        (asked(), state(VmPhase::Building)),
        (
            built(ServerState::On).with_errand(VmActionKind::Stop, at(5)).unwrap(),
            state(VmPhase::Stopping),
        ),
        (Vm { root_volume: Some(30), ..built(ServerState::On) }, Err(VmRefusal::Volume)),
        (built(ServerState::On).to_be_deleted(at(5)), Err(VmRefusal::Deleting)),
    ];
    for (vm, want) in rows {
        assert_eq!(vm.check_snapshot(), want, "{vm:?}");
    }
}

#[test]
fn a_request_without_an_answer_can_be_carried_out_for_a_minute() {
    let vm = built(ServerState::On);
    let asked = Snapshot { state: SnapshotState::Making, asked_at: Some(at(0)), ..copy() };
    assert_eq!(snapped(&asked, &[], Some(&vm), 59).2, "rest 1 s");
    assert_eq!(snapped(&asked, &[], Some(&vm), 60).2, "request an image of s");
    assert_eq!(snapped(&asked.leaving(), &[], None, 59).2, "rest 1 s");
    assert_eq!(snapped(&asked.leaving(), &[], None, 60).2, "forget");
}

#[test]
fn a_snapshot_stays_active_while_its_image_can_be_used() {
    let vm = built(ServerState::On);
    let made = Snapshot { state: SnapshotState::Active, image: Some("i".to_owned()), ..copy() };
    for usable in [Some(Ok(())), None] {
        let (it, events, next) = snapped(&made, &[("i", usable)], Some(&vm), 2);
        assert_eq!((&it, events.len(), next.as_str()), (&made, 0, "rest"));
    }
}

#[test]
fn the_snapshot_of_an_ended_lease_is_kept_for_some_time_after_its_vm() {
    let image = [("i", Some(Ok(())))];
    let of = |state, why| Snapshot { state, why, image: Some("i".to_owned()), ..copy() };
    let made = of(SnapshotState::Active, SnapshotOrigin::LeaseEnded);
    let vm = Vm { copy: Some(made.id), ..built(ServerState::Off) };
    let gone = vm.to_be_deleted(at(100));
    assert_eq!(snapped(&made, &image, Some(&vm), 100).0, made);
    for vm in [Some(&gone), None] {
        let kept = snapped(&made, &image, vm, 100).0;
        assert_eq!(kept, Snapshot { keep_until: Some(at(1100)), ..made.clone() });
        assert_eq!(snapped(&kept, &image, vm, 1099).0, kept);
        assert_eq!(snapped(&kept, &image, vm, 1100).0, kept.leaving());
    }
    // The owner deletes a snapshot that was requested.
    let asked = of(SnapshotState::Active, SnapshotOrigin::Asked);
    assert_eq!(snapped(&asked, &image, None, 100).0, asked);
    let making = of(SnapshotState::Making, SnapshotOrigin::LeaseEnded);
    assert_eq!(snapped(&making, &[("i", None)], None, 100).0, making);
}

#[test]
fn a_failed_snapshot_of_an_ended_lease_is_deleted_when_its_vm_is() {
    let of = |why| Snapshot { state: SnapshotState::Failed, why, ..copy() };
    let failed = of(SnapshotOrigin::LeaseEnded);
    let going = Vm { copy: Some(failed.id), ..built(ServerState::Off) }.to_be_deleted(at(1));
    let rows = [
        (failed.clone(), Some(&going), SnapshotState::Failed),
        (failed, None, SnapshotState::Leaving),
        (of(SnapshotOrigin::Asked), None, SnapshotState::Failed),
    ];
    for (of, vm, state) in rows {
        assert_eq!(snapped(&of, &[], vm, 100).0.state, state, "{of:?}");
    }
}
