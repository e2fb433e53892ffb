//! Progress: a line for each node or condition, redrawn on a terminal, and plain lines of changes elsewhere.

use std::collections::HashMap;
use std::io::IsTerminal;

use api_client::baremetald::{GoalProgress, RackMachine};
use indicatif::{MultiProgress, ProgressBar, ProgressFinish, ProgressStyle};
use jiff::Timestamp;

use crate::output::{line, plain};
use crate::rack_status::{doing, eta};

pub(crate) struct Row {
    /// Identifies the resource across updates, even if its label changes.
    pub(crate) key: String,
    /// The name for people.
    pub(crate) label: String,
    /// The text beside the name on a terminal.
    pub(crate) live: String,
    /// The line in a log; `None` if the state is not worth a line.
    pub(crate) log: Option<String>,
}

pub(crate) enum Display {
    /// On a terminal.
    Live { all: MultiProgress, bars: HashMap<String, ProgressBar> },
    /// In a pipe or a log.
    Lines { shown: HashMap<String, String> },
}

impl Display {
    /// Chooses the display that fits standard output.
    pub(crate) fn fitting() -> Self {
        if std::io::stdout().is_terminal() {
            Display::Live { all: MultiProgress::new(), bars: HashMap::new() }
        } else {
            Display::Lines { shown: HashMap::new() }
        }
    }

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

    /// Ends the display and leaves its last content.
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
    // A command that stops waiting leaves its last content.
    ProgressBar::new_spinner().with_style(style).with_finish(ProgressFinish::Abandon)
}

impl Row {
    /// Makes the row of a node in a bring-up.
    pub(crate) fn of_machine(machine: &RackMachine, begun: Timestamp) -> Row {
        // Byte counts change all the time, so a log shows only the step.
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

fn live(machine: &RackMachine, begun: Timestamp, now: Timestamp) -> String {
    let elapsed = readable::duration(now.duration_since(machine.since.max(begun)));
    let left = eta(machine, now)
        .map_or(String::new(), |left| format!("  about {} left", readable::duration(left)));
    let doing = note(machine, &doing(machine));
    format!("{:15}{doing}  {elapsed}{left}", machine.provision_state)
}

fn note(machine: &RackMachine, doing: &str) -> String {
    match machine.way {
        Some(GoalProgress::Stuck) => {
            format!(
                ", needs attention: {}",
                machine.failure.as_ref().map_or("", |failure| &failure.cause)
            )
        }
        Some(GoalProgress::LeftAlone) => ", skipped".to_owned(),
        Some(GoalProgress::There | GoalProgress::Working | GoalProgress::Next) | None
            if doing.is_empty() =>
        {
            String::new()
        }
        Some(GoalProgress::There | GoalProgress::Working | GoalProgress::Next) | None => {
            format!(", {doing}")
        }
    }
}
