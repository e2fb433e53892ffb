//! Conductors that are killed before and after every call to the cloud, reads included. The next conductor knows only the store, and is
//! killed at the next new call. The result must be that of a conductor that is never killed.

use std::collections::BTreeSet;
use std::time::Duration;

use cluster_core::{ErrandKind, SnapshotState, SnapshotUuid, Vm, VmPhase};
use openstack_emulator::{Cloud, Stop};

use crate::errands::larger;
use crate::given::Given;

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
    Delete,
}

impl Part {
    const ALL: [Part; 8] = [
        Part::Create,
        Part::Stop,
        Part::Start,
        Part::Reboot,
        Part::Resize,
        Part::Snapshot,
        Part::Forget,
        Part::Delete,
    ];

    /// Requests the part.
    async fn ask(self, given: &Given, snapshot: &mut Option<SnapshotUuid>) {
        match self {
            Part::Create => {}
            Part::Stop => given.errand(ErrandKind::Stop).await,
            Part::Start => given.errand(ErrandKind::Start).await,
            Part::Reboot => given.errand(ErrandKind::RebootHard).await,
            Part::Resize => given.errand(ErrandKind::Resize(larger())).await,
            Part::Snapshot => *snapshot = Some(given.snapshot("one").await),
            Part::Forget => given.delete_snapshot(snapshot.unwrap()).await,
            Part::Delete => given.delete().await,
        }
    }

    /// Waits until the part ends.
    async fn ends(self, given: &Given, snapshot: Option<SnapshotUuid>) {
        match self {
            Part::Create => {
                given.until_whole().await;
            }
            Part::Stop => {
                given.until(|vm| vm.phase() == VmPhase::Stopped && vm.errand.is_none()).await;
            }
            Part::Start | Part::Reboot => {
                given.until(|vm| vm.phase() == VmPhase::Active && vm.errand.is_none()).await;
            }
            Part::Resize => {
                let is_larger = |vm: &Vm| vm.errand.is_none() && vm.flavor.id == larger().id;
                given.until(|vm| is_larger(vm) && vm.phase() == VmPhase::Active).await;
            }
            Part::Snapshot => {
                given.until_snapshot(snapshot.unwrap(), Some(SnapshotState::Active)).await;
            }
            Part::Forget => {
                given.until_snapshot(snapshot.unwrap(), None).await;
            }
            Part::Delete => given.until_gone().await,
        }
    }
}

/// Kills a conductor at each call of a VM's life, and asserts the least number of calls of each part.
async fn life(stop: Stop, at_least: [usize; 8]) {
    let mut given = Given::vm(|vm| vm).await;
    given.settings.look_every = Duration::from_millis(50);
    let mut snapshot = None;
    let mut counts = Vec::new();
    for part in Part::ALL {
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
        tokio::time::timeout(Duration::from_secs(20), settles).await.unwrap();
        if part != Part::Delete {
            given.assert_once();
        }
        last.kill().await;
        let images = usize::from(part == Part::Snapshot);
        assert_eq!(given.new_images().len(), images, "{part:?}");
    }
    let are_enough = counts.iter().zip(at_least).all(|(count, at_least)| *count >= at_least);
    assert!(are_enough, "{counts:?} of {at_least:?}");
}

async fn at_calls(
    given: &Given,
    part: Part,
    snapshot: Option<SnapshotUuid>,
    stop: Stop,
) -> BTreeSet<String> {
    let mut points = BTreeSet::new();
    given.cloud.set_trap(stop);
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

const CALLS: [usize; 8] = [12, 3, 2, 2, 3, 2, 1, 5];

#[tokio::test]
async fn killed_before_each_call() {
    life(Stop::Before, CALLS).await;
}

#[tokio::test]
async fn killed_after_each_call() {
    life(Stop::After, CALLS).await;
}
