//! Repeated failures of the cloud at one object: how often it failed, and when the next attempt is due.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use crate::{
    BackingOff, CloudObjectState, Cluster, ClusterObservation, DesiredObjects, Failure,
    FailureCount, Key,
};

/// The waiting time between attempts, which doubles after each failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// After the first failure.
    pub first: SignedDuration,
    /// The longest waiting time.
    pub most: SignedDuration,
}

impl Backoff {
    /// Two seconds, four, eight, up to a quarter of an hour.
    pub const DEFAULT: Backoff =
        Backoff { first: SignedDuration::from_secs(2), most: SignedDuration::from_mins(15) };

    fn until(&self, setback: &FailureCount) -> Timestamp {
        self.after(setback.times, setback.at)
    }

    /// Returns when the next attempt is due after `times` failures in a row, the last one at `at`.
    pub(crate) fn after(&self, times: u32, at: Timestamp) -> Timestamp {
        let doubled = 1_i32.checked_shl(times.saturating_sub(1).min(30)).unwrap_or(i32::MAX);
        let wait = self.first.checked_mul(doubled).unwrap_or(self.most).min(self.most);
        at.saturating_add(wait).unwrap_or(Timestamp::MAX)
    }
}

/// Returns the objects whose next attempt is not due yet. Failures before the owner's last request do not count, so that a change is tried
/// at once.
pub fn backing_off(
    cluster: &Cluster,
    backoff: &Backoff,
    now: Timestamp,
) -> BTreeMap<Key, BackingOff> {
    let counts = cluster.setbacks.iter().filter(|(_, setback)| setback.at >= cluster.asked_at);
    held_of(counts, backoff, now)
}

/// Returns the objects of `setbacks` whose next attempt is not due yet.
pub(crate) fn held_of<'s>(
    setbacks: impl Iterator<Item = (&'s Key, &'s FailureCount)>,
    backoff: &Backoff,
    now: Timestamp,
) -> BTreeMap<Key, BackingOff> {
    let held = setbacks.map(|(key, setback)| {
        let until = backoff.until(setback);
        (key.clone(), BackingOff { times: setback.times, why: setback.why.clone(), until })
    });
    held.filter(|(_, held)| held.until > now).collect()
}

/// Returns the objects of `shape` that the observation shows as failed.
pub fn failures(shape: &DesiredObjects, seen: &ClusterObservation) -> BTreeMap<Key, Failure> {
    let failed = seen.objects.iter().filter(|(key, _)| shape.contains_key(*key));
    let failed = failed.filter_map(|(key, found)| match &found.state {
        CloudObjectState::Failed(why) => {
            Some((key.clone(), Failure { why: why.clone(), object: Some(found.id.clone()) }))
        }
        CloudObjectState::Working | CloudObjectState::Ready | CloudObjectState::Deleting => None,
    });
    failed.collect()
}

/// Returns the failures of `cluster` with those of the observation added.
///
/// The count of an object starts anew when the object is ready, is no longer desired, or when the owner asked for a change.
pub(crate) fn setbacks(
    cluster: &Cluster,
    shape: &DesiredObjects,
    seen: &ClusterObservation,
    now: Timestamp,
) -> BTreeMap<Key, FailureCount> {
    setbacks_of(&cluster.setbacks, cluster.asked_at, shape, seen, now)
}

/// As [`setbacks`], for the failures `before` of any owner that count since `asked_at`.
pub(crate) fn setbacks_of(
    before: &BTreeMap<Key, FailureCount>,
    asked_at: Timestamp,
    shape: &DesiredObjects,
    seen: &ClusterObservation,
    now: Timestamp,
) -> BTreeMap<Key, FailureCount> {
    let is_ready = |key: &Key| seen.objects.get(key).is_some_and(|found| found.is_ready());
    let mut all = before.clone();
    all.retain(|key, setback| setback.at >= asked_at && shape.contains_key(key) && !is_ready(key));
    for (key, failure) in &seen.failures {
        let before = all.get(key);
        // The observation may show an object that an earlier one counted already: its deletion takes time.
        if before.is_some_and(|it| it.object.is_some() && it.object == failure.object) {
            continue;
        }
        let times = before.map_or(1, |it| it.times.saturating_add(1));
        let Failure { why, object } = failure.clone();
        all.insert(key.clone(), FailureCount { times, at: now, why, object });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Sample, at};
    use crate::{ConditionKind, conditions, plan};

    const SERVER: &str = "server/default-worker-0";

    /// Records a turn in which the cloud had failed at the server with this id.
    fn failed(sample: &mut Sample, object: &str, now: Timestamp) {
        let why = "No valid host was found.".to_owned();
        let failure = Failure { why, object: Some(object.to_owned()) };
        let failures = BTreeMap::from([(SERVER.parse().unwrap(), failure)]);
        let seen = ClusterObservation { at: Some(now), failures, ..ClusterObservation::default() };
        sample.cluster = sample.cluster.with_observation(&sample.groups, &seen, now);
    }

    fn waits(sample: &Sample, now: Timestamp) -> Option<i64> {
        let held = backing_off(&sample.cluster, &Backoff::DEFAULT, now);
        let held = held.get(&SERVER.parse().unwrap())?;
        Some(held.until.duration_since(now).as_secs())
    }

    #[test]
    fn each_failure_in_a_row_doubles_the_wait_up_to_the_most() {
        let mut sample = Sample::highly_available();
        let mut waited = Vec::new();
        for number in 0..12 {
            failed(&mut sample, &number.to_string(), at(number));
            waited.push(waits(&sample, at(number)).unwrap());
        }
        assert_eq!(waited, [2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900, 900]);
        assert_eq!(waits(&sample, at(11 + 900)), None);
    }

    #[test]
    fn an_object_that_is_slow_to_delete_is_counted_once() {
        let mut sample = Sample::highly_available();
        for second in 0..5 {
            failed(&mut sample, "the same", at(second));
        }
        assert_eq!(waits(&sample, at(0)), Some(2));
    }

    #[test]
    fn a_ready_object_and_a_new_request_reset_the_count() {
        let mut sample = Sample::highly_available();
        for number in 0..3 {
            failed(&mut sample, &number.to_string(), at(number));
        }
        assert_eq!(waits(&sample, at(2)), Some(8));
        let before = sample.cluster.clone();
        sample.cluster.asked_at = at(3);
        assert_eq!(waits(&sample, at(3)), None);
        failed(&mut sample, "4", at(4));
        assert_eq!(waits(&sample, at(4)), Some(2));

        sample.cluster = before;
        let mut seen = ClusterObservation::default();
        sample.settle(&mut seen);
        sample.cluster = sample.cluster.with_observation(&sample.groups, &seen, at(3));
        assert_eq!(sample.cluster.setbacks, BTreeMap::new());
    }

    #[test]
    fn failed_objects_that_are_desired_are_failures() {
        let sample = Sample::highly_available();
        let mut seen = ClusterObservation::default();
        sample.settle(&mut seen);
        let shape = crate::desired_objects(&sample.spec());
        assert_eq!(failures(&shape, &seen), BTreeMap::new());
        let server: Key = SERVER.parse().unwrap();
        let broken = CloudObjectState::Failed("no valid host".to_owned());
        let found = crate::CloudObject { state: broken, ..seen.objects[&server].clone() };
        for key in [SERVER, "server/default-worker-9"] {
            seen.objects.insert(key.parse().unwrap(), found.clone());
        }
        let failure = Failure { why: "no valid host".to_owned(), object: Some(found.id) };
        assert_eq!(failures(&shape, &seen), BTreeMap::from([(server, failure)]));
    }

    #[test]
    fn an_object_in_back_off_is_not_created_and_a_condition_says_until_when() {
        let mut sample = Sample::highly_available();
        let key: Key = SERVER.parse().unwrap();
        let mut seen = ClusterObservation::default();
        sample.settle(&mut seen);
        seen.objects.remove(&key);
        seen.machines.clear();
        let create = crate::Action::Create(key.clone());
        assert!(plan(&sample.spec(), &seen).contains(&create));
        failed(&mut sample, "1", at(1));
        seen.held = backing_off(&sample.cluster, &Backoff::DEFAULT, at(1));
        assert!(!plan(&sample.spec(), &seen).contains(&create));
        let reported = conditions(&sample.spec(), &seen, at(1));
        let reported =
            reported.iter().find(|it| it.kind == ConditionKind::InfrastructureReady).unwrap();
        assert_eq!((reported.reason.as_str(), reported.is_final), ("BackingOff", false));
        expect_test::expect![[r#"the cloud failed to create server/default-worker-0 (No valid host was found.), once so far; next attempt at 2023-11-14T22:13:23Z"#]]
            .assert_eq(&reported.message);
        assert!(
            reported.next_action.contains("applies a change of the cluster at once"),
            "{reported:?}"
        );
    }
}
