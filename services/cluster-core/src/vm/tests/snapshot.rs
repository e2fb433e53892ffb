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
        user_data_format: UserDataFormat::CloudInit,
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
            built(ServerState::On).with_action(VmActionKind::Stop, at(5)).unwrap(),
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

/// Returns the snapshot and the events after a decision, and describes what is done next.
fn applied(
    of: &Snapshot,
    decided: Decision<RecordChange<SnapshotUpdate>, SnapshotAction>,
) -> (Snapshot, Vec<VmEvent>, String) {
    let Decision { change, actions, next_turn, .. } = decided;
    let actions = actions.iter().map(|action| match action {
        SnapshotAction::Request { server } => format!("request an image of {server}"),
        SnapshotAction::DeleteImage(image) => format!("delete {image}"),
    });
    let actions: Vec<String> = actions.collect();
    let next = match next_turn {
        _ if change == Some(RecordChange::Delete) => "forget".to_owned(),
        _ if !actions.is_empty() => actions.join(", "),
        Requeue::After(pause) if pause == PAUSES.soon => "look again".to_owned(),
        Requeue::After(pause) if pause == PAUSES.look_every => "rest".to_owned(),
        Requeue::After(pause) => format!("rest {} s", pause.as_secs()),
        Requeue::Now | Requeue::OnChange => format!("{next_turn:?}"),
    };
    match change {
        Some(RecordChange::Write(SnapshotUpdate { snapshot, events })) => (snapshot, events, next),
        Some(RecordChange::Delete) | None => (of.clone(), Vec::new(), next),
    }
}

fn snapped(
    of: &Snapshot,
    images: &[(&str, Option<Result<(), String>>)],
    vm: Option<&Vm>,
    now: i64,
) -> (Snapshot, Vec<VmEvent>, String) {
    let seen = |(id, usable): &(&str, Option<Result<(), String>>)| SnapshotImage {
        id: (*id).to_owned(),
        usable: usable.clone(),
    };
    let images = images.iter().map(seen).collect();
    let seen = SnapshotObservation::Seen { images, vm: vm.cloned().map(Box::new) };
    applied(of, plan_snapshot(of, &seen, &snapshot_rules(), at(now)))
}

#[test]
fn a_snapshot_is_made_once_its_image_is_active_and_a_failure_has_its_reason() {
    let vm = built(ServerState::On);
    let (asked, _, next) = snapped(&copy(), &[], Some(&vm), 1);
    assert_eq!((asked.state, next.as_str()), (SnapshotState::Making, "request an image of s"));
    // The answer of the create request was lost: the image is found by its name.
    let (found, events, _) = snapped(&asked, &[("i", None)], Some(&vm), 2);
    assert_eq!(
        (found.image.as_deref(), found.state, events.len()),
        (Some("i"), SnapshotState::Making, 0)
    );
    let (made, events, _) = snapped(&found, &[("i", Some(Ok(())))], Some(&vm), 3);
    assert_eq!((made.state, events[0].reason.as_str()), (SnapshotState::Active, "SnapshotMade"));
    let (failed, events, next) =
        snapped(&found, &[("i", Some(Err("killed".to_owned())))], Some(&vm), 3);
    assert_eq!((failed.state, failed.reason.as_deref()), (SnapshotState::Failed, Some("killed")));
    assert_eq!(next, "delete i");
    assert!(events[0].message.ends_with("killed"), "{events:?}");
    assert_eq!(failed.takes()[Resource::DiskGib], 0);
    let (_, _, next) = snapped(&failed, &[], Some(&vm), 1_000_000);
    assert_eq!(next, "rest", "nobody asked for it again");
}

#[test]
fn a_snapshot_without_an_answer_is_requested_again_and_a_second_image_is_deleted() {
    let vm = built(ServerState::On);
    let asked = snapped(&copy(), &[], Some(&vm), 1).0;
    assert_eq!(snapped(&asked, &[], Some(&vm), 30).2, "rest 31 s");
    let (again, _, next) = snapped(&asked, &[], Some(&vm), 62);
    let request = "request an image of s";
    assert_eq!((again.times, next.as_str()), (0, request), "who is killed has not asked");
    // The snapshot fails after three requests without an answer.
    let mut tried = asked.clone();
    for at in [100, 200] {
        tried = snapped(&tried.unanswered(), &[], Some(&vm), at).0;
        assert_eq!(tried.state, SnapshotState::Making);
    }
    let (failed, events, _) = snapped(&tried.unanswered(), &[], Some(&vm), 300);
    assert_eq!((failed.state, events.len()), (SnapshotState::Failed, 1));
    let both = [("i", None), ("j", None)];
    let (kept, _, next) = snapped(&again, &both, Some(&vm), 63);
    assert_eq!((kept.image.as_deref(), next.as_str()), (Some("i"), "delete j"));
}

#[test]
fn the_snapshot_of_an_ended_lease_is_retried_kept_and_dropped_if_undone() {
    let copy = Snapshot { why: SnapshotOrigin::LeaseEnded, ..copy() };
    let vm = Vm { copy: Some(copy.id), ..built(ServerState::Off) };
    let (failed, events) = copy.failed("no space", at(10));
    assert_eq!(events.len(), 1);
    assert_eq!(snapped(&failed, &[], Some(&vm), 11).2, "rest 1 s");
    let again = snapped(&failed, &[], Some(&vm), 12).0;
    assert_eq!(again.state, SnapshotState::Wanted);
    let (twice, events) = again.failed("no space", at(12));
    assert_eq!((events.len(), snapped(&twice, &[], Some(&vm), 13).2.as_str()), (0, "rest 3 s"));

    let made = Snapshot { state: SnapshotState::Active, image: Some("i".to_owned()), ..copy };
    let image = [("i", Some(Ok(())))];
    let kept = snapped(&made, &image, None, 100).0;
    assert_eq!(kept.keep_until, Some(at(1100)));
    assert_eq!(snapped(&kept, &image, None, 1100).0.state, SnapshotState::Leaving);
    let undone = Vm { copy: None, ..vm };
    assert_eq!(snapped(&made, &image, Some(&undone), 100).0.state, SnapshotState::Leaving);
}

#[test]
fn a_snapshot_that_is_made_forgets_its_failures() {
    let asked = Snapshot { why: SnapshotOrigin::LeaseEnded, times: 2, ..copy() };
    let (failed, _) = asked.failed("no space", at(10));
    assert_eq!((failed.times, failed.failures), (0, 1));
    let vm = Vm { copy: Some(failed.id), ..built(ServerState::On) };
    let again = Snapshot { state: SnapshotState::Wanted, ..failed };
    let made = snapped(&again, &[("i", Some(Ok(())))], Some(&vm), 20).0;
    assert_eq!((made.state, made.made_at), (SnapshotState::Active, Some(at(20))));
    assert_eq!((made.failures, made.failed_at, made.reason), (0, None, None));
}

#[test]
fn a_snapshot_whose_image_disappears_fails_and_names_no_image() {
    let vm = built(ServerState::On);
    for state in [SnapshotState::Making, SnapshotState::Active] {
        let of = Snapshot { state, image: Some("i".to_owned()), ..copy() };
        let (failed, events, _) = snapped(&of, &[], Some(&vm), 20);
        assert_eq!((failed.state, failed.image), (SnapshotState::Failed, None));
        assert_eq!(events.len(), 1);
    }
}

#[test]
fn a_snapshot_is_forgotten_once_no_image_of_it_is_left() {
    let leaving = Snapshot { asked_at: Some(at(0)), ..copy().leaving() };
    let image = [("i", Some(Ok(())))];
    assert_eq!(snapped(&leaving, &image, None, 1).2, "delete i");
    let both = [("i", None), ("j", None)];
    assert_eq!(snapped(&leaving, &both, None, 1).2, "delete i, delete j");
    assert_eq!(snapped(&leaving, &[], None, 1).2, "rest 59 s");
    assert_eq!(snapped(&leaving, &[], None, 61).2, "forget");
}

#[test]
fn a_snapshot_that_cannot_be_observed_rests_as_long_as_the_cloud_asks() {
    let rest = |seen| plan_snapshot(&copy(), &seen, &snapshot_rules(), at(1));
    let unknown =
        |retry_after| rest(SnapshotObservation::Unknown { why: "busy".to_owned(), retry_after });
    let asked = Duration::from_secs(7);
    for (decided, pause, lines) in [
        (rest(SnapshotObservation::NoCloud), PAUSES.look_every, 0),
        (unknown(None), PAUSES.look_every, 1),
        (unknown(Some(asked)), asked, 1),
    ] {
        assert_eq!((decided.next_turn, decided.log.len()), (Requeue::After(pause), lines));
        assert_eq!((decided.change, decided.actions), (None, vec![]));
    }
}

#[test]
fn an_image_is_requested_of_a_server_at_rest_and_of_no_other() {
    let with = |is: ServerState, sent: Option<bool>| {
        let mut vm = built(is);
        vm.action = sent.map(|is_sent| {
            let sent = is_sent.then(|| SentRequest { at: at(1), after: None, times: 1 });
            VmAction { sent, ..VmAction::new(VmActionKind::Stop, ActionOrigin::Owner, at(1)) }
        });
        vm
    };
    let (request, wait) = ("request an image of s", "look again");
    let rows = [
        (with(ServerState::On, None), SnapshotState::Making, request),
        (with(ServerState::Off, None), SnapshotState::Making, request),
        (with(ServerState::Other("PAUSED".to_owned()), None), SnapshotState::Making, request),
        (with(ServerState::On, Some(false)), SnapshotState::Making, request),
        (with(ServerState::On, Some(true)), SnapshotState::Wanted, wait),
        (with(ServerState::Changing, None), SnapshotState::Wanted, wait),
        (with(broken(), None), SnapshotState::Failed, wait),
        (with(ServerState::Leaving, None), SnapshotState::Failed, wait),
        (Vm { server: None, ..built(ServerState::On) }, SnapshotState::Failed, wait),
        (built(ServerState::On).to_be_deleted(at(1)), SnapshotState::Failed, wait),
        (Vm { root_volume: Some(7), ..built(ServerState::On) }, SnapshotState::Failed, wait),
    ];
    for (vm, state, next) in rows {
        let (it, events, then) = snapped(&copy(), &[], Some(&vm), 2);
        assert_eq!((it.state, then.as_str()), (state, next), "{vm:?}");
        assert_eq!(events.len(), usize::from(state == SnapshotState::Failed));
        assert_eq!(it.asked_at, (state == SnapshotState::Making).then(|| at(2)));
    }
    assert_eq!(snapped(&copy(), &[], None, 2).0.state, SnapshotState::Failed);
}

#[test]
fn a_snapshot_whose_image_disappears_or_breaks_has_failed() {
    let vm = built(ServerState::On);
    let of = |state| Snapshot { state, image: Some("i".to_owned()), ..copy() };
    let killed = || Some(Err("killed".to_owned()));
    let (none, other) = (vec![], vec![("j", Some(Ok(())))]);
    let rows = [
        (SnapshotState::Making, none.clone(), "the cloud no longer has its image"),
        (SnapshotState::Making, other.clone(), "the cloud no longer has its image"),
        (SnapshotState::Making, vec![("i", killed())], "killed"),
        (SnapshotState::Active, none, "its image was deleted in the cloud"),
        (SnapshotState::Active, other, "its image was deleted in the cloud"),
        (SnapshotState::Active, vec![("i", killed())], "its image was deleted in the cloud"),
    ];
    for (state, images, why) in rows {
        let (failed, events, _) = snapped(&of(state), &images, Some(&vm), 2);
        assert_eq!((failed.state, failed.reason.as_deref()), (SnapshotState::Failed, Some(why)));
        assert_eq!((failed.failures, events.len()), (1, 1), "{state:?} {images:?}");
    }
    // The images of a failed snapshot are deleted, because nobody can use them.
    let failed = of(SnapshotState::Failed);
    let (forgotten, _, next) = snapped(&failed, &[("i", Some(Ok(())))], Some(&vm), 2);
    assert_eq!((forgotten.image, next.as_str()), (None, "delete i"));
}

#[test]
fn each_result_of_a_call_for_a_snapshot_leads_to_one_step() {
    let asked = Snapshot { state: SnapshotState::Making, asked_at: Some(at(1)), ..copy() };
    let why = || "no space".to_owned();
    let slow = |secs| SnapshotOutcome::DeleteFailed {
        why: why(),
        retry_after: Some(Duration::from_secs(secs)),
    };
    let failed = SnapshotOutcome::DeleteFailed { why: why(), retry_after: None };
    let rows = [
        (
            SnapshotOutcome::Requested("i".to_owned()),
            "Making Some(\"i\") 0 times, 0 events: look again",
        ),
        (SnapshotOutcome::Unanswered(why()), "Making None 1 times, 0 events: look again"),
        (SnapshotOutcome::Refused(why()), "Failed None 0 times, 1 events: look again"),
        (SnapshotOutcome::Deleted, "Making None 0 times, 0 events: look again"),
        (slow(7), "Making None 0 times, 0 events: rest 7 s"),
        (failed.clone(), "Making None 0 times, 0 events: rest"),
    ];
    for (outcome, want) in rows {
        let outcomes = std::slice::from_ref(&outcome);
        let decided = after_snapshot_actions(&asked, outcomes, &snapshot_rules(), at(2));
        let (it, events, next) = applied(&asked, decided);
        let got = format!(
            "{:?} {:?} {} times, {} events: {next}",
            it.state,
            it.image,
            it.times,
            events.len()
        );
        assert_eq!(got, want, "{outcome:?}");
    }
    let requested = [SnapshotOutcome::Requested("i".to_owned())];
    let decided = after_snapshot_actions(&copy(), &requested, &snapshot_rules(), at(2));
    assert_eq!(applied(&copy(), decided).0.state, SnapshotState::Making);
    // After a delete that failed, no other image is deleted in this turn.
    assert!(failed.skips_rest() && !SnapshotOutcome::Deleted.skips_rest());
}
