//! How old the power states are that the API shows: compares them with the true power of the emulated machines.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Deserialize;
use tokio::sync::Notify;
use tokio::time::interval;

use super::emulated::TruePower;
use crate::client::Client;
use crate::daemon::Server;
use crate::emulation::Emulation;

/// The pause between two comparisons. Each costs the daemon a list of all nodes.
const EVERY: Duration = Duration::from_secs(5);

/// The result of all comparisons.
#[derive(Debug, Default)]
pub(crate) struct PowerAges {
    /// How many power states were compared.
    pub(crate) compared: usize,
    /// How many of them were no longer true.
    pub(crate) outdated: usize,
    /// The longest time since a power state that the API showed was true.
    pub(crate) oldest: Duration,
}

/// A power state in the API.
#[derive(Clone, Copy, Debug)]
struct ShownPower {
    machine: usize,
    is_on: bool,
    /// The time before the request.
    asked_at: Instant,
}

/// Compares again and again, until `stop` is notified.
pub(crate) async fn compare_until(
    stop: Arc<Notify>,
    server: Server,
    mut emulation: Emulation,
) -> anyhow::Result<(Emulation, PowerAges)> {
    let mut client = server.client().await?;
    let (mut ages, mut due) = (PowerAges::default(), interval(EVERY));
    loop {
        tokio::select! {
            _ = due.tick() => {}
            () = stop.notified() => return Ok((emulation, ages)),
        }
        let shown = shown(&mut client).await?;
        let truth: Vec<TruePower> = serde_json::from_str(&emulation.ask("power").await?)?;
        ages.compare(&shown, &truth, Instant::now());
    }
}

impl PowerAges {
    /// Compares power states with the truth at `now`, by the numbers of the machines.
    fn compare(&mut self, shown: &[ShownPower], truth: &[TruePower], now: Instant) {
        for shown in shown {
            let Some((is_on, millis)) = truth.get(shown.machine) else { continue };
            self.compared += 1;
            if *is_on == shown.is_on {
                continue;
            }
            let changed_at = now.checked_sub(Duration::from_millis(*millis));
            let age = changed_at.map(|at| shown.asked_at.saturating_duration_since(at));
            // A change after the request was made could not be known.
            if let Some(age) = age.filter(|age| !age.is_zero()) {
                self.outdated += 1;
                self.oldest = self.oldest.max(age);
            }
        }
    }
}

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow)]
    nodes: Vec<NamedPower<'a>>,
    next: Option<String>,
}

#[derive(Deserialize)]
struct NamedPower<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    power_state: Option<Cow<'a, str>>,
}

/// The power states of all machines. Left out are those that are not known yet.
async fn shown(client: &mut Client) -> anyhow::Result<Vec<ShownPower>> {
    let mut all = Vec::new();
    let mut path = Some("/v1/nodes?limit=1000&fields=name,power_state".to_owned());
    while let Some(at) = path {
        let asked_at = Instant::now();
        let answer = client.get(&at).await?;
        let page: Page = serde_json::from_slice(&answer)?;
        all.extend(page.nodes.iter().filter_map(|node| {
            let machine = node.name.as_deref()?.strip_prefix("machine-")?.parse().ok()?;
            let is_on = node.power_state.as_deref()? == "power on";
            Some(ShownPower { machine, is_on, asked_at })
        }));
        path = page.next.map(|next| next[next.find("/v1/").unwrap_or(0)..].to_owned());
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(shown: bool, truth: TruePower, asked_before: u64, want_age_millis: u64) {
        let now = Instant::now() + Duration::from_secs(1000);
        let asked_at = now - Duration::from_millis(asked_before);
        let mut ages = PowerAges::default();
        ages.compare(&[ShownPower { machine: 0, is_on: shown, asked_at }], &[truth], now);
        assert_eq!(ages.oldest, Duration::from_millis(want_age_millis));
    }

    #[test]
    fn a_power_state_ages_from_the_change_on() {
        check(true, (true, 90_000), 100, 0);
        check(true, (false, 30_000), 100, 29_900);
        // The power changed between the request and the look at the machine.
        check(true, (false, 50), 100, 0);
    }
}
