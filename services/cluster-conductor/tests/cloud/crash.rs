//! Conductors that are killed at every effect: before and after each call, to the cloud and to the cluster's own API, reads
//! as well; after writes to their store, and before those that follow.
//!
//! Each kill is followed by a conductor that knows only the store, and is killed at the next effect that comes. So a cluster
//! is made, grown, shrunk and deleted by hundreds of them, and has to become the one that a conductor makes whom nobody kills.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use openstack_emulator::{Cloud, Stop};

use crate::gate::Gate;
use crate::given::Given;
use crate::parts::Part;

/// How conductors die.
#[derive(Clone, Copy, Debug)]
enum Death {
    /// They do not.
    Never,
    /// At each call.
    AtCalls(Stop),
    /// As soon as something new was written, with all that is under way.
    AfterWrites,
    /// When they come to write what follows: all that was under way has been done.
    BeforeNextWrites,
}

/// How often a looked-at cluster is looked at: a conductor that lives for a moment looks once.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// At which points of each part conductors died.
type Points = BTreeMap<Part, BTreeSet<String>>;

/// A cluster's life: the points at which conductors died, and what the cluster was after each part.
async fn life(death: Death) -> (Points, Vec<Vec<String>>) {
    let mut given = Given::cluster_in_file(Part::MASTERS, 1).await;
    given.settings.look_every = LOOK_EVERY;
    let (mut points, mut portraits) = (Points::new(), Vec::new());
    let mut gate = Gate::of(&given.scratch.as_ref().unwrap().url).await;
    for part in Part::ALL {
        part.ask(&given).await;
        let died = match death {
            Death::Never => BTreeSet::new(),
            Death::AtCalls(stop) => at_calls(&given, part, stop).await,
            Death::AfterWrites => at_writes(&given, part, &mut gate, Duration::ZERO).await,
            Death::BeforeNextWrites => at_writes(&given, part, &mut gate, SETTLES).await,
        };
        points.insert(part, died);
        if given.find().await.is_none() {
            continue;
        }
        let last = given.process();
        part.ends(&given).await;
        part.assert_whole(&given).await;
        last.kill().await;
        if part != Part::Delete {
            portraits.push(given.portrait().await);
        }
    }
    (points, portraits)
}

/// How long what is under way takes to end, but for what it has to write.
const SETTLES: Duration = Duration::from_millis(15);

/// Kills conductors at each call of a part of their cluster's life, once each, until it has come to its end.
async fn at_calls(given: &Given, part: Part, stop: Stop) -> BTreeSet<String> {
    let mut points = BTreeSet::new();
    given.cloud.set_trap(stop);
    loop {
        let process = given.process();
        let caught = tokio::select! {
            biased;
            call = given.cloud.wait_until(Cloud::caught) => Some(call),
            () = part.ends(given) => None,
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

/// Kills conductors at each write of a part of their cluster's life, once for each that differs from those before; `late`
/// is how long they live on without being able to write.
async fn at_writes(given: &Given, part: Part, gate: &mut Gate, late: Duration) -> BTreeSet<String> {
    let mut points = BTreeSet::new();
    gate.forget().await;
    loop {
        let process = given.process();
        let shut = tokio::select! {
            biased;
            shut = gate.shut() => Some(shut),
            () = part.ends(given) => None,
        };
        if shut.is_some() {
            tokio::time::sleep(late).await;
        }
        process.kill().await;
        let Some(shut) = shut else { break };
        given.assert_all_is_named().await;
        points.insert(format!("{}: {}", points.len(), shut.last));
    }
    points
}

/// Has conductors die at so many points at least in each part, and asserts that it becomes the same cluster.
async fn check(death: Death, at_least: [usize; 4]) {
    let ((points, portraits), (_, undisturbed)) = tokio::join!(life(death), life(Death::Never));
    for (portrait, undisturbed) in portraits.iter().zip(&undisturbed) {
        let (only, not): (Vec<_>, Vec<_>) = (
            portrait.iter().filter(|line| !undisturbed.contains(line)).collect(),
            undisturbed.iter().filter(|line| !portrait.contains(line)).collect(),
        );
        assert!(only.is_empty() && not.is_empty(), "only here: {only:?}, not here: {not:?}");
        assert_eq!(portrait.len(), undisturbed.len());
    }
    assert_eq!(portraits.len(), undisturbed.len());
    let counts: Vec<usize> = points.values().map(BTreeSet::len).collect();
    let are_enough = counts.iter().zip(at_least).all(|(count, at_least)| *count >= at_least);
    assert!(are_enough, "{death:?}: {counts:?} of {at_least:?}: {points:?}");
}

/// How many calls each part has at least, which nobody comes too late for.
const CALLS: [usize; 4] = [70, 30, 55, 50];

/// How many writes of each part are caught at least: on a busy machine several are written before anybody sees the first.
const WRITES: [usize; 4] = [5, 1, 5, 3];

#[tokio::test]
async fn killed_before_each_call() {
    check(Death::AtCalls(Stop::Before), CALLS).await;
}

#[tokio::test]
async fn killed_after_each_call() {
    check(Death::AtCalls(Stop::After), CALLS).await;
}

#[tokio::test]
async fn killed_after_each_write() {
    check(Death::AfterWrites, WRITES).await;
}

#[tokio::test]
async fn killed_before_each_next_write() {
    check(Death::BeforeNextWrites, WRITES).await;
}
