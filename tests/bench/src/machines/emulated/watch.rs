//! Watches emulated machines: their true power, and how long each takes from its first start to its installed system.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use bmc_emulator::ReportedPower;
use machine_emulator::{Machine, Stage};
use serde::{Deserialize, Serialize};

/// How often each witness changes the power that it reports.
const SWITCH_EVERY: Duration = Duration::from_secs(180);

/// The power that a machine's BMC reports, and for how many milliseconds already.
pub(crate) type TruePower = (bool, u64);

/// The answer to `outcome`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// The seconds of each installed machine from its first start until its system ran, in ascending order.
    pub(crate) took: Vec<f64>,
    /// The most sessions that a BMC had at the same time.
    pub(crate) most_sessions: usize,
    /// How many requests for a session found every slot taken.
    pub(crate) refused_sessions: usize,
}

/// The observations of all machines.
#[derive(Clone)]
pub(super) struct Watched(Arc<Mutex<Vec<Seen>>>);

#[derive(Clone, Copy)]
struct Seen {
    is_on: bool,
    /// When the power last changed.
    since: Instant,
    /// The first start.
    started: Option<Instant>,
    /// The first start of the system on the disk.
    installed: Option<Instant>,
}

impl Watched {
    pub(super) fn all_off(count: usize) -> Watched {
        let seen = Seen { is_on: false, since: Instant::now(), started: None, installed: None };
        Watched(Arc::new(Mutex::new(vec![seen; count])))
    }

    fn seen(&self) -> MutexGuard<'_, Vec<Seen>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note_power(&self, index: usize, is_on: bool) {
        if let Some(seen) = self.seen().get_mut(index).filter(|seen| seen.is_on != is_on) {
            let now = Instant::now();
            (seen.is_on, seen.since) = (is_on, now);
            seen.started.get_or_insert(now);
        }
    }

    fn note_installed(&self, index: usize) {
        if let Some(seen) = self.seen().get_mut(index) {
            seen.installed.get_or_insert_with(Instant::now);
        }
    }

    fn powers(&self) -> Vec<TruePower> {
        let lasts = |since: Instant| u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.seen().iter().map(|seen| (seen.is_on, lasts(seen.since))).collect()
    }

    fn took(&self) -> Vec<f64> {
        let took = |seen: &Seen| Some(seen.installed?.duration_since(seen.started?).as_secs_f64());
        let mut all: Vec<f64> = self.seen().iter().filter_map(took).collect();
        all.sort_by(f64::total_cmp);
        all
    }
}

/// Follows a machine as long as it exists.
pub(super) async fn follow(machine: Machine, index: usize, watched: Watched) {
    let (mut power, mut stage) = (machine.chassis().power(), machine.stage());
    loop {
        let changed = tokio::select! {
            changed = power.changed() => changed,
            changed = stage.changed() => changed,
        };
        if changed.is_err() {
            return;
        }
        let is_on = power.borrow_and_update().on;
        watched.note_power(index, is_on);
        let is_installed = *stage.borrow_and_update() == Stage::Installed;
        if is_installed {
            watched.note_installed(index);
        }
    }
}

/// Changes the power that the BMCs of these machines report, one after the other.
pub(super) async fn switch_in_turn(witnesses: Vec<(usize, Machine)>, watched: Watched) {
    let Ok(count @ 1..) = u32::try_from(witnesses.len()) else { return };
    let mut due = tokio::time::interval(SWITCH_EVERY / count);
    let mut next = ReportedPower::On;
    loop {
        for (index, machine) in &witnesses {
            due.tick().await;
            machine.chassis().faults().update(|faults| faults.reported_power = Some(next));
            watched.note_power(*index, next == ReportedPower::On);
        }
        next = match next {
            ReportedPower::On => ReportedPower::Off,
            ReportedPower::Off => ReportedPower::On,
        };
    }
}

/// Answers a question of the bench.
pub(super) fn answer(
    question: &str,
    watched: &Watched,
    machines: &[Machine],
) -> anyhow::Result<String> {
    let answer = match question {
        "power" => serde_json::to_string(&watched.powers()),
        "outcome" => {
            let sessions = || machines.iter().map(|machine| machine.chassis().sessions());
            serde_json::to_string(&Outcome {
                took: watched.took(),
                most_sessions: sessions().map(|used| used.most()).max().unwrap_or_default(),
                refused_sessions: sessions().map(|used| used.refused()).sum(),
            })
        }
        _ => anyhow::bail!("no such question: {question}"),
    };
    answer.context("cannot write an answer")
}
