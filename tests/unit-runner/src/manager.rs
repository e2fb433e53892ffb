//! Which units start, and in which order.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::reaper::Reaper;
use crate::service::{self, Started};
use crate::unit::{Unit, load};

/// Where logs go.
pub(crate) const LOGS: &str = "/var/log/units";
/// What a machine starts.
const GOAL: &str = "multi-user.target";

/// How starts went so far.
#[derive(Default)]
struct Board {
    started: Mutex<HashMap<String, Started>>,
    changed: Condvar,
}

/// Starts what is enabled, and never returns unless a unit is not understood.
pub(crate) fn run(root: &Path) -> Result<()> {
    fs::create_dir_all(LOGS).context("cannot make the folder of logs")?;
    let units = wanted(root)?;
    let began = Instant::now();
    let reaper = Arc::new(Reaper::default());
    let board = Arc::new(Board::default());
    for unit in units.values() {
        // An order between two units matters only if both are started.
        let before: Vec<String> =
            unit.after.iter().filter(|name| units.contains_key(*name)).cloned().collect();
        let (unit, reaper, board) = (unit.clone(), Arc::clone(&reaper), Arc::clone(&board));
        thread::spawn(move || {
            before.iter().for_each(|name| board.wait(name));
            say(began, &format!("{}: starts", unit.name));
            let report = |line: String| say(began, &line);
            service::run(&unit, &reaper, &report, &|how| board.post(began, &unit.name, how));
        });
    }
    reaper.run()
}

/// Enabled units and what they want.
fn wanted(root: &Path) -> Result<BTreeMap<String, Unit>> {
    let mut units = BTreeMap::new();
    let mut open: Vec<String> = Vec::new();
    for name in enabled(root)? {
        let unit = load(root, &name)?
            .with_context(|| format!("{name} is enabled, and there is no such unit"))?;
        if !unit.wanted_by.contains(GOAL) {
            bail!("{name} is enabled, and not wanted by {GOAL}");
        }
        open.push(name);
    }
    while let Some(name) = open.pop() {
        if units.contains_key(&name) || !name.ends_with(".service") {
            continue;
        }
        if let Some(unit) = load(root, &name)? {
            open.extend(unit.wants.iter().cloned());
            units.insert(name, unit);
        }
    }
    Ok(units)
}

/// What the presets of this machine's administrator enable. systemd.preset(5); those of the image are for its own units.
fn enabled(root: &Path) -> Result<BTreeSet<String>> {
    let folder = root.join("etc/systemd/system-preset");
    let mut names = BTreeSet::new();
    for entry in
        fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?
    {
        let text = fs::read_to_string(entry?.path())?;
        names.extend(
            text.lines()
                .filter_map(|line| line.strip_prefix("enable "))
                .map(|it| it.trim().to_owned()),
        );
    }
    Ok(names)
}

impl Board {
    fn wait(&self, name: &str) {
        let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        while !started.contains_key(name) {
            started = self.changed.wait(started).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn post(&self, began: Instant, name: &str, how: Started) {
        let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        if started.insert(name.to_owned(), how).is_none() {
            say(began, &format!("{name}: {how:?}"));
        }
        self.changed.notify_all();
    }
}

fn say(began: Instant, line: &str) {
    let log = OpenOptions::new().create(true).append(true).open(Path::new(LOGS).join("runner.log"));
    if let Ok(mut log) = log {
        // Whoever looks for it finds it missing.
        let _ = writeln!(log, "{:8.1} {line}", began.elapsed().as_secs_f64());
    }
}
