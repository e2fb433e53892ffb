//! Conductors that are killed at their effects: before and after calls to the cloud and to the cluster's own API, reads included, and
//! between writes to their store.
//!
//! The next conductor knows only the store, and is killed at a later new effect. Many of them create, grow, shrink, upgrade and delete a
//! cluster, which must become the same as one whose conductor is never killed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use openstack_emulator::{Cloud, Stop};
use peers::kill_every;

use crate::gate::Gate;
use crate::given::ClusterFixture;
use crate::parts::Part;

/// A conductor is killed at every `EVERY`-th call that was not made before, and with `BEDPLATE_SOAK` at each.
pub(crate) const EVERY: usize = 3;

/// When conductors are killed.
#[derive(Clone, Copy, Debug)]
enum Death {
    Never,
    AtCalls(Stop),
    /// As soon as something new was written, with everything in progress.
    AfterWrites,
    /// Before the write after that, when everything in progress has ended.
    BeforeNextWrites,
}

/// How often a cluster is observed; long enough that a conductor that is killed soon observes once.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The points at which conductors were killed, by part.
type Points = BTreeMap<Part, BTreeSet<String>>;

/// Runs the life of a cluster. Returns the points at which conductors were killed, and the state of the cluster after each part.
async fn life(death: Death) -> (Points, Vec<Vec<String>>) {
    let mut given = ClusterFixture::cluster_in_file(Part::MASTERS, 1).await;
    given.settings.look_every = LOOK_EVERY;
    let (mut points, mut portraits) = (Points::new(), Vec::new());
    let gate = Gate::of(&given.scratch.as_ref().unwrap().url).await;
    for part in Part::ALL {
        part.ask(&given).await;
        let died = match death {
            Death::Never => BTreeSet::new(),
            Death::AtCalls(stop) => at_calls(&given, part, stop).await,
            Death::AfterWrites => at_writes(&given, part, &gate, Duration::ZERO).await,
            Death::BeforeNextWrites => at_writes(&given, part, &gate, SETTLES).await,
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

/// How long work in progress takes to end, except for its writes.
const SETTLES: Duration = Duration::from_millis(15);

/// Kills a conductor at calls of a part, once per call, until the part ends.
async fn at_calls(given: &ClusterFixture, part: Part, stop: Stop) -> BTreeSet<String> {
    let mut points = BTreeSet::new();
    given.cloud.set_trap_at(stop, kill_every(EVERY));
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

/// Kills a conductor at each write of a part, once per distinct write, until the part ends. `late` is how long a conductor lives on without
/// being able to write.
async fn at_writes(
    given: &ClusterFixture,
    part: Part,
    gate: &Gate,
    late: Duration,
) -> BTreeSet<String> {
    let mut points = BTreeSet::new();
    gate.forget().await;
    loop {
        let process = given.process_with(gate.tripwire());
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
        points.insert(format!("{}: {shut}", points.len()));
    }
    points
}

/// Asserts that conductors were killed at this many points of each part, and that the cluster is the same as an undisturbed one.
async fn check(death: Death, at_least: [usize; 5]) {
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

/// The least number of calls of each part.
const CALLS: [usize; 5] = [70, 30, 55, 55, 50];

/// The least number of writes of each part that are caught.
const WRITES: [usize; 5] = [25, 6, 15, 20, 25];

#[tokio::test]
async fn killed_before_calls() {
    check(Death::AtCalls(Stop::Before), CALLS.map(|calls| calls / kill_every(EVERY))).await;
}

#[tokio::test]
async fn killed_after_calls() {
    check(Death::AtCalls(Stop::After), CALLS.map(|calls| calls / kill_every(EVERY))).await;
}

#[tokio::test]
async fn killed_after_each_write() {
    check(Death::AfterWrites, WRITES).await;
}

#[tokio::test]
async fn killed_before_each_next_write() {
    check(Death::BeforeNextWrites, WRITES).await;
}
