//! How a BMC can be told to misbehave.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

/// The misbehaviour of one machine's BMC; none unless told.
#[derive(Debug, Default)]
pub struct Faults {
    set: RwLock<Active>,
    /// How many datagrams `lose_every` has counted.
    counted: AtomicU32,
    /// How often every session has been forgotten; a session of an earlier era is void.
    era: AtomicU64,
}

#[derive(Debug, Default)]
struct Active {
    faults: FaultSet,
    stalled_until: Option<Instant>,
}

/// Everything that can be wrong with a BMC at once. Durations are milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FaultSet {
    /// Nothing is answered.
    pub drop: bool,
    /// Nothing is answered until so long after this was set; then everything is.
    #[serde(with = "millis")]
    pub stall: Option<Duration>,
    /// Every answer takes so long.
    #[serde(with = "millis")]
    pub slow: Option<Duration>,
    /// HTTP requests that get an error instead of an answer.
    pub status: Vec<StatusFault>,
    /// IPMI requests that get a completion code instead of an answer.
    pub completion: Vec<CompletionFault>,
    /// The power state that is told, whatever the real one.
    pub reported_power: Option<ReportedPower>,
    /// Every password is wrong.
    pub refuse_credentials: bool,
    /// No session slot is free.
    pub sessions_full: bool,
    /// How long the machine takes to follow a power request.
    #[serde(with = "millis")]
    pub power_delay: Option<Duration>,
    /// Requests to switch on are accepted and do nothing.
    pub ignore_power_on: bool,
    /// All sessions are forgotten once, when this is set.
    pub forget_sessions: bool,
    /// Every IPMI reply is sent twice.
    pub duplicate_replies: bool,
    /// Of all IPMI datagrams, to the BMC and from it, every so many-th is lost.
    pub lose_every: Option<NonZeroU32>,
    /// Every IPMI reply is held back until the next one has been sent.
    pub reorder_replies: bool,
}

/// An HTTP status for requests that match.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatusFault {
    /// The status to answer.
    pub status: u16,
    /// Only this method, if given.
    #[serde(default)]
    pub method: Option<String>,
    /// Only paths that begin so, if given.
    #[serde(default)]
    pub path_prefix: Option<String>,
    /// Only the next so many, if given.
    #[serde(default)]
    pub times: Option<u32>,
}

/// An IPMI completion code for requests that match.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompletionFault {
    /// The completion code to answer, such as 0xC0, "node busy".
    pub code: u8,
    /// Only this network function, if given.
    #[serde(default)]
    pub net_fn: Option<u8>,
    /// Only this command, if given.
    #[serde(default)]
    pub command: Option<u8>,
    /// Only the next so many, if given.
    #[serde(default)]
    pub times: Option<u32>,
}

/// A power state to report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReportedPower {
    /// On, it says.
    On,
    /// Off, it says.
    Off,
}

impl Faults {
    /// What is wrong now.
    pub fn get(&self) -> FaultSet {
        self.read(|active| active.faults.clone())
    }

    /// Replaces everything that is wrong.
    pub fn set(&self, faults: FaultSet) {
        if faults.forget_sessions {
            self.forget_sessions();
        }
        let faults = FaultSet { forget_sessions: false, ..faults };
        self.write(|active| {
            if faults.stall != active.faults.stall {
                active.stalled_until = faults.stall.map(|stall| Instant::now() + stall);
            }
            active.faults = faults;
        });
    }

    /// Changes a part of what is wrong.
    pub fn update(&self, change: impl FnOnce(&mut FaultSet)) {
        let mut faults = self.get();
        change(&mut faults);
        self.set(faults);
    }

    /// Nothing is wrong any more.
    pub fn clear(&self) {
        self.set(FaultSet::default());
    }

    /// Voids every session that is open now, as a BMC does that has restarted.
    pub fn forget_sessions(&self) {
        self.era.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn era(&self) -> u64 {
        self.era.load(Ordering::Relaxed)
    }

    /// Waits as long as an answer is late.
    pub(crate) async fn wait(&self) {
        let (stalled_until, slow) = self.read(|active| (active.stalled_until, active.faults.slow));
        if let Some(until) = stalled_until {
            tokio::time::sleep_until(until).await;
        }
        if let Some(slow) = slow {
            tokio::time::sleep(slow).await;
        }
    }

    /// Whether the next IPMI datagram is lost.
    pub(crate) fn drops(&self) -> bool {
        let (all, every) = self.with(|faults| (faults.drop, faults.lose_every));
        let turn = |every: NonZeroU32| {
            (self.counted.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(every.get())
        };
        all || every.is_some_and(turn)
    }

    /// One look at the faults, without copying them.
    pub(crate) fn with<T>(&self, look: impl FnOnce(&FaultSet) -> T) -> T {
        self.read(|active| look(&active.faults))
    }

    pub(crate) fn status_for(&self, method: &str, path: &str) -> Option<u16> {
        if self.read(|active| active.faults.status.is_empty()) {
            return None;
        }
        self.write(|active| {
            let hit = active.faults.status.iter_mut().find(|fault| {
                fault.times != Some(0)
                    && fault.method.as_deref().is_none_or(|only| only.eq_ignore_ascii_case(method))
                    && fault.path_prefix.as_deref().is_none_or(|prefix| path.starts_with(prefix))
            })?;
            hit.times = hit.times.map(|left| left - 1);
            Some(hit.status)
        })
    }

    pub(crate) fn completion_for(&self, net_fn: u8, command: u8) -> Option<u8> {
        if self.read(|active| active.faults.completion.is_empty()) {
            return None;
        }
        self.write(|active| {
            let hit = active.faults.completion.iter_mut().find(|fault| {
                fault.times != Some(0)
                    && fault.net_fn.is_none_or(|only| only == net_fn)
                    && fault.command.is_none_or(|only| only == command)
            })?;
            hit.times = hit.times.map(|left| left - 1);
            Some(hit.code)
        })
    }

    fn read<T>(&self, look: impl FnOnce(&Active) -> T) -> T {
        look(&self.set.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write<T>(&self, change: impl FnOnce(&mut Active) -> T) -> T {
        change(&mut self.set.write().unwrap_or_else(PoisonError::into_inner))
    }
}

mod millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        value: &Option<Duration>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        value.map(|duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u32>::deserialize(from)?.map(|millis| Duration::from_millis(millis.into())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_fault_hits_what_it_names_and_as_often_as_it_says() {
        let faults = Faults::default();
        faults.update(|set| {
            set.status.push(StatusFault {
                status: 503,
                method: Some("PATCH".into()),
                path_prefix: Some("/redfish/v1/Systems".into()),
                times: Some(2),
            });
        });
        assert_eq!(faults.status_for("GET", "/redfish/v1/Systems/1"), None);
        assert_eq!(faults.status_for("PATCH", "/redfish/v1/Managers/1"), None);
        assert_eq!(faults.status_for("PATCH", "/redfish/v1/Systems/1"), Some(503));
        assert_eq!(faults.status_for("PATCH", "/redfish/v1/Systems/1"), Some(503));
        assert_eq!(faults.status_for("PATCH", "/redfish/v1/Systems/1"), None);
    }

    #[test]
    fn forgetting_sessions_happens_once() {
        let faults = Faults::default();
        faults.update(|set| set.forget_sessions = true);
        assert_eq!(faults.era(), 1);
        faults.update(|set| set.drop = true);
        assert_eq!(faults.era(), 1);
    }

    #[test]
    fn faults_are_read_from_json_in_milliseconds() {
        let set: FaultSet =
            serde_json::from_str(r#"{"slow": 250, "reported_power": "off"}"#).unwrap();
        assert_eq!(set.slow, Some(Duration::from_millis(250)));
        assert_eq!(set.reported_power, Some(ReportedPower::Off));
        assert!(serde_json::from_str::<FaultSet>(r#"{"sloow": 250}"#).is_err());
    }
}
