//! Decides which units start, and in which order.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::reaper::Reaper;
use crate::service::{self, LOGS, StartResult};
use crate::unit::{Unit, load};

/// The target that the machine starts.
const GOAL: &str = "multi-user.target";

/// The results of the starts so far.
#[derive(Default)]
struct StartResults {
    started: Mutex<HashMap<String, StartResult>>,
    changed: Condvar,
}

/// Starts the enabled units. Returns only if a unit contains a setting that is not supported.
pub(crate) fn run(root: &Path) -> Result<()> {
    fs::create_dir_all(LOGS).context("cannot make the folder of logs")?;
    let units = wanted(root)?;
    let began = Instant::now();
    let reaper = Arc::new(Reaper::default());
    let board = Arc::new(StartResults::default());
    for unit in units.values() {
        // `After` only matters if both units are started.
        let before: Vec<String> =
            unit.after.iter().filter(|name| units.contains_key(*name)).cloned().collect();
        let (unit, reaper, board) = (unit.clone(), Arc::clone(&reaper), Arc::clone(&board));
        thread::spawn(move || {
            before.iter().for_each(|name| {
                board.wait(name);
            });
            if let Some(missing) = board.missing(&unit, &before) {
                say(began, &format!("{}: not started, because it requires {missing}", unit.name));
                return board.post(began, &unit.name, StartResult::Failed);
            }
            say(began, &format!("{}: starts", unit.name));
            let report = |line: String| say(began, &line);
            service::run(&unit, &reaper, &report, &|how| board.post(began, &unit.name, how));
        });
    }
    reaper.run()
}

/// Whether a required unit with this result lets the requiring unit start. systemd.unit(5): an unmet condition does not count as a failure.
fn is_met(how: StartResult) -> bool {
    match how {
        StartResult::Yes | StartResult::Skipped => true,
        StartResult::Failed => false,
    }
}

/// The enabled units, and the units that they want or require.
fn wanted(root: &Path) -> Result<BTreeMap<String, Unit>> {
    let mut units = BTreeMap::new();
    let mut open: Vec<String> = Vec::new();
    for name in enabled(root)? {
        let unit = load(root, &name)?
            .with_context(|| format!("{name} is enabled, but no such unit exists"))?;
        if !unit.wanted_by.contains(GOAL) {
            bail!("{name} is enabled, but not wanted by {GOAL}");
        }
        open.push(name);
    }
    while let Some(name) = open.pop() {
        if units.contains_key(&name) || !name.ends_with(".service") {
            continue;
        }
        if let Some(unit) = load(root, &name)? {
            open.extend(unit.wants.iter().chain(&unit.requires).cloned());
            units.insert(name, unit);
        }
    }
    for unit in units.values() {
        let is_unknown = |name: &&String| name.ends_with(".service") && !units.contains_key(*name);
        if let Some(name) = unit.requires.iter().find(is_unknown) {
            bail!("{} requires {name}, which does not exist", unit.name);
        }
    }
    Ok(units)
}

/// The units enabled by the administrator's presets, systemd.preset(5). Presets of the image only concern its own units.
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

impl StartResults {
    /// Waits until the unit has started, was skipped or has failed.
    fn wait(&self, name: &str) -> StartResult {
        let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match started.get(name) {
                Some(how) => return *how,
                None => {
                    started = self.changed.wait(started).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    /// The failed unit that `unit` requires and starts after. Without `After` both units start in parallel, and systemd does not wait for
    /// the required unit either.
    fn missing(&self, unit: &Unit, before: &[String]) -> Option<String> {
        let required = before.iter().filter(|name| unit.requires.contains(*name));
        required.into_iter().find(|name| !is_met(self.wait(name))).cloned()
    }

    fn post(&self, began: Instant, name: &str, how: StartResult) {
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
        // If the log cannot be written, its reader notices the missing lines.
        let _ = writeln!(log, "{:8.1} {line}", began.elapsed().as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A root folder with these units, of which the first is enabled.
    fn machine(units: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a folder");
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
            fs::write(path, text).expect("it can be written");
        };
        for (name, text) in units {
            write(&format!("etc/systemd/system/{name}"), text);
        }
        write("etc/systemd/system-preset/10.preset", &format!("enable {}\n", units[0].0));
        root
    }

    const MAIN: &str = "[Unit]\nRequires=base.service\nAfter=base.service\n[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n";
    const BASE: &str = "[Service]\nType=oneshot\nExecStart=/bin/false\n";

    #[test]
    fn a_unit_whose_requirement_failed_does_not_start() {
        let root = machine(&[("main.service", MAIN), ("base.service", BASE)]);
        let units = wanted(root.path()).expect("they are understood");
        let main = &units["main.service"];
        let before = ["base.service".to_owned()];
        for (how, missing) in [
            (StartResult::Failed, Some("base.service")),
            (StartResult::Skipped, None),
            (StartResult::Yes, None),
        ] {
            let board = StartResults::default();
            board.started.lock().expect("nobody panicked").insert("base.service".to_owned(), how);
            assert_eq!(board.missing(main, &before).as_deref(), missing, "{how:?}");
        }
    }

    #[test]
    fn a_wanted_unit_may_fail() {
        let wants = MAIN.replace("Requires", "Wants");
        let root = machine(&[("main.service", &wants), ("base.service", BASE)]);
        let units = wanted(root.path()).expect("they are understood");
        let board = StartResults::default();
        let failed = ("base.service".to_owned(), StartResult::Failed);
        board.started.lock().expect("nobody panicked").extend([failed]);
        assert_eq!(board.missing(&units["main.service"], &["base.service".to_owned()]), None);
    }

    #[test]
    fn a_missing_required_unit_is_an_error_and_a_missing_wanted_unit_is_not() {
        let why = wanted(machine(&[("main.service", MAIN)]).path()).expect_err("it lacks one");
        assert_eq!(why.to_string(), "main.service requires base.service, which does not exist");
        let wants = MAIN.replace("Requires", "Wants");
        assert!(wanted(machine(&[("main.service", &wants)]).path()).is_ok());
    }
}
