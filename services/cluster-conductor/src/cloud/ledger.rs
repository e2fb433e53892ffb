//! The ledger within a turn: entries by the key of their object.

use std::collections::BTreeMap;
use std::time::Duration;

use cluster_core::{
    Action, ClusterObservation, DesiredObjects, Key, Kind, LedgerEntry, LedgerOwner, LedgerState,
    LedgerUuid,
};
use cluster_store::{Store, StoreError};
use jiff::{SignedDuration, Timestamp};

/// How long a list of a service may lag behind.
const LISTS_LAG: Duration = Duration::from_secs(10);

/// The ledger of a cluster or a VM.
#[derive(Clone)]
pub(crate) struct Ledger<'a> {
    store: &'a Store,
    of: LedgerOwner,
    now: Timestamp,
    lines: BTreeMap<Key, LedgerEntry>,
}

/// The result of comparing the ledger with an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LedgerMatch {
    /// Every entry is an existing or a desired object.
    Wholly,
    /// Entries were removed.
    Struck,
    /// An object that was requested may still appear.
    MayStillCome,
}

impl<'a> Ledger<'a> {
    /// Entries whose kind is not a key are ignored.
    pub(crate) fn new(
        store: &'a Store,
        of: impl Into<LedgerOwner>,
        now: Timestamp,
        lines: Vec<LedgerEntry>,
    ) -> Self {
        let keyed = lines.into_iter().filter_map(|line| Some((line.kind.parse().ok()?, line)));
        Ledger { store, of: of.into(), now, lines: keyed.collect() }
    }

    /// Returns the entries of this kind.
    pub(crate) fn of_kind(&self, kind: Kind) -> Vec<(&Key, &LedgerEntry)> {
        self.lines.iter().filter(|(key, _)| key.kind() == kind).collect()
    }

    /// Returns the entry of an object.
    pub(crate) fn line(&self, key: &Key) -> Option<&LedgerEntry> {
        self.lines.get(key)
    }

    /// Whether a delete was requested before.
    pub(crate) fn is_leaving(&self, key: &Key) -> bool {
        self.lines.get(key).is_some_and(|line| line.state == LedgerState::Deleting)
    }

    /// Whether the cloud confirmed the object so recently that its lists may not show it yet.
    pub(crate) fn is_fresh(&self, key: &Key) -> bool {
        let Some(line) = self.lines.get(key) else { return false };
        let said = line.updated_at.unwrap_or(line.created_at);
        let late = SignedDuration::try_from(LISTS_LAG).unwrap_or(SignedDuration::MAX);
        line.state == LedgerState::Present && self.now.duration_since(said) <= late
    }

    /// Records what was observed, and removes entries of objects that neither exist nor are desired.
    ///
    /// An entry whose create request got no answer stays for `lands_within`, because the cloud may still carry the request out.
    pub(crate) async fn reconcile(
        &mut self,
        seen: &ClusterObservation,
        shape: &DesiredObjects,
        lands_within: SignedDuration,
    ) -> Result<LedgerMatch, StoreError> {
        let (mut news, mut gone, mut agreed) = (Vec::new(), Vec::new(), LedgerMatch::Wholly);
        let unknown = seen
            .objects
            .iter()
            .filter(|(key, _)| key.is_made_inside() && !self.lines.contains_key(*key));
        let found: Vec<_> = unknown.map(|(key, found)| (key.clone(), found.id.clone())).collect();
        for (key, id) in found {
            let line = self.found_inside(&key, id);
            news.push(line.clone());
            self.lines.insert(key, line);
        }
        for (key, line) in &mut self.lines {
            if let Some(found) = seen.objects.get(key) {
                let state = match line.state {
                    LedgerState::Intended | LedgerState::Present => LedgerState::Present,
                    LedgerState::Deleting => LedgerState::Deleting,
                };
                if line.cloud_id.as_ref() != Some(&found.id) || line.state != state {
                    line.cloud_id = Some(found.id.clone());
                    line.state = state;
                    line.updated_at = Some(self.now);
                    news.push(line.clone());
                }
            } else if !shape.contains_key(key) {
                let asked = line.updated_at.unwrap_or(line.created_at);
                let waited = self.now.duration_since(asked) > lands_within;
                if line.cloud_id.is_some() && matches!(key, Key::Twin(_)) {
                    // The duplicate is deleted, and there may be another one.
                    (line.cloud_id, line.state) = (None, LedgerState::Intended);
                    line.updated_at = Some(self.now);
                    news.push(line.clone());
                    agreed = LedgerMatch::MayStillCome;
                } else if line.cloud_id.is_some() || waited {
                    gone.push((key.clone(), line.id));
                } else {
                    agreed = LedgerMatch::MayStillCome;
                }
            }
        }
        if !news.is_empty() {
            self.store.save_ledger(&news).await?;
        }
        for (key, id) in gone {
            self.store.remove_ledger_entry(id).await?;
            self.lines.remove(&key);
            agreed = LedgerMatch::Struck;
        }
        Ok(agreed)
    }

    /// Makes the entry of an object that Kubernetes created.
    fn found_inside(&self, key: &Key, id: String) -> LedgerEntry {
        LedgerEntry {
            id: LedgerUuid::new_v4(),
            of: self.of,
            kind: key.to_string(),
            name: key.to_string(),
            cloud_id: Some(id),
            state: LedgerState::Present,
            created_at: self.now,
            updated_at: None,
        }
    }

    /// Records the intents of creates and deletes.
    pub(crate) async fn record_intents(
        &mut self,
        actions: &[Action],
        shape: &DesiredObjects,
    ) -> Result<(), StoreError> {
        let mut news = Vec::new();
        for action in actions {
            match action {
                Action::Create(key) => {
                    let Some(object) = shape.get(key) else { continue };
                    let known = self.lines.get(key);
                    news.extend(known.and_then(|line| self.twin(key, line)));
                    let line = LedgerEntry {
                        id: known.map_or_else(LedgerUuid::new_v4, |line| line.id),
                        of: self.of,
                        kind: key.to_string(),
                        // An object that was requested under a name is found only under that name.
                        name: known.map_or(&object.name, |line| &line.name).clone(),
                        cloud_id: None,
                        state: LedgerState::Intended,
                        created_at: known.map_or(self.now, |line| line.created_at),
                        updated_at: known.map(|_| self.now),
                    };
                    news.push((key.clone(), line));
                }
                Action::Delete(key) => {
                    let Some(known) = self.lines.get(key) else { continue };
                    let state = LedgerState::Deleting;
                    let line = LedgerEntry { state, updated_at: Some(self.now), ..known.clone() };
                    news.push((key.clone(), line));
                }
                Action::SetRules(_)
                | Action::SetAddresses(..)
                | Action::Drain(_)
                | Action::LeaveEtcd(_)
                | Action::ForgetNode(_) => {}
            }
        }
        if news.is_empty() {
            return Ok(());
        }
        let entries: Vec<LedgerEntry> = news.iter().map(|(_, line)| line.clone()).collect();
        self.store.record_intents(&entries).await?;
        self.lines.extend(news);
        Ok(())
    }

    /// Makes the entry of a possible duplicate, when an earlier create request got no answer: the cloud may have created an object, or
    /// still create it.
    fn twin(&self, key: &Key, asked: &LedgerEntry) -> Option<(Key, LedgerEntry)> {
        let twin = key.duplicate().filter(|_| asked.cloud_id.is_none())?;
        let known = self.lines.get(&twin);
        if known.is_some_and(|line| line.cloud_id.is_some()) {
            return None;
        }
        let line = LedgerEntry {
            id: known.map_or_else(LedgerUuid::new_v4, |line| line.id),
            kind: twin.to_string(),
            cloud_id: None,
            state: LedgerState::Intended,
            created_at: known.map_or(self.now, |line| line.created_at),
            updated_at: Some(self.now),
            ..asked.clone()
        };
        Some((twin, line))
    }

    /// Records the id of a created object.
    pub(crate) async fn record_id(&self, key: &Key, id: &str) -> Result<(), StoreError> {
        let Some(line) = self.lines.get(key) else { return Ok(()) };
        let line = LedgerEntry {
            cloud_id: Some(id.to_owned()),
            state: LedgerState::Present,
            updated_at: Some(self.now),
            ..line.clone()
        };
        self.store.save_ledger(&[line]).await
    }
}
