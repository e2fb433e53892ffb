//! Actions of VMs: the request to Nova, and the judgement of the next observations.

use super::*;

#[test]
fn an_action_is_requested_once_and_judged_by_the_observation() {
    use RequestArrival::{Arrived, NotYet};
    check_action(
        VmActionKind::Stop,
        false,
        on(),
        NotYet,
        expect![[r#"ask Some(Action(Stop)), action Some("stop"), STOPPING"#]],
    );
    check_action(
        VmActionKind::Stop,
        true,
        on(),
        NotYet,
        expect![[r#"ask None, action Some("stop"), STOPPING"#]],
    );
    let busy = Some(server(ServerState::On, true, "small"));
    check_action(
        VmActionKind::Stop,
        true,
        busy,
        Arrived,
        expect![[r#"ask None, action Some("stop"), STOPPING"#]],
    );
    check_action(
        VmActionKind::Stop,
        true,
        is(ServerState::Off),
        Arrived,
        expect![[r#"
        ActionDone: done: stop
        ask None, action None, STOPPED"#]],
    );
    check_action(
        VmActionKind::Start,
        false,
        is(broken()),
        NotYet,
        expect![[r#"
        ServerFailed: the server failed: no such disk
        ActionRefused: start was not done: the server is in ERROR (no such disk)
        ask None, action None, FAILED"#]],
    );
    check_action(
        VmActionKind::Stop,
        false,
        None,
        NotYet,
        expect![[r#"
        ServerGone: the server disappeared, and clusterd did not delete it
        ActionRefused: stop was not done: the VM has no server
        ask None, action None, LOST"#]],
    );
}

#[test]
fn a_reboot_is_done_once_it_arrived_and_leads_out_of_error() {
    use RequestArrival::{Arrived, NotYet};
    check_action(
        VmActionKind::RebootSoft,
        true,
        on(),
        NotYet,
        expect![[r#"ask None, action Some("reboot"), REBOOTING"#]],
    );
    check_action(
        VmActionKind::RebootSoft,
        true,
        on(),
        Arrived,
        expect![[r#"
        ActionDone: done: reboot
        ask None, action None, ACTIVE"#]],
    );
    check_action(
        VmActionKind::RebootHard,
        false,
        is(broken()),
        NotYet,
        expect![[r#"
        ServerFailed: the server failed: no such disk
        ask Some(Action(RebootHard)), action Some("hard reboot"), REBOOTING"#]],
    );
    assert!(built(broken()).with_action(VmActionKind::RebootHard, at(5)).is_ok());
    assert!(built(broken()).with_action(VmActionKind::RebootSoft, at(5)).is_err());
}

#[test]
fn a_resize_that_nova_failed_is_reported_and_never_sent_again() {
    let kind = VmActionKind::Resize(flavor("large", LARGE));
    check_action(
        kind.clone(),
        true,
        on(),
        RequestArrival::Arrived,
        expect![[r#"
        ActionFailed: resize to large was not done: Nova gave up, and the server is on
        ask None, action None, ACTIVE"#]],
    );
    let resized = Some(server(ServerState::Resized, false, "large"));
    check_action(
        kind.clone(),
        true,
        resized,
        RequestArrival::Arrived,
        expect![[r#"ask Some(Confirm), action Some("resize to large"), RESIZING"#]],
    );
    let done = Some(server(ServerState::On, false, "large"));
    check_action(
        kind,
        true,
        done,
        RequestArrival::Arrived,
        expect![[r#"
        ActionDone: done: resize to large
        ask None, action None, ACTIVE"#]],
    );
}

#[test]
fn a_request_that_never_arrives_is_sent_three_times() {
    let mut vm = built(ServerState::On);
    vm.action = Some(VmAction::new(VmActionKind::RebootSoft, ActionOrigin::Owner, at(0)));
    let mut asked = 0;
    for minute in 1..10 {
        let now = at(minute * 61);
        let turned = turn_at(&vm, &seen(on()), RequestArrival::NotYet, None, now);
        asked += u32::from(turned.ask.is_some());
        vm = turned.vm;
    }
    assert_eq!((asked, vm.action), (3, None));
}

#[test]
fn the_larger_size_counts_until_a_resize_is_confirmed() {
    let vm =
        built(ServerState::On).with_action(VmActionKind::Resize(flavor("large", LARGE)), at(5));
    let vm = vm.unwrap();
    let want = [
        (Resource::Vms, 1),
        (Resource::Vcpus, 8),
        (Resource::RamMib, 4096),
        (Resource::DiskGib, 40),
        (Resource::Gpus, 1),
        (Resource::FloatingIps, 1),
    ];
    assert_eq!(vm.takes(), Amounts::from_iter(want));
    let mut vm = vm;
    vm.action.as_mut().unwrap().sent = Some(SentRequest { at: at(95), after: None, times: 1 });
    let resized = turn(
        &vm,
        &seen(Some(server(ServerState::Resized, false, "large"))),
        RequestArrival::Arrived,
    );
    assert_eq!(resized.vm.takes()[Resource::RamMib], 4096);
    let done =
        turn(&vm, &seen(Some(server(ServerState::On, false, "large"))), RequestArrival::Arrived);
    assert_eq!(done.vm.takes()[Resource::RamMib], 2048);
}

#[test]
fn the_minimum_of_an_image_holds_at_first_and_after_a_resize() {
    let tight = flavor("tight", FlavorSize { disk_gib: 5, ..SMALL });
    assert!(image().check(&tight, None).is_err() && image().check(&tight, Some(10)).is_ok());
    let poor = flavor("poor", FlavorSize { ram_mib: 256, ..LARGE });
    let refused =
        built(ServerState::On).with_action(VmActionKind::Resize(poor), at(5)).unwrap_err();
    expect![
        "image debian needs at least 512 MiB of memory, and the VM would have 256: request more"
    ]
    .assert_eq(&refused.to_string());
    let shrinks = flavor("shrinks", FlavorSize { disk_gib: 15, ..SMALL });
    assert!(matches!(
        built(ServerState::On).with_action(VmActionKind::Resize(shrinks), at(5)),
        Err(VmRefusal::Shrinks { .. })
    ));
    let as_large = flavor("as-large", FlavorSize { vcpus: 4, ..SMALL });
    assert!(built(ServerState::On).with_action(VmActionKind::Resize(as_large), at(5)).is_ok());
}

#[test]
fn a_flavor_may_have_exactly_what_the_image_needs() {
    let rows = [
        (10, 512, None, true),
        (9, 512, None, false),
        (10, 511, None, false),
        (9, 512, Some(10), true),
        (10, 512, Some(9), false),
        // Nova gives a flavor without a disk one that is as large as the image.
        (0, 512, None, true),
    ];
    for (disk_gib, ram_mib, root_volume, is_enough) in rows {
        let flavor = flavor("f", FlavorSize { disk_gib, ram_mib, ..SMALL });
        let checked = image().check(&flavor, root_volume);
        assert_eq!(checked.is_ok(), is_enough, "{disk_gib} {ram_mib} {root_volume:?}");
    }
}

#[test]
fn a_request_is_recorded_with_the_one_before_it_and_sent_afterwards() {
    let asked = built(ServerState::On).with_action(VmActionKind::Stop, at(90)).unwrap();
    let vm =
        Vm { idle: Some(IdleCheck::by_power(asked.server.as_ref().unwrap(), at(99))), ..asked };
    let decide = |vm: &Vm, results: &[VmCallResult]| {
        after_vm_calls(&records(vm, None), results, &rules(), at(100))
    };
    let first = decide(&vm, &[worked(&seen(on()), RequestArrival::NotYet)]);
    let server = || "s".to_owned();
    assert_eq!(first.actions, [VmCall::ReadLastRequest { server: server() }]);
    assert_eq!(first.next_turn, Requeue::After(PAUSES.soon));
    let seen_vm = match first.change {
        Some(RecordChange::Write(update)) => update.vm,
        Some(RecordChange::Delete) | None => vm.clone(),
    };
    assert_eq!(seen_vm.action, vm.action, "it is not sent yet");

    let second = decide(&seen_vm, &[VmCallResult::LastRequest(Some("r".to_owned()))]);
    let stop = || VmRequest::Action(VmActionKind::Stop);
    assert_eq!(second.actions, [VmCall::Send { server: server(), request: stop() }]);
    let Some(RecordChange::Write(VmUpdate { vm: sent, .. })) = second.change else {
        panic!("the request is not recorded")
    };
    let request = sent.action.as_ref().unwrap().sent.clone().unwrap();
    assert_eq!((request.after.as_deref(), request.times, request.at), (Some("r"), 1, at(100)));

    // The last request is unknown, so nothing is recorded or sent, and the next turn tries again.
    let unknown = decide(&seen_vm, &[VmCallResult::LastRequestUnknown("away".to_owned())]);
    assert_eq!((unknown.change, unknown.actions, unknown.log.len()), (None, vec![], 1));

    let refused = |request| VmCallResult::Refused { request, why: "it is locked".to_owned() };
    let rows = [
        (VmCallResult::Sent, "None", 0),
        (VmCallResult::Unanswered("away".to_owned()), "None", 1),
        (refused(VmRequest::Confirm), "None", 1),
        (refused(stop()), "ActionRefused", 1),
    ];
    for (result, event, lines) in rows {
        let decided = decide(&sent, std::slice::from_ref(&result));
        let got = match &decided.change {
            Some(RecordChange::Write(update)) => {
                assert_eq!(update.vm.action, None);
                update.events[0].reason.as_str()
            }
            Some(RecordChange::Delete) => "Delete",
            None => "None",
        };
        assert_eq!((got, decided.log.len()), (event, lines), "{result:?}");
        assert_eq!((decided.actions, decided.next_turn), (vec![], Requeue::OnChange));
    }
}

#[test]
fn a_repeated_request_keeps_the_one_before_it_and_is_sent_at_once() {
    let mut vm = built(ServerState::On).with_action(VmActionKind::Stop, at(0)).unwrap();
    let sent = SentRequest { at: at(1), after: Some("r".to_owned()), times: 1 };
    vm.action.as_mut().unwrap().sent = Some(sent);
    vm.idle = Some(IdleCheck::by_power(vm.server.as_ref().unwrap(), at(99)));
    let results = [worked(&seen(on()), RequestArrival::NotYet)];
    let decided = after_vm_calls(&records(&vm, None), &results, &rules(), at(100));
    let request = VmRequest::Action(VmActionKind::Stop);
    assert_eq!(decided.actions, [VmCall::Send { server: "s".to_owned(), request }]);
    let Some(RecordChange::Write(update)) = decided.change else { panic!("it is not recorded") };
    let sent = update.vm.action.unwrap().sent.unwrap();
    assert_eq!((sent.after.as_deref(), sent.times, sent.at), (Some("r"), 2, at(100)));
}

#[test]
fn a_record_of_an_earlier_program_keeps_its_action() {
    let vm = built(ServerState::On).with_action(VmActionKind::Stop, at(5)).unwrap();
    let mut record = serde_json::to_value(&vm).unwrap();
    let fields = record.as_object_mut().unwrap();
    let action = fields.remove("action").unwrap();
    fields.insert("errand".to_owned(), action);
    assert_eq!(serde_json::from_value::<Vm>(record).unwrap(), vm);
}
