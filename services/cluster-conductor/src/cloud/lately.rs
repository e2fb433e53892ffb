//! What was seen of clusters that are on their way, for a moment: a turn does not ask again for what was at rest a moment
//! ago, only for what is still to come. It is nothing that would be missed: who has forgotten looks.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cluster_core::{ClusterUuid, Found, FoundState, Key, Kind, Seen};
use jiff::{SignedDuration, Timestamp};

use super::ledger::Ledger;
use super::site::LookedUp;

/// How long a look counts.
const LASTS: Duration = Duration::from_secs(10);

/// The looks of all clusters.
#[derive(Default)]
pub(crate) struct Lately {
    kept: Mutex<HashMap<ClusterUuid, Looks>>,
}

/// What turns of one cluster have seen.
#[derive(Default)]
pub(crate) struct Looks {
    /// Of what it was asked to be then.
    asked_at: Option<Timestamp>,
    /// What it uses and does not own, and since when that is known.
    looked_up: Arc<LookedUp>,
    since: Option<Timestamp>,
    /// What was at rest, and when.
    objects: BTreeMap<Key, (Timestamp, Found)>,
}

impl Lately {
    /// What turns saw of a cluster so lately that it counts, and at most `look_every` ago; nothing, where it was asked to be
    /// otherwise since, at `asked_at`. It is not kept any longer.
    pub(crate) fn take(
        &self,
        (cluster, asked_at): (ClusterUuid, Timestamp),
        now: Timestamp,
        look_every: Duration,
    ) -> Looks {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).remove(&cluster);
        let asked_at = Some(asked_at);
        let kept = kept.filter(|looks| looks.asked_at == asked_at).unwrap_or_default();
        let lasts = SignedDuration::try_from(LASTS.min(look_every)).unwrap_or_default();
        let is_fresh = |at: Timestamp| now.duration_since(at) < lasts;
        let mut objects = kept.objects;
        objects.retain(|_, (at, _)| is_fresh(*at));
        match kept.since.filter(|at| is_fresh(*at)) {
            Some(since) => {
                Looks { asked_at, looked_up: kept.looked_up, since: Some(since), objects }
            }
            None => Looks { asked_at, looked_up: Arc::default(), since: Some(now), objects },
        }
    }

    /// Keeps what was seen for the cluster's next turn.
    pub(crate) fn keep(&self, cluster: ClusterUuid, looks: Looks) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).insert(cluster, looks);
    }

    /// Forgets a cluster.
    pub(crate) fn forget(&self, cluster: ClusterUuid) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).remove(&cluster);
    }
}

impl Looks {
    /// What the cluster uses and does not own.
    pub(crate) fn looked_up(&self) -> Arc<LookedUp> {
        self.looked_up.clone()
    }

    /// All objects of a kind, if each that the ledger names was at rest.
    pub(crate) fn all_of(&self, ledger: &Ledger<'_>, kind: Kind) -> Option<Vec<(Key, Found)>> {
        let known = |key: &Key, id: Option<&String>| {
            let (_, found) = self.objects.get(key)?;
            (id == Some(&found.id)).then(|| (key.clone(), found.clone()))
        };
        let lines = ledger.of_kind(kind).into_iter();
        lines.map(|(key, line)| known(key, line.cloud_id.as_ref())).collect()
    }

    /// Notes what a turn saw and made that began then. What it did not look at is as old as it was.
    pub(crate) fn note(&mut self, seen: &Seen, now: Timestamp) {
        let mut before = std::mem::take(&mut self.objects);
        for (key, found) in &seen.objects {
            if found.state == FoundState::Ready && !key.is_made_inside() {
                let at = before.remove(key).map_or(now, |(at, _)| at);
                self.objects.insert(key.clone(), (at, found.clone()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use cluster_core::{Facts, LedgerEntry, LedgerState, LedgerUuid};
    use cluster_store::Store;

    use super::*;

    const EVERY: Duration = Duration::from_secs(60);

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + seconds).unwrap()
    }

    fn found(id: &str, state: FoundState) -> Found {
        Found { id: id.to_owned(), state, address: None, facts: Facts::None }
    }

    /// What a turn at 0 leaves that saw a network at rest and a server under way, of a cluster asked for at -1.
    struct Given {
        store: Store,
        cluster: ClusterUuid,
        lately: Lately,
    }

    impl Given {
        async fn new() -> Given {
            let store = Store::open("sqlite::memory:").await.unwrap();
            let (cluster, lately) = (ClusterUuid::new_v4(), Lately::default());
            let given = Given { store, cluster, lately };
            given.looked(0);
            given
        }

        fn looked(&self, seconds: i64) {
            let mut seen = Seen::default();
            seen.objects.insert(Key::Network, found("n", FoundState::Ready));
            seen.objects.insert("server/w-0".parse().unwrap(), found("s", FoundState::Working));
            let mut looks = self.lately.take((self.cluster, at(-1)), at(seconds), EVERY);
            looks.note(&seen, at(seconds));
            self.lately.keep(self.cluster, looks);
        }

        /// Which kinds a turn would not ask for, if the ledger has this id of the network.
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
            let ledger = Ledger::new(&self.store, self.cluster, at(now), lines);
            let looks = self.lately.take((self.cluster, at(asked)), at(now), every);
            let known = [Kind::Network, Kind::Server]
                .into_iter()
                .filter(|kind| looks.all_of(&ledger, *kind).is_some());
            known.map(|kind| format!("{kind:?}")).collect::<Vec<_>>().join(" ")
        }
    }

    #[tokio::test]
    async fn what_was_at_rest_a_moment_ago_is_not_asked_for() {
        let given = Given::new().await;
        assert_eq!(given.known(-1, 9, EVERY, Some("n")), "Network");
        // Who took it has to keep it.
        assert_eq!(given.known(-1, 9, EVERY, Some("n")), "");
    }

    #[tokio::test]
    async fn a_look_that_is_old_is_forgotten_however_often_it_was_used() {
        let given = Given::new().await;
        given.looked(5);
        assert_eq!(given.known(-1, 10, EVERY, Some("n")), "");
        given.looked(5);
        assert_eq!(given.known(-1, 6, Duration::from_secs(1), Some("n")), "");
    }

    #[tokio::test]
    async fn a_cluster_that_is_to_be_otherwise_is_looked_at() {
        let given = Given::new().await;
        assert_eq!(given.known(1, 2, EVERY, Some("n")), "");
    }

    #[tokio::test]
    async fn an_object_with_another_id_is_looked_for() {
        for id in [None, Some("other")] {
            let given = Given::new().await;
            assert_eq!(given.known(-1, 1, EVERY, id), "");
        }
    }
}
