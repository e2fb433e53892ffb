//! The observations that the next turn uses again, and those that it does not.

use cluster_core::{CloudObjectDetails, LedgerEntry, LedgerState, LedgerUuid};

use super::*;

const EVERY: Duration = Duration::from_secs(60);

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + seconds).unwrap()
}

fn found(id: &str, state: CloudObjectState) -> CloudObject {
    CloudObject { id: id.to_owned(), state, address: None, facts: CloudObjectDetails::None }
}

/// The cache after a turn at second 0, of a cluster requested at second -1: the network was ready, the server in progress.
struct CacheFixture {
    cluster: ClusterUuid,
    observation_cache: ObservationCache,
}

impl CacheFixture {
    fn new() -> CacheFixture {
        let (cluster, observation_cache) = (ClusterUuid::new_v4(), ObservationCache::default());
        let given = CacheFixture { cluster, observation_cache };
        given.looked(0);
        given
    }

    fn looked(&self, seconds: i64) {
        let mut seen = ClusterObservation::default();
        seen.objects.insert(Key::Network, found("n", CloudObjectState::Ready));
        seen.objects.insert("server/w-0".parse().unwrap(), found("s", CloudObjectState::Working));
        let mut looks = self.observation_cache.take((self.cluster, at(-1)), at(seconds), EVERY);
        looks.note(&seen, at(seconds));
        self.observation_cache.keep(self.cluster, looks);
    }

    /// Returns the kinds that a turn need not observe, when the ledger has this id for the network.
    fn known(&self, asked: i64, now: i64, every: Duration, id: Option<&str>) -> String {
        let line = |kind: &str, id: Option<&str>| LedgerEntry {
            id: LedgerUuid::new_v4(),
            of: self.cluster.into(),
            kind: kind.to_owned(),
            name: kind.to_owned(),
            cloud_id: id.map(str::to_owned),
            state: LedgerState::Present,
            created_at: at(0),
            updated_at: None,
        };
        let lines = vec![line("network", id), line("server/w-0", Some("s"))];
        let ledger = Ledger::new(self.cluster, at(now), lines);
        let looks = self.observation_cache.take((self.cluster, at(asked)), at(now), every);
        let known = [Kind::Network, Kind::Server]
            .into_iter()
            .filter(|kind| looks.all_of(&ledger, *kind).is_some());
        known.map(|kind| format!("{kind:?}")).collect::<Vec<_>>().join(" ")
    }
}

#[test]
fn an_object_that_was_ready_a_moment_ago_is_not_observed_again() {
    let given = CacheFixture::new();
    assert_eq!(given.known(-1, 9, EVERY, Some("n")), "Network");
    // `take` removed the observations, and nothing stored them again.
    assert_eq!(given.known(-1, 9, EVERY, Some("n")), "");
}

#[test]
fn an_old_observation_is_dropped_however_often_it_was_used() {
    let given = CacheFixture::new();
    given.looked(5);
    assert_eq!(given.known(-1, 10, EVERY, Some("n")), "");
    given.looked(5);
    assert_eq!(given.known(-1, 6, Duration::from_secs(1), Some("n")), "");
}

#[test]
fn a_changed_cluster_is_observed_again() {
    let given = CacheFixture::new();
    assert_eq!(given.known(1, 2, EVERY, Some("n")), "");
}

#[test]
fn an_object_with_another_id_is_observed_again() {
    for id in [None, Some("other")] {
        let given = CacheFixture::new();
        assert_eq!(given.known(-1, 1, EVERY, id), "");
    }
}

#[test]
fn a_cluster_that_is_forgotten_is_observed_again() {
    let given = CacheFixture::new();
    given.observation_cache.forget(ClusterUuid::new_v4());
    let looks = given.observation_cache.take((given.cluster, at(-1)), at(1), EVERY);
    assert_eq!(looks.objects.len(), 1);
    given.observation_cache.keep(given.cluster, looks);
    given.observation_cache.forget(given.cluster);
    assert_eq!(given.known(-1, 1, EVERY, Some("n")), "");
}

#[test]
fn objects_that_kubernetes_made_are_observed_in_every_turn() {
    let mut seen = ClusterObservation::default();
    for key in ["network", "service-balancer/b", "volume/v"] {
        seen.objects.insert(key.parse().unwrap(), found("1", CloudObjectState::Ready));
    }
    let mut looks = CachedObservations::default();
    looks.note(&seen, at(0));
    assert_eq!(looks.objects.into_keys().collect::<Vec<_>>(), [Key::Network]);
}

#[test]
fn objects_of_others_are_looked_up_again_as_late_as_own_objects_are_observed() {
    let cache = ObservationCache::default();
    let cluster = ClusterUuid::new_v4();
    let take = |asked, now| cache.take((cluster, at(asked)), at(now), EVERY);
    let first = take(0, 0);
    let known = first.looked_up();
    cache.keep(cluster, first);
    let again = take(0, 9);
    assert!(Arc::ptr_eq(&known, &again.looked_up()));
    cache.keep(cluster, again);
    let late = take(0, 10);
    assert!(!Arc::ptr_eq(&known, &late.looked_up()));
    let known = late.looked_up();
    cache.keep(cluster, late);
    assert!(!Arc::ptr_eq(&known, &take(1, 11).looked_up()), "the cluster was changed");
}
