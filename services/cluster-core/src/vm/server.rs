//! The last observation of a VM's server, and whether the VM seems to be idle.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::ServerState;

/// The last observation of a VM's server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerObservation {
    /// The id of the server in the cloud.
    pub id: String,
    pub is: ServerState,
    /// Since when the server is in this state.
    pub since: Timestamp,
    /// The name of its flavor.
    pub flavor: String,
}

/// Whether a VM seems to be idle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdleCheck {
    /// When the conductor checked.
    pub at: Timestamp,
    pub by: IdleSource,
    /// The CPU time of the server since its start, in ns; only with diagnostics.
    pub cpu_ns: Option<u64>,
    /// The CPU time since the check before, in thousandths of one processor; only after two checks with diagnostics.
    pub cpu_permille: Option<u64>,
    /// Since when the VM is idle; `None`: it is not.
    pub since: Option<Timestamp>,
}

/// The source of the judgement whether a VM is idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IdleSource {
    /// The CPU time that the hypervisor counts.
    Diagnostics,
    /// The power state: a VM that is off is idle. About one that runs this source says nothing.
    Power,
}

/// A VM with less CPU time than this, in thousandths of one processor, counts as idle.
const IDLE_PERMILLE: u64 = 20;

impl IdleCheck {
    /// Judges by the CPU time that the hypervisor counts, in ns, and the check before.
    pub fn by_diagnostics(before: Option<&IdleCheck>, cpu_ns: u64, now: Timestamp) -> IdleCheck {
        let last = before.and_then(|it| Some((it.at, it.cpu_ns?)));
        let cpu_permille = last.and_then(|(at, then)| {
            let passed = u64::try_from(now.duration_since(at).as_millis()).ok()?;
            // The count starts from zero when the server starts.
            let worked = cpu_ns.checked_sub(then)? / 1000;
            worked.checked_div(passed)
        });
        let since = match cpu_permille {
            Some(worked) if worked < IDLE_PERMILLE => {
                before.and_then(|it| it.since).or(last.map(|(at, _)| at))
            }
            Some(_) | None => None,
        };
        IdleCheck {
            at: now,
            by: IdleSource::Diagnostics,
            cpu_ns: Some(cpu_ns),
            cpu_permille,
            since,
        }
    }

    /// Judges by the power state, when no CPU time is available: a VM is idle since it was switched off.
    pub fn by_power(server: &ServerObservation, now: Timestamp) -> IdleCheck {
        let since = (server.is == ServerState::Off).then_some(server.since);
        IdleCheck { at: now, by: IdleSource::Power, cpu_ns: None, cpu_permille: None, since }
    }
}
