//! Faults: how a test makes a BMC misbehave.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

/// The faults of one machine's BMC. There are none until a test sets some.
#[derive(Debug, Default)]
pub struct Faults {
    set: RwLock<Active>,
    /// The number of datagrams counted for `lose_every`.
    counted: AtomicU32,
    /// The number of wrong passwords in a row.
    wrong_passwords: AtomicU32,
    /// How often all sessions were forgotten. A session of an earlier era is invalid.
    era: AtomicU64,
}

#[derive(Debug, Default)]
struct Active {
    faults: FaultSet,
    stalled_until: Option<Instant>,
    /// The end of a restart of the BMC.
    restarts_until: Option<Instant>,
}

/// All faults of a BMC. Several can be active at once. Durations are in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FaultSet {
    /// The BMC answers nothing.
    pub drop: bool,
    /// The BMC answers nothing for this long after the fault is set, and then answers all pending requests.
    #[serde(with = "millis")]
    pub stall: Option<Duration>,
    /// Delays every answer.
    #[serde(with = "millis")]
    pub slow: Option<Duration>,
    /// HTTP requests that are answered with an error status.
    pub status: Vec<StatusFault>,
    /// IPMI requests that are answered with an error completion code.
    pub completion: Vec<CompletionFault>,
    /// The power state that the BMC reports, regardless of the real one.
    pub reported_power: Option<ReportedPower>,
    /// The health of the system that the BMC reports, instead of `OK`.
    pub reported_health: Option<String>,
    pub refuse_credentials: bool,
    /// After this number of wrong passwords in a row, the Redfish service locks the account.
    pub lock_account_after: Option<u32>,
    /// Every new password breaks the rules of the BMC.
    pub refuse_passwords: bool,
    /// The BMC accepts a new password, and keeps the old one.
    pub ignore_passwords: bool,
    /// The BMC has no free session slot.
    pub sessions_full: bool,
    /// How long the machine takes to follow a power request.
    #[serde(with = "millis")]
    pub power_delay: Option<Duration>,
    /// The BMC accepts requests to switch on but ignores them.
    pub ignore_power_on: bool,
    /// The firmware ignores changes of its settings that wait for a start.
    pub ignore_settings: bool,
    /// How long the BMC works on the image of an update, before it applies the image or waits for a start of the machine.
    #[serde(with = "millis")]
    pub update_time: Option<Duration>,
    /// The BMC never ends its work on an image.
    pub updates_never_end: bool,
    /// The BMC ends its work on an image with this message.
    pub updates_fail: Option<String>,
    /// How long the BMC answers nothing after an update of its own firmware.
    #[serde(with = "millis")]
    pub bmc_restart: Option<Duration>,
    /// How long the BMC works on a change of a RAID volume, before the change happens or waits for a start of the machine.
    #[serde(with = "millis")]
    pub volume_time: Option<Duration>,
    /// The BMC never ends its work on a change of a RAID volume.
    pub volumes_never_end: bool,
    /// The BMC ends its work on a change of a RAID volume with this message.
    pub volumes_fail: Option<String>,
    /// The BMC accepts no update and no change of a RAID volume, because its queue of jobs is full.
    pub job_queue_full: bool,
    /// Setting this makes the BMC forget all sessions once.
    pub forget_sessions: bool,
    /// The BMC sends every IPMI reply twice.
    pub duplicate_replies: bool,
    /// Every n-th IPMI datagram, in either direction, is lost.
    pub lose_every: Option<NonZeroU32>,
    /// The BMC holds back every IPMI reply until it has sent the next one.
    pub reorder_replies: bool,
}

/// An HTTP status for matching requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatusFault {
    pub status: u16,
    /// Match only this method. `None` matches all.
    #[serde(default)]
    pub method: Option<String>,
    /// Match only paths with this prefix. `None` matches all.
    #[serde(default)]
    pub path_prefix: Option<String>,
    /// Match only this number of requests. `None` means no limit.
    #[serde(default)]
    pub times: Option<u32>,
    /// The seconds after which the answer asks for a retry (`Retry-After`, RFC 9110 §10.2.3). `None` sends no such header.
    #[serde(default)]
    pub retry_after: Option<u32>,
}

/// An IPMI completion code for matching requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompletionFault {
    /// The completion code of the answer, such as 0xC0, "node busy".
    pub code: u8,
    /// Match only this network function. `None` matches all.
    #[serde(default)]
    pub net_fn: Option<u8>,
    /// Match only this command. `None` matches all.
    #[serde(default)]
    pub command: Option<u8>,
    /// Match only this number of requests. `None` means no limit.
    #[serde(default)]
    pub times: Option<u32>,
}

/// A power state for the BMC to report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReportedPower {
    On,
    Off,
}

impl Faults {
    /// The current faults.
    pub fn get(&self) -> FaultSet {
        self.read(|active| active.faults.clone())
    }

    /// Replaces all faults.
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

    /// Changes some of the faults.
    pub fn update(&self, change: impl FnOnce(&mut FaultSet)) {
        let mut faults = self.get();
        change(&mut faults);
        self.set(faults);
    }

    /// Removes all faults.
    pub fn clear(&self) {
        self.set(FaultSet::default());
    }

    /// Invalidates every open session, as a restart of the BMC does.
    pub fn forget_sessions(&self) {
        self.era.fetch_add(1, Ordering::Relaxed);
    }

    /// The BMC restarts: it forgets all sessions, and answers nothing for this long.
    pub(crate) fn restart_bmc(&self, lasting: Duration) {
        self.forget_sessions();
        self.write(|active| active.restarts_until = Some(Instant::now() + lasting));
    }

    pub(crate) fn era(&self) -> u64 {
        self.era.load(Ordering::Relaxed)
    }

    /// Sleeps as long as a fault delays the answer.
    pub(crate) async fn wait(&self) {
        let (stalled_until, slow) = self.read(|active| (active.stalled_until, active.faults.slow));
        if let Some(until) = stalled_until {
            tokio::time::sleep_until(until).await;
        }
        if let Some(slow) = slow {
            tokio::time::sleep(slow).await;
        }
    }

    /// Counts a password if wrong ones can lock the account, and returns whether the account is locked.
    pub(crate) fn locks_account(&self, is_right: bool) -> bool {
        let Some(limit) = self.with(|faults| faults.lock_account_after) else { return false };
        let wrong = &self.wrong_passwords;
        if wrong.load(Ordering::Relaxed) >= limit {
            return true;
        }
        if is_right {
            wrong.store(0, Ordering::Relaxed);
        } else {
            wrong.fetch_add(1, Ordering::Relaxed);
        }
        false
    }

    /// Whether the next IPMI datagram is lost.
    pub(crate) fn drops(&self) -> bool {
        let (all, every) = self.with(|faults| (faults.drop, faults.lose_every));
        let turn = |every: NonZeroU32| {
            (self.counted.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(every.get())
        };
        let restarts = self.read(|active| active.restarts_until);
        all || restarts.is_some_and(|until| Instant::now() < until) || every.is_some_and(turn)
    }

    /// Reads the faults without copying them.
    pub(crate) fn with<T>(&self, look: impl FnOnce(&FaultSet) -> T) -> T {
        self.read(|active| look(&active.faults))
    }

    /// The status of the answer, and the seconds after which the answer asks for a retry.
    pub(crate) fn status_for(&self, method: &str, path: &str) -> Option<(u16, Option<u32>)> {
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
            Some((hit.status, hit.retry_after))
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
    fn a_status_fault_hits_matching_requests_as_often_as_set() {
        let faults = Faults::default();
        faults.update(|set| {
            set.status.push(StatusFault {
                status: 503,
                method: Some("PATCH".into()),
                path_prefix: Some("/redfish/v1/Systems".into()),
                times: Some(2),
                retry_after: Some(7),
            });
        });
        assert_eq!(faults.status_for("GET", "/redfish/v1/Systems/1"), None);
        assert_eq!(faults.status_for("PATCH", "/redfish/v1/Managers/1"), None);
        assert_eq!(faults.status_for("PATCH", "/redfish/v1/Systems/1"), Some((503, Some(7))));
        assert_eq!(faults.status_for("PATCH", "/redfish/v1/Systems/1"), Some((503, Some(7))));
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
