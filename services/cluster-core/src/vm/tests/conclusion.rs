//! Conclusions from an observation: the state of the server, and the actions that wait for it.

use super::*;

#[test]
fn a_server_is_in_its_state_since_the_state_was_first_seen() {
    let another = CloudObject { id: "t".to_owned(), ..server(ServerState::On, false, "small") };
    let rows = [(on(), at(1)), (is(ServerState::Off), at(100)), (Some(another), at(100))];
    for (server, since) in rows {
        let turned = turn(&built(ServerState::On), &seen(server), RequestArrival::NotYet);
        assert_eq!(turned.vm.server.unwrap().since, since);
    }
}

#[test]
fn a_vm_is_built_once_its_server_runs_and_its_user_data_is_no_longer_kept() {
    let user_data = Some(UserData { digest: "d".to_owned(), is_kept: true });
    let vm = Vm { user_data, ..asked() };
    let rows = [
        (vm.clone(), None, None),
        (vm.clone(), is(ServerState::Building), None),
        (vm.clone(), is(ServerState::Off), None),
        (vm.to_be_deleted(at(9)), on(), None),
        (vm.clone(), on(), Some(at(100))),
        (Vm { built_at: Some(at(50)), ..vm }, on(), Some(at(50))),
    ];
    for (vm, server, built_at) in rows {
        let turned = turn(&vm, &seen(server), RequestArrival::NotYet);
        let is_new = built_at == Some(at(100));
        assert_eq!(turned.vm.built_at, built_at);
        assert_eq!(turned.vm.user_data.unwrap().is_kept, !is_new);
        assert_eq!(turned.events.iter().any(|it| it.reason == "Built"), is_new);
    }
}

#[test]
fn a_vm_is_under_way_while_an_object_its_server_or_an_action_changes() {
    let rest = seen(is(ServerState::Off));
    let off = built(ServerState::Off);
    let acting = off.with_action(VmActionKind::Start, at(5)).unwrap();
    let rows = [
        (off.clone(), rest.clone(), false),
        (off.clone(), seen(is(ServerState::Building)), true),
        (off, seen(is(ServerState::Leaving)), true),
        (built(ServerState::Building), rest.clone(), true),
        (built(ServerState::Changing), rest.clone(), true),
        (acting, rest, true),
    ];
    for (vm, seen, want) in rows {
        assert_eq!(vm.is_under_way(&seen), want, "{vm:?}");
    }
}

#[test]
fn an_action_waits_for_changes_and_is_refused_while_the_server_is_deleted() {
    use RequestArrival::{Arrived, NotYet};
    for state in [ServerState::Building, ServerState::Changing] {
        check_action(
            VmActionKind::Stop,
            false,
            is(state),
            NotYet,
            expect![[r#"ask None, action Some("stop"), STOPPING"#]],
        );
    }
    check_action(
        VmActionKind::Stop,
        false,
        is(ServerState::Leaving),
        NotYet,
        expect![[r#"
        ServerGone: the server disappeared, and clusterd did not delete it
        ActionRefused: stop was not done: the VM is being deleted
        ask None, action None, LOST"#]],
    );
    // Only a resize is confirmed.
    check_action(
        VmActionKind::Stop,
        true,
        is(ServerState::Resized),
        Arrived,
        expect![[r#"
        ActionFailed: stop was not done: Nova gave up, and the server is resized, but the new size is not confirmed
        ask None, action None, BUSY"#]],
    );
}

#[test]
fn a_request_that_did_not_arrive_in_its_time_is_sent_again() {
    let mut vm = built(ServerState::On).with_action(VmActionKind::RebootSoft, at(0)).unwrap();
    vm.action.as_mut().unwrap().sent = Some(SentRequest { at: at(0), after: None, times: 1 });
    let again = Some(VmRequest::Action(VmActionKind::RebootSoft));
    for (seconds, want) in [(60, None), (61, again)] {
        let turned = turn_at(&vm, &seen(on()), RequestArrival::NotYet, None, at(seconds));
        assert_eq!(turned.ask, want, "after {seconds} s");
    }
}

#[test]
fn only_a_refused_switch_off_of_the_lease_is_recorded() {
    use ActionOrigin::{Lease, Owner};
    let rows = [
        (VmActionKind::Stop, Owner, None),
        (VmActionKind::Start, Lease, None),
        (VmActionKind::Stop, Lease, Some(at(9))),
    ];
    for (kind, asker, failed_at) in rows {
        let action = Some(VmAction::new(kind, asker, at(5)));
        let (refused, events) =
            Vm { action, ..built(ServerState::On) }.refused("it is locked", at(9));
        assert_eq!((refused.action, refused.ending_failed_at), (None, failed_at));
        assert_eq!(events.len(), 1);
    }
}
