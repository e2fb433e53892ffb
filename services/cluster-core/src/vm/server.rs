//! What is seen of a machine's server.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What a look at a server shows that changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFacts {
    /// How it is.
    pub is: ServerIs,
    /// Whether Nova is doing something to it.
    pub is_busy: bool,
    /// The name of its flavor.
    pub flavor: String,
}

/// How a server is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServerIs {
    /// It is being made.
    Building,
    /// It runs.
    On,
    /// It is switched off.
    Off,
    /// It has a new size, which is to be confirmed.
    Resized,
    /// It is on its way from one to another of these.
    Changing,
    /// It failed; so Nova said.
    Failed(String),
    /// It is being deleted.
    Leaving,
    /// It is what only Nova's own users make of it: paused, suspended, shelved.
    Other(String),
}

/// What was last seen of a machine's server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerSeen {
    /// Its id in the cloud.
    pub id: String,
    /// How it was.
    pub is: ServerIs,
    /// Since when it is so.
    pub since: Timestamp,
    /// The name of its flavor.
    pub flavor: String,
}

/// Whether a machine seems to be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Idle {
    /// When it was looked at.
    pub at: Timestamp,
    /// By what it is told.
    pub by: IdleBy,
    /// The time its processors had worked then since its server started, in ns; only of diagnostics.
    pub cpu_ns: Option<u64>,
    /// The share of the time since the look before that its processors worked, in thousandths of one processor; only of two looks at diagnostics.
    pub cpu_permille: Option<u64>,
    /// Since when it is idle, if it is.
    pub since: Option<Timestamp>,
}

/// By what it is told whether a machine is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IdleBy {
    /// What its hypervisor counts of its processors.
    Diagnostics,
    /// That it is off: nobody uses it. Of one that runs nothing is said.
    Power,
}

/// Of less than that, in thousandths of one processor, nobody does anything on it.
const IDLE_PERMILLE: u64 = 20;

impl Idle {
    /// What a look at what the hypervisor counts says, in ns, after the one before.
    pub fn by_diagnostics(before: Option<&Idle>, cpu_ns: u64, now: Timestamp) -> Idle {
        let last = before.and_then(|it| Some((it.at, it.cpu_ns?)));
        let cpu_permille = last.and_then(|(at, then)| {
            let passed = u64::try_from(now.duration_since(at).as_millis()).ok()?;
            // A server that was started anew counts from zero.
            let worked = cpu_ns.checked_sub(then)? / 1000;
            worked.checked_div(passed)
        });
        let since = match cpu_permille {
            Some(worked) if worked < IDLE_PERMILLE => {
                before.and_then(|it| it.since).or(last.map(|(at, _)| at))
            }
            Some(_) | None => None,
        };
        Idle { at: now, by: IdleBy::Diagnostics, cpu_ns: Some(cpu_ns), cpu_permille, since }
    }

    /// What its power says where nobody counts: one that is off since then is idle since then.
    pub fn by_power(server: &ServerSeen, now: Timestamp) -> Idle {
        let since = (server.is == ServerIs::Off).then_some(server.since);
        Idle { at: now, by: IdleBy::Power, cpu_ns: None, cpu_permille: None, since }
    }
}
