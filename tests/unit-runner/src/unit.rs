//! Parses a unit from its file and its drop-ins.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::command::Command;

/// The folders of units; the first folder that contains a unit wins, systemd.unit(5).
const FOLDERS: [&str; 4] = [
    "etc/systemd/system",
    "run/systemd/system",
    "usr/local/lib/systemd/system",
    "usr/lib/systemd/system",
];

/// Settings that limit, describe or stop a service. The runner ignores these settings, because they do not change what the service does here.
const IGNORED_SETTINGS: [&str; 22] = [
    "CPUAccounting",
    "DefaultDependencies",
    "Delegate",
    "Description",
    "Documentation",
    "KillMode",
    "LimitCORE",
    "LimitNOFILE",
    "LimitNPROC",
    "MemoryAccounting",
    "OOMScoreAdjust",
    "RequiresMountsFor",
    "RestartMode",
    "Slice",
    "StandardError",
    "StandardOutput",
    "StartLimitBurst",
    "StartLimitInterval",
    "StartLimitIntervalSec",
    "SyslogIdentifier",
    "TasksMax",
    "TimeoutStopSec",
];

/// When a service counts as started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Simple,
    Notify,
    Oneshot,
}

/// When a service that has ended is restarted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Restart {
    No,
    OnFailure,
    Always,
}

/// A line of a service's environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Variables {
    Line(String),
    File { path: PathBuf, optional: bool },
}

/// A unit with the settings that this program supports.
#[derive(Clone, Debug)]
pub(crate) struct Unit {
    pub(crate) name: String,
    pub(crate) wants: BTreeSet<String>,
    /// Units that must have started before this one may start.
    pub(crate) requires: BTreeSet<String>,
    pub(crate) after: BTreeSet<String>,
    pub(crate) wanted_by: BTreeSet<String>,
    /// Paths that must exist, or with `false` must not exist.
    pub(crate) conditions: Vec<(PathBuf, bool)>,
    pub(crate) kind: Kind,
    pub(crate) before_start: Vec<Command>,
    pub(crate) start: Vec<Command>,
    pub(crate) after_start: Vec<Command>,
    pub(crate) after_stop: Vec<Command>,
    pub(crate) variables: Vec<Variables>,
    pub(crate) restart: Restart,
    pub(crate) restart_after: Duration,
    pub(crate) start_timeout: Option<Duration>,
}

/// Loads the unit of this name; `None` if it has no file.
pub(crate) fn load(root: &Path, name: &str) -> Result<Option<Unit>> {
    let file = FOLDERS.iter().map(|folder| root.join(folder).join(name)).find(|path| path.exists());
    let Some(file) = file else { return Ok(None) };
    let mut unit = Unit::new(name);
    let mut files = vec![file];
    files.extend(dropins(root, name));
    for file in files {
        let text =
            fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        unit.read(&text).with_context(|| format!("unsupported setting in {}", file.display()))?;
    }
    Ok(Some(unit))
}

fn dropins(root: &Path, name: &str) -> Vec<PathBuf> {
    let folders = FOLDERS.iter().map(|folder| root.join(folder).join(format!("{name}.d")));
    let entries = folders.filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|it| it == "conf"));
    files.sort_by_key(|file| file.file_name().map(ToOwned::to_owned));
    files
}

impl Unit {
    fn new(name: &str) -> Self {
        Unit {
            name: name.to_owned(),
            wants: BTreeSet::new(),
            requires: BTreeSet::new(),
            after: BTreeSet::new(),
            wanted_by: BTreeSet::new(),
            conditions: Vec::new(),
            kind: Kind::Simple,
            before_start: Vec::new(),
            start: Vec::new(),
            after_start: Vec::new(),
            after_stop: Vec::new(),
            variables: Vec::new(),
            restart: Restart::No,
            restart_after: Duration::from_millis(100),
            start_timeout: None,
        }
    }

    fn read(&mut self, text: &str) -> Result<()> {
        let mut section = String::new();
        let joined = text.replace("\\\n", " ");
        for line in joined
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with(['#', ';']))
        {
            if let Some(name) = line.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
                name.clone_into(&mut section);
                continue;
            }
            let Some((name, value)) = line.split_once('=') else { bail!("no setting: {line}") };
            if !section.starts_with("X-") {
                self.set(&section, name.trim(), value.trim())?;
            }
        }
        Ok(())
    }

    fn set(&mut self, section: &str, name: &str, value: &str) -> Result<()> {
        let names = || value.split_whitespace().map(str::to_owned);
        match (section, name) {
            ("Unit", "Wants") => self.wants.extend(names()),
            ("Unit", "Requires") => self.requires.extend(names()),
            ("Unit", "After") => self.after.extend(names()),
            ("Unit", "ConditionPathExists") => {
                let (path, there) =
                    value.strip_prefix('!').map_or((value, true), |path| (path, false));
                self.conditions.push((path.into(), there));
            }
            ("Install", "WantedBy" | "RequiredBy") => self.wanted_by.extend(names()),
            ("Install", "Alias") => {}
            ("Service", "Type") => {
                self.kind = match value {
                    "simple" | "exec" => Kind::Simple,
                    "notify" => Kind::Notify,
                    "oneshot" => Kind::Oneshot,
                    _ => bail!("a service of type {value}"),
                }
            }
            ("Service", "ExecStartPre") => command(&mut self.before_start, value)?,
            ("Service", "ExecStart") => command(&mut self.start, value)?,
            ("Service", "ExecStartPost") => command(&mut self.after_start, value)?,
            ("Service", "ExecStopPost") => command(&mut self.after_stop, value)?,
            ("Service", "Environment") => self.variables.push(Variables::Line(value.to_owned())),
            ("Service", "EnvironmentFile") => {
                let path = value.trim_start_matches('-');
                let optional = path.len() < value.len();
                self.variables.push(Variables::File { path: path.into(), optional });
            }
            ("Service", "Restart") => {
                self.restart = match value {
                    "no" => Restart::No,
                    "on-failure" => Restart::OnFailure,
                    "always" => Restart::Always,
                    _ => bail!("Restart={value}"),
                }
            }
            ("Service", "RestartSec") => {
                self.restart_after =
                    span(value)?.context("RestartSec=infinity is not supported")?;
            }
            ("Service", "TimeoutStartSec") => self.start_timeout = span(value)?,
            // Ignored: no other unit restarts a oneshot here, and units are not stopped before the machine.
            ("Service", "RemainAfterExit") => {}
            ("Unit" | "Service", name) if IGNORED_SETTINGS.contains(&name) => {}
            _ => bail!("[{section}] {name}"),
        }
        Ok(())
    }
}

/// An empty value removes the commands set before.
fn command(list: &mut Vec<Command>, value: &str) -> Result<()> {
    if value.is_empty() {
        list.clear();
    } else {
        list.push(Command::parse(value)?);
    }
    Ok(())
}

/// Parses a time span, systemd.time(7). A plain number is seconds; `None` means infinity.
fn span(value: &str) -> Result<Option<Duration>> {
    if value == "infinity" {
        return Ok(None);
    }
    let digits = value.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u64 = digits.parse().with_context(|| format!("not a time span: {value}"))?;
    let milliseconds = match &value[digits.len()..] {
        "ms" => 1,
        "" | "s" | "sec" => 1000,
        "m" | "min" => 60_000,
        other => bail!("unknown unit of time: {other}"),
    };
    Ok(Some(Duration::from_millis(number * milliseconds)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_after_start_and_after_stop_are_separate() {
        let mut unit = Unit::new("a.service");
        let text = "[Service]\nExecStart=/bin/a\nExecStartPost=-/bin/b\nExecStopPost=-/bin/c ${SERVICE_RESULT}\n";
        unit.read(text).unwrap();
        assert_eq!((unit.start.len(), unit.after_start.len(), unit.after_stop.len()), (1, 1, 1));
        assert!(unit.after_start[0].may_fail && unit.after_stop[0].may_fail);
    }

    #[test]
    fn a_dropin_replaces_a_command() {
        let mut unit = Unit::new("a.service");
        unit.read("[Unit]\nAfter=b.service \\\n  c.service\n[Service]\nExecStart=/bin/a\nRestart=always\nRestartSec=5min\n").unwrap();
        unit.read("# changed\n[Service]\nExecStart=\nExecStart=/bin/b\n").unwrap();
        assert_eq!(unit.start, [Command::parse("/bin/b").unwrap()]);
        assert_eq!(unit.after.len(), 2);
        assert_eq!(unit.restart_after, Duration::from_secs(300));
    }

    #[test]
    fn an_unsupported_setting_is_refused() {
        for bad in [
            "[Service]\nType=forking\n",
            "[Service]\nDynamicUser=yes\n",
            "[Socket]\nListenStream=1\n",
            "[Unit]\nA\n",
        ] {
            assert!(Unit::new("a.service").read(bad).is_err(), "{bad}");
        }
    }
}
