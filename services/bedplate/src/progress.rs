//! How work is shown: a line a machine or condition that is redrawn on a terminal, plain lines of what changed elsewhere.

use std::collections::HashMap;
use std::io::IsTerminal;

use indicatif::{MultiProgress, ProgressBar, ProgressFinish, ProgressStyle};
use jiff::Timestamp;

use crate::machines::{Machine, Way};
use crate::output::{line, plain};

/// One thing of which is shown how far it is.
pub(crate) struct Row {
    /// What it is known by, whatever it is called.
    pub(crate) key: String,
    /// What a person calls it.
    pub(crate) label: String,
    /// What stands beside its name on a terminal.
    pub(crate) live: String,
    /// What is said of it in a log; nothing where it is not worth a line.
    pub(crate) log: Option<String>,
}

/// Shows how far things are.
pub(crate) enum Display {
    /// On a terminal.
    Live { all: MultiProgress, bars: HashMap<String, ProgressBar> },
    /// In a pipe or a log.
    Lines { shown: HashMap<String, String> },
}

impl Display {
    /// What fits where standard output goes.
    pub(crate) fn fitting() -> Self {
        if std::io::stdout().is_terminal() {
            Display::Live { all: MultiProgress::new(), bars: HashMap::new() }
        } else {
            Display::Lines { shown: HashMap::new() }
        }
    }

    /// Shows what is the case now.
    pub(crate) fn show(&mut self, rows: Vec<Row>, begun: Timestamp) -> anyhow::Result<()> {
        match self {
            Display::Live { all, bars } => {
                let width = rows.iter().map(|row| row.label.len()).max().unwrap_or(0).max(16);
                for row in rows {
                    let bar = bars.entry(row.key).or_insert_with(|| all.add(bar(width)));
                    bar.set_prefix(plain(&row.label));
                    bar.set_message(plain(&row.live));
                    bar.tick();
                }
            }
            Display::Lines { shown } => {
                let elapsed = Timestamp::now().duration_since(begun).as_secs();
                for Row { key, log, .. } in rows {
                    let Some(said) = log.map(|log| plain(&log)) else { continue };
                    if shown.get(&key) != Some(&said) {
                        line(&format!("{elapsed:>5} s  {said}"))?;
                        shown.insert(key, said);
                    }
                }
            }
        }
        Ok(())
    }

    /// Leaves what is shown as it is.
    pub(crate) fn finish(self) {
        if let Display::Live { bars, .. } = self {
            for bar in bars.into_values() {
                bar.abandon();
            }
        }
    }
}

fn bar(width: usize) -> ProgressBar {
    let style = ProgressStyle::with_template(&format!("{{prefix:{width}}} {{wide_msg}}"))
        .unwrap_or_else(|_| ProgressStyle::default_spinner());
    // Whoever stops waiting leaves what was last seen.
    ProgressBar::new_spinner().with_style(style).with_finish(ProgressFinish::Abandon)
}

impl Row {
    /// A machine of a rack that is brought up.
    pub(crate) fn of_machine(machine: &Machine, begun: Timestamp) -> Row {
        // Bytes change all the time: in a log, only the step counts.
        let step = machine.task.as_ref().map_or("", |task| &task.what);
        let (label, state) = (machine.label(), &machine.provision_state);
        Row {
            key: machine.uuid.clone(),
            label: label.to_owned(),
            live: live(machine, begun, Timestamp::now()),
            log: Some(format!("{label}: {state}{}", note(machine, step))),
        }
    }
}

fn live(machine: &Machine, begun: Timestamp, now: Timestamp) -> String {
    let elapsed = now.duration_since(machine.since.max(begun)).as_secs();
    let left = machine.eta_secs(now).map_or(String::new(), |secs| format!("  about {secs} s left"));
    let doing = note(machine, &machine.doing());
    format!("{:15}{doing}  {elapsed} s{left}", machine.provision_state)
}

fn note(machine: &Machine, doing: &str) -> String {
    match machine.way {
        Some(Way::Stuck) => {
            format!(", stuck: {}", machine.failure.as_ref().map_or("", |failure| &failure.cause))
        }
        Some(Way::LeftAlone) => ", left alone".to_owned(),
        Some(Way::There | Way::Working | Way::Next) | None if doing.is_empty() => String::new(),
        Some(Way::There | Way::Working | Way::Next) | None => format!(", {doing}"),
    }
}
