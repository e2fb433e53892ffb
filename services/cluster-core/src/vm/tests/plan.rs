//! The plan of a VM's cloud objects.

use super::*;
use crate::{Action, DnsName, FailureCount};

#[test]
fn objects_besides_the_server_are_repaired_after_it_ran() {
    let shape = vm_desired_objects(&asked());
    let vm = built(ServerState::On);
    let plan = |seen: &ClusterObservation| vm_plan(&vm, &shape, seen);
    let complete = seen(on());
    assert_eq!(plan(&complete), []);
    let group = Key::SecurityGroup(SecurityGroupRole::Node);
    let mut open = complete.clone();
    open.objects.get_mut(&group).unwrap().facts = CloudObjectDetails::None;
    assert_eq!(plan(&open), [Action::SetRules(group)]);
    let record = Key::Record(DnsName::Machine(vm_machine()));
    let mut unnamed = complete.clone();
    unnamed.objects.remove(&record);
    assert_eq!(plan(&unnamed), [Action::Create(record)]);
    let mut cut_off = complete;
    cut_off.objects.remove(&Key::Port(vm_machine()));
    assert_eq!(plan(&cut_off), [], "the server cannot exist without its port");
}

#[test]
fn an_object_is_deleted_unless_it_is_a_volume_that_is_written() {
    use CloudObjectState::{Deleting, Ready, Working};

    let vm = asked().to_be_deleted(at(1));
    let port = Key::Port(vm_machine());
    let rows = [
        (Key::RootVolume, Working, false),
        (Key::RootVolume, Ready, true),
        (port.clone(), Working, true),
        (port.clone(), Ready, true),
        (port, Deleting, false),
    ];
    for (key, state, is_deleted) in rows {
        let mut seen = ClusterObservation { at: Some(at(1)), ..ClusterObservation::default() };
        let object = found("o", state.clone(), CloudObjectDetails::None);
        seen.objects.insert(key.clone(), object);
        let delete = is_deleted.then(|| Action::Delete(key.clone()));
        let plan = vm_plan(&vm, &vm_desired_objects(&vm), &seen);
        assert_eq!(plan, Vec::from_iter(delete), "{key} {state:?}");
    }
}

#[test]
fn the_failures_of_a_call_are_counted() {
    let (vm, key) = (asked(), Key::Server(vm_machine()));
    let mut seen = seen(None);
    let why = "no valid host".to_owned();
    seen.failures = [(key.clone(), Failure { why: why.clone(), object: None })].into();
    let shape = vm_desired_objects(&vm);
    let once = vm.with_setbacks(&shape, &seen, at(7));
    let twice = once.with_setbacks(&shape, &seen, at(8));
    let count = |times, at| FailureCount { times, at, why: why.clone(), object: None };
    let want = |count| Vm { setbacks: [(key.clone(), count)].into(), ..vm.clone() };
    assert_eq!((once, twice), (want(count(1, at(7))), want(count(2, at(8)))));
}
