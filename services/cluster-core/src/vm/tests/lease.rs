//! The end of a lease: the effect of each stage on the VM.

use super::*;

fn reasons(turned: &Turned) -> Vec<&str> {
    turned.events.iter().map(|it| it.reason.as_str()).collect()
}

/// Returns when the snapshot was made, or was found to be impossible.
fn copied_at(turned: &Turned) -> Option<Timestamp> {
    turned.vm.lease.as_ref().unwrap().taken.copied_at
}

#[test]
fn the_end_of_a_lease_drops_an_action_unless_it_was_sent() {
    let action = VmAction::new(VmActionKind::RebootSoft, ActionOrigin::Owner, at(90));
    let vm = Vm { action: Some(action.clone()), ..ended(ServerState::On) };
    let turned = turn(&vm, &seen(on()), RequestArrival::NotYet);
    assert_eq!(reasons(&turned), ["ActionRefused", "LeaseEnded"]);
    assert_eq!(turned.events[0].message, "reboot was not done: the lease ended");
    assert_eq!(turned.ask, Some(VmRequest::Action(VmActionKind::Stop)));

    let sent = Some(SentRequest { at: at(95), after: None, times: 1 });
    let vm = Vm { action: Some(VmAction { sent, ..action }), ..vm };
    let turned = turn(&vm, &seen(on()), RequestArrival::NotYet);
    assert_eq!(reasons(&turned), ["LeaseEnded"]);
    assert_eq!((turned.ask, turned.vm.action), (None, vm.action));
}

#[test]
fn only_a_vm_that_the_lease_switched_off_starts_again() {
    for (state, was_on) in [(ServerState::On, true), (ServerState::Off, false)] {
        let turned = turn(&ended(state.clone()), &seen(is(state)), RequestArrival::NotYet);
        assert_eq!(turned.vm.off_by_lease, was_on);
    }
    let start = Some(VmRequest::Action(VmActionKind::Start));
    let rows = [
        (true, ServerState::Off, start),
        (true, ServerState::On, None),
        (false, ServerState::Off, None),
        (false, ServerState::On, None),
    ];
    for (off_by_lease, state, want) in rows {
        let vm = Vm { off_by_lease, ..built(state.clone()) };
        let turned = turn(&vm, &seen(is(state)), RequestArrival::NotYet);
        assert_eq!((turned.ask, turned.vm.off_by_lease), (want, false), "{vm:?}");
    }
}

#[test]
fn the_snapshot_is_made_of_a_server_that_is_off_and_at_rest() {
    let stop = VmAction::new(VmActionKind::Stop, ActionOrigin::Lease, at(90));
    let sent = Some(SentRequest { at: at(95), after: None, times: 1 });
    let stopping = Vm { action: Some(VmAction { sent, ..stop }), ..ended(ServerState::Off) };
    let failing = Vm { ending_failed_at: Some(at(99)), ..ended(ServerState::On) };
    let busy = Some(server(ServerState::Off, true, "small"));
    let rows = [
        (ended(ServerState::On), on(), false),
        (ended(ServerState::Off), busy, false),
        (stopping, is(ServerState::Off), false),
        (ended(ServerState::Off), is(ServerState::Off), true),
        // A server that cannot be switched off does not delay the snapshot.
        (failing, on(), true),
    ];
    for (vm, server, is_made) in rows {
        let turned = turn(&vm, &seen(server), RequestArrival::NotYet);
        assert_eq!((turned.copy.is_some(), copied_at(&turned)), (is_made, None), "{vm:?}");
    }
}

#[test]
fn a_snapshot_that_is_deleted_meanwhile_is_replaced_by_a_new_one() {
    let new = Some(rules().new_copy);
    let rows = [
        (SnapshotState::Wanted, None, None),
        (SnapshotState::Making, None, None),
        (SnapshotState::Failed, None, None),
        (SnapshotState::Active, None, Some(at(100))),
        (SnapshotState::Leaving, new, None),
    ];
    for (state, made, copied) in rows {
        let kept = Snapshot { state, ..copy() };
        let vm = Vm { copy: Some(kept.id), ..ended(ServerState::Off) };
        let seen = seen(is(ServerState::Off));
        let turned = turn_at(&vm, &seen, RequestArrival::NotYet, Some(&kept), at(100));
        let got = (turned.copy.as_ref().map(|it| it.id), copied_at(&turned));
        assert_eq!(got, (made, copied), "{state:?}");
        assert_eq!(turned.vm.copy, made.or(Some(kept.id)));
    }
}

#[test]
fn no_snapshot_is_kept_where_none_can_be_made() {
    let never = Vm { built_at: None, server: None, ..ended(ServerState::On) };
    let volume = Vm { root_volume: Some(30), ..ended(ServerState::Off) };
    let no_server = "no snapshot is kept: the VM has no server in a state that permits one";
    let rows: [(Vm, Option<CloudObject>, &[&str], &str); 3] = [
        (never, None, &["LeaseEnded"], ""),
        (ended(ServerState::On), None, &["ServerGone", "LeaseEnded", "CopySkipped"], no_server),
        (
            volume,
            is(ServerState::Off),
            &["LeaseEnded", "CopySkipped"],
            "no snapshot is kept: the VM boots from a volume",
        ),
    ];
    for (vm, server, events, why) in rows {
        let turned = turn(&vm, &seen(server), RequestArrival::NotYet);
        assert_eq!(reasons(&turned), events);
        let skipped = turned.events.iter().find(|it| it.reason == "CopySkipped");
        assert_eq!(skipped.map_or("", |it| it.message.as_str()), why);
        assert_eq!((copied_at(&turned), turned.copy), (Some(at(100)), None));
    }
}

#[test]
fn a_vm_is_deleted_after_the_undo_window_which_is_no_change_by_request() {
    let mut vm = Vm { updated_at: Some(at(5)), ..ended(broken()) };
    let mut events = Vec::new();
    for day in 0..9 {
        let now = at(100 + day * 86_400);
        let turned = turn_at(&vm, &seen(is(broken())), RequestArrival::NotYet, None, now);
        events.extend(turned.events.iter().map(|it| format!("{day} {}", it.reason)));
        vm = turned.vm;
    }
    let want = ["0 ServerFailed", "0 LeaseEnded", "0 CopySkipped", "6 DeletionSoon", "7 LeaseOver"];
    assert_eq!(events, want);
    assert_eq!((vm.desire, vm.updated_at), (DesiredState::Gone, Some(at(5))));
}

#[test]
fn the_end_of_a_lease_switches_off_makes_a_snapshot_and_can_be_undone() {
    let first = turn(&ended(ServerState::On), &seen(on()), RequestArrival::NotYet);
    expect![[r#"
        LeaseEnded: the lease ended: the VM is switched off, and deleted at 2023-11-21T22:15:00Z; extend the lease or undo its end to keep the VM
        ask Some(Action(Stop)), action Some("stop"), EXPIRED"#]].assert_eq(&text(&first));
    let outside: Vec<&str> = first.notices.iter().map(|it| it.event).collect();
    assert_eq!(outside, ["lease.ended"]);
    let off = turn(&first.vm, &seen(is(ServerState::Off)), RequestArrival::Arrived);
    let off = turn(&off.vm, &seen(is(ServerState::Off)), RequestArrival::Arrived);
    let copy = off.copy.clone().unwrap();
    assert_eq!((off.vm.copy, copy.why), (Some(copy.id), SnapshotOrigin::LeaseEnded));
    // A second turn makes no second snapshot, and the snapshot counts only once its image is active.
    let waits =
        turn_at(&off.vm, &seen(is(ServerState::Off)), RequestArrival::NotYet, Some(&copy), at(101));
    assert_eq!((waits.copy, waits.vm.lease.as_ref().unwrap().taken.copied_at), (None, None));
    let made = Snapshot { state: SnapshotState::Active, ..copy };
    let copied =
        turn_at(&off.vm, &seen(is(ServerState::Off)), RequestArrival::NotYet, Some(&made), at(102));
    assert_eq!(copied.vm.lease.as_ref().unwrap().taken.copied_at, Some(at(102)));

    let mut undone = copied.vm;
    let lease = undone.lease.take().unwrap();
    undone.lease = Some(
        lease.undone("u", &LeaseSchedule::default(), ::lease::Terms::default(), at(103)).unwrap(),
    );
    let again =
        turn_at(&undone, &seen(is(ServerState::Off)), RequestArrival::NotYet, Some(&made), at(103));
    assert_eq!((again.ask, again.vm.copy), (Some(VmRequest::Action(VmActionKind::Start)), None));
}

#[test]
fn a_failed_server_does_not_delay_the_end_of_the_lease() {
    let turned = turn(&ended(broken()), &seen(is(broken())), RequestArrival::NotYet);
    assert!(text(&turned).contains("CopySkipped"), "{}", text(&turned));
    assert!(turned.vm.lease.as_ref().unwrap().taken.copied_at.is_some());
    assert_eq!((turned.ask.clone(), turned.vm.action.clone()), (None, None));
    let later = turn_at(&turned.vm, &seen(is(broken())), RequestArrival::NotYet, None, at(101));
    assert_eq!((later.ask, later.events), (None, vec![]));
}

#[test]
fn a_switch_off_that_fails_is_reported_once_and_tried_again_later() {
    let mut vm = turn(&ended(ServerState::On), &seen(on()), RequestArrival::NotYet).vm;
    let mut events = 0;
    let mut asked = 0;
    for second in 0..120 {
        if vm.action.as_ref().is_some_and(|action| action.sent.is_some()) {
            let (refused, text) = vm.refused("it is locked", at(100 + second * 10));
            (vm, events) = (refused, events + text.len());
        }
        let turned = turn_at(&vm, &seen(on()), RequestArrival::NotYet, None, at(100 + second * 10));
        asked += u32::from(turned.ask.is_some());
        vm = turned.vm;
    }
    assert_eq!((events, asked), (1, 1));
}
