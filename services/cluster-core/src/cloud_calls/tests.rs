//! The calls of turns as tables: one row for each rule.

mod ledger;
mod next_turn;
mod results;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use newtype_uuid::GenericUuid;

use super::*;
use crate::sample::{Sample, at};
use crate::{
    BackingOff, CloudObject, CloudObjectDetails, CloudObjectState, DesiredState, FlavorSize,
    LedgerEntry, LedgerOwner, LedgerState, LedgerUuid, MemberObservation, Owner, UserDataFormat,
    Vm, VmFlavor, VmImage, desired_objects, vm_desired_objects, vm_machine,
};

/// The situation of a turn, without calls so far.
struct Situation<T> {
    owner: T,
    seen: ClusterObservation,
    /// The objects that were requested in earlier turns.
    requested: BTreeSet<Key>,
    calls: TurnCalls,
    now: Timestamp,
}

/// Prepares the situation of a row.
type Prepare<T> = fn(&mut Situation<T>);

impl<T> Situation<T> {
    fn new(owner: T) -> Self {
        let seen = ClusterObservation { at: Some(at(10)), ..ClusterObservation::default() };
        let (requested, calls) = (BTreeSet::new(), TurnCalls::default());
        Situation { owner, seen, requested, calls, now: at(10) }
    }

    /// Adds objects that the cloud has.
    fn exist(&mut self, keys: &[&str], state: &CloudObjectState) {
        for key in keys {
            let (key, found): (Key, _) = (key.parse().unwrap(), found(key, state.clone()));
            self.requested.insert(key.clone());
            self.seen.objects.insert(key, found);
        }
    }

    /// Adds calls that are in flight.
    fn flying(&mut self, actions: &[Action]) {
        self.calls.planned.extend(actions.iter().cloned());
        self.calls.in_flight.extend(actions.iter().cloned());
    }

    fn ledger(&self) -> Ledger {
        let lines = self.requested.iter();
        let lines = lines.map(|key| line(&key.to_string(), LedgerState::Intended, None));
        Ledger::new(owner(), self.now, lines.collect())
    }

    /// Describes the calls that start now.
    fn next(&self, owner: ObjectOwner<'_>, shape: &DesiredObjects) -> String {
        let repair = &RepairLimits::DEFAULT;
        let goal = CloudGoal { owner, shape, repair, now: self.now };
        let next = next_calls(&goal, &self.seen, &self.ledger(), &self.calls);
        assert_eq!(next, next_calls(&goal, &self.seen, &self.ledger(), &self.calls));
        if next.checks_capacity {
            return "check capacity".to_owned();
        }
        let waits = self.calls.queued.len() + next.planned.len() - next.start.len();
        let start: Vec<String> = next.start.iter().map(ToString::to_string).collect();
        let rest = match (start.is_empty(), self.calls.in_flight.is_empty()) {
            (false, _) if waits > 0 => format!(" ({waits} queued)"),
            (false, _) => String::new(),
            (true, true) => "end".to_owned(),
            (true, false) => "wait".to_owned(),
        };
        start.join("; ") + &rest
    }
}

fn owner() -> LedgerOwner {
    LedgerOwner::Cluster(id(1))
}

fn id<U: GenericUuid>(last: u128) -> U {
    U::from_untyped_uuid(uuid::Uuid::from_u128(0x7c9e_6679_7425_40de_944b_e07f_c1f9_0000 + last))
}

fn found(id: &str, state: CloudObjectState) -> CloudObject {
    let address = Some([10, 0, 0, 7].into());
    CloudObject { id: id.to_owned(), state, address, facts: CloudObjectDetails::None }
}

fn line(kind: &str, state: LedgerState, cloud_id: Option<&str>) -> LedgerEntry {
    LedgerEntry {
        id: id(kind.len() as u128),
        of: owner(),
        kind: kind.to_owned(),
        name: format!("name of {kind}"),
        cloud_id: cloud_id.map(str::to_owned),
        state,
        created_at: at(0),
        updated_at: None,
    }
}

fn create(key: &str) -> Action {
    Action::Create(key.parse().unwrap())
}

/// Makes an observation of a complete cluster.
fn complete(cluster: &mut Situation<Sample>) {
    cluster.owner.settle(&mut cluster.seen);
    cluster.requested.extend(cluster.seen.objects.keys().cloned());
}

/// Adds the results of the first calls of the smallest cluster.
fn begun(cluster: &mut Situation<Sample>) {
    let first = ["security-group/node", "security-group/control-plane"];
    cluster.exist(&first, &CloudObjectState::Ready);
    cluster.exist(&["server-group/default-master", "credential/1"], &CloudObjectState::Ready);
}

const FIRST: &str = "create security-group/node; create security-group/control-plane; create server-group/default-master; create credential/1";

#[test]
fn each_rule_of_a_cluster_has_a_row() {
    let rows: &[(&str, Prepare<Sample>, &str)] = &[
        ("nothing is left to do", complete, "end"),
        ("capacity is checked before the first object is created", |_| {}, "check capacity"),
        (
            "all objects without dependencies start",
            |it| it.calls.capacity = Capacity::Enough,
            FIRST,
        ),
        ("nothing is created without capacity", |it| it.calls.capacity = Capacity::Short, "end"),
        ("nothing starts after a failed check", |it| it.calls.capacity = Capacity::Unknown, "end"),
        (
            "changes need no capacity",
            |it| {
                begun(it);
                it.calls.capacity = Capacity::Short;
            },
            "set the rules of security-group/node; set the rules of security-group/control-plane",
        ),
        (
            "capacity is not checked again for objects that were requested before",
            |it| {
                let shape = desired_objects(&it.owner.spec());
                it.requested.extend(shape.keys().cloned());
            },
            FIRST,
        ),
        (
            "an object starts as soon as its dependencies exist, whatever else is in flight",
            |it| {
                it.exist(
                    &["security-group/node", "security-group/control-plane"],
                    &CloudObjectState::Working,
                );
                it.flying(&[create("server-group/default-master"), create("credential/1")]);
            },
            "create port/default-master-0",
        ),
        (
            "an object waits for a dependency in flight",
            |it| {
                begun(it);
                it.flying(&[create("port/default-master-0")]);
                let rules = ["security-group/node", "security-group/control-plane"];
                it.calls.planned.extend(rules.map(|it| Action::SetRules(it.parse().unwrap())));
            },
            "wait",
        ),
        (
            "a port without an address is not ready for its server",
            |it| {
                complete(it);
                it.seen.objects.remove(&"server/default-master-0".parse().unwrap());
                it.seen.machines.clear();
                let port = "port/default-master-0".parse().unwrap();
                it.seen.objects.get_mut(&port).unwrap().address = None;
            },
            "end",
        ),
        (
            "an action that failed in this turn is not repeated",
            |it| {
                begun(it);
                it.calls.planned.insert(create("port/default-master-0"));
            },
            "set the rules of security-group/node; set the rules of security-group/control-plane",
        ),
        (
            "an object that exists is not created again",
            |it| {
                it.exist(&["credential/1"], &CloudObjectState::Ready);
                it.calls.capacity = Capacity::Enough;
            },
            "create security-group/node; create security-group/control-plane; create server-group/default-master",
        ),
        (
            "an object is not created before its pause after a failure has passed",
            |it| {
                it.calls.capacity = Capacity::Enough;
                let until = at(20);
                let held = BackingOff { times: 1, why: "no valid host".to_owned(), until };
                it.seen.held = BTreeMap::from([("credential/1".parse().unwrap(), held)]);
            },
            "create security-group/node; create security-group/control-plane; create server-group/default-master",
        ),
        (
            "nothing starts after a service asked for a later retry",
            |it| {
                begun(it);
                it.calls.is_paused = true;
            },
            "end",
        ),
        (
            "calls in flight end after a service asked for a later retry",
            |it| {
                it.flying(&[create("credential/1")]);
                it.calls.is_paused = true;
            },
            "wait",
        ),
        (
            "a failed object is deleted",
            |it| {
                complete(it);
                it.seen.machines.clear();
                it.exist(
                    &["server/default-master-0"],
                    &CloudObjectState::Failed("no valid host".to_owned()),
                );
            },
            "delete server/default-master-0",
        ),
        (
            "a delete waits until nothing is in flight",
            |it| {
                complete(it);
                it.exist(
                    &["server-group/default-master"],
                    &CloudObjectState::Failed("no".to_owned()),
                );
                it.seen.objects.remove(&"server/default-master-0".parse().unwrap());
                it.flying(&[create("credential/1")]);
            },
            "wait",
        ),
        (
            "a server that did not become a node in time is deleted",
            |it| {
                complete(it);
                let machine = "default-master-0".parse().unwrap();
                let never = MemberObservation { asked_at: Some(at(0)), ..Default::default() };
                it.seen.machines.insert(machine, never);
                it.now = at(1000);
            },
            "delete server/default-master-0",
        ),
        (
            "servers are deleted first",
            |it| {
                complete(it);
                it.owner.cluster.desire = DesiredState::Gone;
            },
            "delete server/default-master-0",
        ),
        (
            "the other objects wait for a server that is being deleted",
            |it| {
                complete(it);
                it.owner.cluster.desire = DesiredState::Gone;
                it.exist(&["server/default-master-0"], &CloudObjectState::Deleting);
            },
            "end",
        ),
        (
            "objects are deleted in reverse order of their dependencies",
            |it| {
                begun(it);
                it.exist(&["port/default-master-0"], &CloudObjectState::Ready);
                it.owner.cluster.desire = DesiredState::Gone;
            },
            "delete server-group/default-master; delete port/default-master-0; delete credential/1",
        ),
        (
            "a deleted cluster has no calls left",
            |it| it.owner.cluster.desire = DesiredState::Gone,
            "end",
        ),
    ];
    for (rule, prepare, want) in rows {
        let mut situation = Situation::new(Sample::smallest());
        prepare(&mut situation);
        let spec = situation.owner.spec();
        let next = situation.next(ObjectOwner::Cluster(&spec), &desired_objects(&spec));
        assert_eq!(next, *want, "{rule}");
    }
}

#[test]
fn the_tag_of_an_object_names_its_owner() {
    let sample = Sample::smallest();
    let tag = ObjectOwner::Cluster(&sample.spec()).tag();
    assert_eq!(tag, "bedplate-cluster=7c9e6679-7425-40de-944b-e07fc1f90000");
    let tag = ObjectOwner::Vm(&vm()).tag();
    assert_eq!(tag, "bedplate-vm=7c9e6679-7425-40de-944b-e07fc1f90001");
}

/// Returns creates of this many ports.
fn ports(count: u32) -> Vec<Action> {
    (0..count).map(|number| create(&format!("port/default-worker-{number}"))).collect()
}

#[test]
fn a_limited_number_of_calls_is_in_flight() {
    let mut sample = Sample::smallest();
    sample.groups[0].machines = (0..40).collect();
    let mut cluster = Situation::new(sample);
    begun(&mut cluster);
    let spec = cluster.owner.spec();
    let shape = desired_objects(&spec);
    let repair = &RepairLimits::DEFAULT;
    let goal =
        CloudGoal { owner: ObjectOwner::Cluster(&spec), shape: &shape, repair, now: cluster.now };
    let mut ledger = cluster.ledger();
    cluster.calls.capacity = Capacity::Enough;
    let next = next_calls(&goal, &cluster.seen, &ledger, &cluster.calls);
    assert_eq!((next.planned.len(), next.start.len()), (42, MAX_IN_FLIGHT));
    cluster.calls.begin(&next, &ledger);
    assert_eq!((cluster.calls.queued.len(), cluster.calls.in_flight.len()), (10, MAX_IN_FLIGHT));
    ledger.intend(&next.planned, &shape, || id(99));

    // Nothing is planned while actions are queued, and no slot is free.
    let next = next_calls(&goal, &cluster.seen, &ledger, &cluster.calls);
    assert_eq!(next, NextCalls::default());

    // The next action of the queue starts in the free slot.
    let done = cluster.calls.in_flight.first().unwrap().clone();
    let change = ActionChange::Object(Key::Network, found("n", CloudObjectState::Ready));
    cluster.calls.finish(&done, Ok(change), &mut cluster.seen);
    let next = next_calls(&goal, &cluster.seen, &ledger, &cluster.calls);
    assert_eq!((next.planned.len(), &next.start[..]), (0, &[cluster.calls.queued[0].clone()][..]));
}

#[test]
fn each_rule_of_a_queue_has_a_row() {
    let rows: &[(&str, u32, u32, &str)] = &[
        (
            "the queue is first, in its order",
            2,
            0,
            "create port/default-worker-0; create port/default-worker-1",
        ),
        (
            "the free slots are filled",
            3,
            30,
            "create port/default-worker-0; create port/default-worker-1 (1 queued)",
        ),
        ("the queue waits for a free slot", 2, 32, "wait"),
    ];
    for (rule, queued, flying, want) in rows {
        let mut cluster = Situation::new(Sample::smallest());
        cluster.calls.queued = ports(*queued).into();
        cluster.calls.planned = ports(*queued).into_iter().collect();
        let others: Vec<Action> =
            (0..*flying).map(|it| create(&format!("server/default-worker-{it}"))).collect();
        cluster.flying(&others);
        let spec = cluster.owner.spec();
        let next = cluster.next(ObjectOwner::Cluster(&spec), &desired_objects(&spec));
        assert_eq!(next, *want, "{rule}");
    }
}

/// Makes a VM that boots from a volume.
fn vm() -> Vm {
    let image = VmImage {
        id: "i-1".to_owned(),
        name: "debian".to_owned(),
        user_data_format: UserDataFormat::CloudInit,
        min_disk_gib: 10,
        min_ram_mib: 512,
    };
    let size = FlavorSize { vcpus: 2, ram_mib: 4096, disk_gib: 0, gpus: 0 };
    let flavor = VmFlavor { id: "f-1".to_owned(), name: "small".to_owned(), size };
    let what = (image, flavor, "net-1".to_owned());
    let vm = Vm::new(id(1), Owner::new("p", "u"), "dev".parse().unwrap(), what, at(0));
    Vm { root_volume: Some(20), ..vm }
}

/// Makes an observation of a complete VM.
fn built(vm: &mut Situation<Vm>) {
    let shape = vm_desired_objects(&vm.owner);
    let keys: Vec<String> = shape.keys().map(ToString::to_string).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    vm.exist(&keys, &CloudObjectState::Ready);
    for (key, object) in shape {
        if let crate::ResourceSpec::SecurityGroup { rules } = object.thing {
            vm.seen.objects.get_mut(&key).unwrap().facts = CloudObjectDetails::Rules(rules);
        }
    }
    vm.owner.built_at = Some(at(1));
}

#[test]
fn each_rule_of_a_vm_has_a_row() {
    let rows: &[(&str, Prepare<Vm>, &str)] = &[
        ("nothing is left to do", built, "end"),
        ("capacity is checked before the first object is created", |_| {}, "check capacity"),
        (
            "all objects without dependencies start",
            |it| it.calls.capacity = Capacity::Enough,
            "create security-group/node; create root-volume",
        ),
        ("nothing is created without capacity", |it| it.calls.capacity = Capacity::Short, "end"),
        (
            "the port starts as soon as its security group exists",
            |it| {
                it.exist(&["security-group/node"], &CloudObjectState::Working);
                it.flying(&[create("root-volume")]);
            },
            "create port/vm-0",
        ),
        (
            "the server waits until its boot volume is ready",
            |it| {
                built(it);
                it.owner.built_at = None;
                it.exist(&["root-volume"], &CloudObjectState::Working);
                it.seen.objects.remove(&Key::Server(vm_machine()));
            },
            "end",
        ),
        (
            "the server starts once its boot volume is ready",
            |it| {
                built(it);
                it.owner.built_at = None;
                it.seen.objects.remove(&Key::Server(vm_machine()));
            },
            "create server/vm-0",
        ),
        (
            "a server that ran once is never created again",
            |it| {
                built(it);
                it.seen.objects.remove(&Key::Server(vm_machine()));
            },
            "end",
        ),
        (
            "a server that ran once is not deleted because it failed",
            |it| {
                built(it);
                it.exist(&["server/vm-0"], &CloudObjectState::Failed("no".to_owned()));
            },
            "end",
        ),
        (
            "a VM is deleted in reverse order of its dependencies",
            |it| {
                built(it);
                it.owner.desire = DesiredState::Gone;
            },
            "delete server/vm-0",
        ),
        (
            "a volume to which the image is written is not deleted",
            |it| {
                it.exist(&["root-volume"], &CloudObjectState::Working);
                it.owner.desire = DesiredState::Gone;
            },
            "end",
        ),
    ];
    for (rule, prepare, want) in rows {
        let mut situation = Situation::new(vm());
        prepare(&mut situation);
        let shape = vm_desired_objects(&situation.owner);
        let next = situation.next(ObjectOwner::Vm(&situation.owner), &shape);
        assert_eq!(next, *want, "{rule}");
    }
}
