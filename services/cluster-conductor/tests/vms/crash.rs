//! Conductors that are killed before and after calls to the cloud, reads included. The next conductor knows only the store, and is
//! killed at a later new call. The result must be that of a conductor that is never killed.

use std::collections::BTreeSet;
use std::time::Duration;

use cluster_core::{SnapshotState, SnapshotUuid, Vm, VmActionKind, VmPhase};
use jiff::Timestamp;
use lease::Terms;
use openstack_emulator::{Cloud, Stop};
use peers::kill_every;

use crate::actions::larger;
use crate::given::{VmFixture, lent};

/// A conductor is killed at every `EVERY`-th call that was not made before, and with `BEDPLATE_SOAK` at each.
const EVERY: usize = 3;

/// The parts of a VM's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Create,
    Stop,
    Start,
    Reboot,
    Resize,
    Snapshot,
    Forget,
    /// The lease ends: the VM is switched off and copied.
    End,
    /// The end of the lease is undone: the VM runs again, and the copy is deleted.
    Undo,
    Delete,
}

impl Part {
    async fn ask(self, given: &VmFixture, snapshot: &mut Option<SnapshotUuid>) {
        match self {
            Part::Create => {}
            Part::Stop => given.action(VmActionKind::Stop).await,
            Part::Start => given.action(VmActionKind::Start).await,
            Part::Reboot => given.action(VmActionKind::RebootHard).await,
            Part::Resize => given.action(VmActionKind::Resize(larger())).await,
            Part::Snapshot => *snapshot = Some(given.snapshot("one").await),
            Part::Forget => given.delete_snapshot(snapshot.unwrap()).await,
            Part::End => drop(given.change(|vm| lent(vm, 4)).await),
            Part::Undo => {
                *snapshot = given.find().await.unwrap().copy;
                let undone = |mut vm: Vm| {
                    let (lease, schedule) =
                        (vm.lease.take().unwrap(), &given.settings.vms.schedule);
                    let undone = lease.undone("u", schedule, Terms::default(), Timestamp::now());
                    Vm { lease: Some(undone.unwrap()), ..vm }
                };
                given.change(undone).await;
            }
            Part::Delete => given.delete().await,
        }
    }

    async fn ends(self, given: &VmFixture, snapshot: Option<SnapshotUuid>) {
        match self {
            Part::Create => {
                given.until_whole().await;
            }
            Part::Stop => {
                given.until(|vm| vm.phase() == VmPhase::Stopped && vm.action.is_none()).await;
            }
            Part::Start | Part::Reboot => {
                given.until(|vm| vm.phase() == VmPhase::Active && vm.action.is_none()).await;
            }
            Part::Resize => {
                let is_larger = |vm: &Vm| vm.action.is_none() && vm.flavor.id == larger().id;
                given.until(|vm| is_larger(vm) && vm.phase() == VmPhase::Active).await;
            }
            Part::Snapshot => {
                given.until_snapshot(snapshot.unwrap(), Some(SnapshotState::Active)).await;
            }
            Part::Forget => {
                given.until_snapshot(snapshot.unwrap(), None).await;
            }
            Part::End => {
                let is_copied = |vm: &Vm| vm.lease.as_ref().unwrap().taken.copied_at.is_some();
                given.until(|vm| vm.phase() == VmPhase::Expired && is_copied(vm)).await;
            }
            Part::Undo => {
                given.until(|vm| vm.phase() == VmPhase::Active && vm.copy.is_none()).await;
                given.until_snapshot(snapshot.unwrap(), None).await;
            }
            Part::Delete => given.until_gone().await,
        }
    }
}

/// Kills a conductor at each call of these parts of a VM's life, and asserts the least number of calls of each part.
async fn life(mut given: VmFixture, stop: Stop, parts: &[(Part, usize)]) {
    given.settings.look_every = Duration::from_millis(50);
    let mut snapshot = None;
    let mut counts = Vec::new();
    for (part, _) in parts.iter().copied() {
        part.ask(&given, &mut snapshot).await;
        let points = at_calls(&given, part, snapshot, stop).await;
        counts.push(points.len());
        if given.find().await.is_none() {
            continue;
        }
        let last = given.process();
        part.ends(&given, snapshot).await;
        let is_twin = |kind: &str| kind.starts_with("twin/");
        let settles = async {
            while given.store.ledger_of(given.id).await.unwrap().iter().any(|it| is_twin(&it.kind))
            {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), settles).await.unwrap();
        if part != Part::Delete {
            given.assert_once();
        }
        last.kill().await;
        let images = usize::from([Part::Snapshot, Part::End].contains(&part));
        assert_eq!(given.new_images().len(), images, "{part:?}");
    }
    let are_enough = counts
        .iter()
        .zip(parts)
        .all(|(count, (_, at_least))| *count >= at_least / kill_every(EVERY));
    assert!(are_enough, "{counts:?} of {parts:?}");
}

async fn at_calls(
    given: &VmFixture,
    part: Part,
    snapshot: Option<SnapshotUuid>,
    stop: Stop,
) -> BTreeSet<String> {
    let mut points = BTreeSet::new();
    given.cloud.set_trap_at(stop, kill_every(EVERY));
    loop {
        let process = given.process();
        let caught = tokio::select! {
            biased;
            call = given.cloud.wait_until(Cloud::caught) => Some(call),
            () = part.ends(given, snapshot) => None,
        };
        process.kill().await;
        let Some(call) = caught else { break };
        given.assert_all_is_named().await;
        assert!(points.insert(call), "it was caught before: {points:?}");
        given.cloud.open_trap();
    }
    given.cloud.remove_trap();
    points
}

/// The parts of a VM's life, each with its least number of calls.
const LIFE: [(Part, usize); 10] = [
    (Part::Create, 25),
    (Part::Stop, 8),
    (Part::Start, 8),
    (Part::Reboot, 8),
    (Part::Resize, 8),
    (Part::Snapshot, 8),
    (Part::Forget, 8),
    (Part::End, 9),
    (Part::Undo, 10),
    (Part::Delete, 12),
];
const LIFE_ON_A_VOLUME: [(Part, usize); 3] =
    [(Part::Create, 27), (Part::Reboot, 8), (Part::Delete, 15)];

async fn on_a_volume() -> VmFixture {
    VmFixture::vm(|vm| Vm { root_volume: Some(7), ..vm }).await
}

#[tokio::test]
async fn killed_before_calls() {
    life(VmFixture::vm(|vm| vm).await, Stop::Before, &LIFE).await;
}

#[tokio::test]
async fn killed_after_calls() {
    life(VmFixture::vm(|vm| vm).await, Stop::After, &LIFE).await;
}

#[tokio::test]
async fn killed_before_calls_of_a_vm_with_a_root_volume() {
    life(on_a_volume().await, Stop::Before, &LIFE_ON_A_VOLUME).await;
}

#[tokio::test]
async fn killed_after_calls_of_a_vm_with_a_root_volume() {
    life(on_a_volume().await, Stop::After, &LIFE_ON_A_VOLUME).await;
}
