//! A short-lived cache of observations. While a cluster is being created, turns follow each other within seconds, and only objects in
//! progress are observed again.
//!
//! The cache may lose its content at any time: a turn without it observes everything.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cluster_core::{
    CloudObject, CloudObjectState, ClusterObservation, ClusterUuid, Key, Kind, Ledger,
};
use jiff::{SignedDuration, Timestamp};

use super::lookups::LookupCache;

/// How long an observation is used.
const LASTS: Duration = Duration::from_secs(10);

/// The observations of all clusters.
#[derive(Default)]
pub(crate) struct ObservationCache {
    kept: Mutex<HashMap<ClusterUuid, CachedObservations>>,
}

/// The observations of one cluster.
#[derive(Default)]
pub(crate) struct CachedObservations {
    /// The cluster's `asked_at` at that time. A later request invalidates the observations.
    asked_at: Option<Timestamp>,
    /// Objects that the cluster uses and does not own, and since when they are known.
    looked_up: Arc<LookupCache>,
    since: Option<Timestamp>,
    /// Ready objects, and when each was observed.
    objects: BTreeMap<Key, (Timestamp, CloudObject)>,
}

impl ObservationCache {
    /// Removes and returns the observations of a cluster that are recent enough, at most `look_every` old. Returns none when the cluster
    /// was changed after them.
    pub(crate) fn take(
        &self,
        (cluster, asked_at): (ClusterUuid, Timestamp),
        now: Timestamp,
        look_every: Duration,
    ) -> CachedObservations {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).remove(&cluster);
        let asked_at = Some(asked_at);
        let kept = kept.filter(|looks| looks.asked_at == asked_at).unwrap_or_default();
        let lasts = SignedDuration::try_from(LASTS.min(look_every)).unwrap_or_default();
        let is_fresh = |at: Timestamp| now.duration_since(at) < lasts;
        let mut objects = kept.objects;
        objects.retain(|_, (at, _)| is_fresh(*at));
        match kept.since.filter(|at| is_fresh(*at)) {
            Some(since) => CachedObservations {
                asked_at,
                looked_up: kept.looked_up,
                since: Some(since),
                objects,
            },
            None => CachedObservations {
                asked_at,
                looked_up: Arc::default(),
                since: Some(now),
                objects,
            },
        }
    }

    /// Stores observations for the cluster's next turn.
    pub(crate) fn keep(&self, cluster: ClusterUuid, looks: CachedObservations) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).insert(cluster, looks);
    }

    /// Drops all observations, because other conductors may have changed what was observed.
    pub(crate) fn forget_all(&self) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    pub(crate) fn forget(&self, cluster: ClusterUuid) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).remove(&cluster);
    }
}

impl CachedObservations {
    /// Returns the objects that the cluster uses and does not own.
    pub(crate) fn looked_up(&self) -> Arc<LookupCache> {
        self.looked_up.clone()
    }

    /// Returns all objects of a kind, if every one in the ledger was ready.
    pub(crate) fn all_of(&self, ledger: &Ledger, kind: Kind) -> Option<Vec<(Key, CloudObject)>> {
        let known = |key: &Key, id: Option<&String>| {
            let (_, found) = self.objects.get(key)?;
            (id == Some(&found.id)).then(|| (key.clone(), found.clone()))
        };
        let lines = ledger.of_kind(kind).into_iter();
        lines.map(|(key, line)| known(key, line.cloud_id.as_ref())).collect()
    }

    /// Adds what a turn that began at `now` observed and created. Objects from the cache keep their age.
    pub(crate) fn note(&mut self, seen: &ClusterObservation, now: Timestamp) {
        let mut before = std::mem::take(&mut self.objects);
        for (key, found) in &seen.objects {
            if found.state == CloudObjectState::Ready && !key.is_made_inside() {
                let at = before.remove(key).map_or(now, |(at, _)| at);
                self.objects.insert(key.clone(), (at, found.clone()));
            }
        }
    }
}

#[cfg(test)]
mod tests;
