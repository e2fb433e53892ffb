//! How a bring-up is shown: a line a machine that is redrawn on a terminal, plain lines of what changed elsewhere.

use std::collections::HashMap;
use std::io::IsTerminal;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use jiff::Timestamp;

use crate::machines::{Machine, RackStatus, Way};
use crate::output::{line, plain};

/// Shows how far machines are.
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
    pub(crate) fn show(&mut self, rack: &RackStatus, begun: Timestamp) -> anyhow::Result<()> {
        let now = Timestamp::now();
        match self {
            Display::Live { all, bars } => {
                for machine in &rack.machines {
                    let bar = bars.entry(machine.uuid.clone()).or_insert_with(|| all.add(bar()));
                    bar.set_prefix(plain(machine.label()));
                    bar.set_message(live(machine, begun, now));
                    bar.tick();
                }
            }
            Display::Lines { shown } => {
                for machine in &rack.machines {
                    // Bytes change all the time: in a log, only the step counts.
                    let step =
                        machine.task.as_ref().map_or(String::new(), |task| task.what.clone());
                    let state = format!(
                        "{}: {}{}",
                        machine.label(),
                        machine.provision_state,
                        note(machine, &step)
                    );
                    let state = plain(&state);
                    if shown.get(&machine.uuid) != Some(&state) {
                        line(&format!("{:>5} s  {state}", now.duration_since(begun).as_secs()))?;
                        shown.insert(machine.uuid.clone(), state);
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

fn bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{prefix:16} {wide_msg}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner());
    ProgressBar::new_spinner().with_style(style)
}

fn live(machine: &Machine, begun: Timestamp, now: Timestamp) -> String {
    let elapsed = now.duration_since(machine.since.max(begun)).as_secs();
    let left = machine.eta_secs(now).map_or(String::new(), |secs| format!("  about {secs} s left"));
    let doing = note(machine, &machine.doing());
    plain(&format!("{:15}{doing}  {elapsed} s{left}", machine.provision_state))
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
