//! The ledger within a turn: which entries are written and removed.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use crate::{
    Action, ClusterObservation, DesiredObjects, Key, Kind, LedgerEntry, LedgerOwner, LedgerState,
    LedgerUuid,
};

/// How long a list of a service may lag behind.
const LISTS_LAG: SignedDuration = SignedDuration::from_secs(10);

/// The ledger of a cluster or a VM during a turn: entries by the key of their object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ledger {
    of: LedgerOwner,
    /// When the turn began.
    now: Timestamp,
    lines: BTreeMap<Key, LedgerEntry>,
}

/// The result of comparing the ledger with an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LedgerMatch {
    /// Every entry is an existing or a desired object.
    Complete,
    Removed,
    /// An object that was requested may still appear.
    MayStillCome,
}

/// The changes of the stored ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerUpdate {
    pub saved: Vec<LedgerEntry>,
    pub removed: Vec<LedgerUuid>,
    pub agreed: LedgerMatch,
}

impl Ledger {
    /// Entries whose kind is not a key are ignored.
    pub fn new(of: impl Into<LedgerOwner>, now: Timestamp, lines: Vec<LedgerEntry>) -> Self {
        let keyed = lines.into_iter().filter_map(|line| Some((line.kind.parse().ok()?, line)));
        Ledger { of: of.into(), now, lines: keyed.collect() }
    }

    /// Returns the entries of this kind.
    pub fn of_kind(&self, kind: Kind) -> Vec<(&Key, &LedgerEntry)> {
        self.lines.iter().filter(|(key, _)| key.kind() == kind).collect()
    }

    /// Returns the entry of an object.
    pub fn line(&self, key: &Key) -> Option<&LedgerEntry> {
        self.lines.get(key)
    }

    /// Whether a delete was requested before.
    pub fn is_leaving(&self, key: &Key) -> bool {
        self.lines.get(key).is_some_and(|line| line.state == LedgerState::Deleting)
    }

    /// Whether the cloud confirmed the object so recently that its lists may not show it yet.
    pub fn is_fresh(&self, key: &Key) -> bool {
        let Some(line) = self.lines.get(key) else { return false };
        let said = line.updated_at.unwrap_or(line.created_at);
        line.state == LedgerState::Present && self.now.duration_since(said) <= LISTS_LAG
    }

    /// Applies an observation: updates the entries of observed objects, adds entries of objects that Kubernetes created, and removes entries
    /// of objects that neither exist nor are desired.
    ///
    /// An entry whose create request got no answer stays for `lands_within`, because the cloud may still carry the request out.
    pub fn reconcile(
        &mut self,
        seen: &ClusterObservation,
        shape: &DesiredObjects,
        lands_within: SignedDuration,
        mut new_id: impl FnMut() -> LedgerUuid,
    ) -> LedgerUpdate {
        let (mut saved, mut gone, mut agreed) = (Vec::new(), Vec::new(), LedgerMatch::Complete);
        for (key, found) in &seen.objects {
            if key.is_made_inside() && !self.lines.contains_key(key) {
                let line = self.found_inside(key, &found.id, new_id());
                saved.push(line.clone());
                self.lines.insert(key.clone(), line);
            }
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
                    saved.push(line.clone());
                }
            } else if !shape.contains_key(key) {
                let asked = line.updated_at.unwrap_or(line.created_at);
                let waited = self.now.duration_since(asked) > lands_within;
                if line.cloud_id.is_some() && matches!(key, Key::Twin(_)) {
                    // The duplicate is deleted, and there may be another one.
                    (line.cloud_id, line.state) = (None, LedgerState::Intended);
                    line.updated_at = Some(self.now);
                    saved.push(line.clone());
                    agreed = LedgerMatch::MayStillCome;
                } else if line.cloud_id.is_some() || waited {
                    gone.push((key.clone(), line.id));
                } else {
                    agreed = LedgerMatch::MayStillCome;
                }
            }
        }
        let mut removed = Vec::new();
        for (key, id) in gone {
            self.lines.remove(&key);
            removed.push(id);
            agreed = LedgerMatch::Removed;
        }
        LedgerUpdate { saved, removed, agreed }
    }

    /// Makes the entry of an object that Kubernetes created.
    fn found_inside(&self, key: &Key, cloud_id: &str, id: LedgerUuid) -> LedgerEntry {
        LedgerEntry {
            id,
            of: self.of,
            kind: key.to_string(),
            name: key.to_string(),
            cloud_id: Some(cloud_id.to_owned()),
            state: LedgerState::Present,
            created_at: self.now,
            updated_at: None,
        }
    }

    /// Adds the intents of creates and deletes. Returns the entries to write before the actions start.
    pub fn intend(
        &mut self,
        actions: &[Action],
        shape: &DesiredObjects,
        mut new_id: impl FnMut() -> LedgerUuid,
    ) -> Vec<LedgerEntry> {
        let mut news = Vec::new();
        for action in actions {
            match action {
                Action::Create(key) => {
                    let Some(object) = shape.get(key) else { continue };
                    let known = self.lines.get(key);
                    news.extend(known.and_then(|line| self.twin(key, line, &mut new_id)));
                    let line = LedgerEntry {
                        id: known.map_or_else(&mut new_id, |line| line.id),
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
        let entries = news.iter().map(|(_, line)| line.clone()).collect();
        self.lines.extend(news);
        entries
    }

    /// Makes the entry of a possible duplicate, when an earlier create request got no answer: the cloud may have created an object, or
    /// still create it.
    fn twin(
        &self,
        key: &Key,
        asked: &LedgerEntry,
        mut new_id: impl FnMut() -> LedgerUuid,
    ) -> Option<(Key, LedgerEntry)> {
        let twin = key.duplicate().filter(|_| asked.cloud_id.is_none())?;
        let known = self.lines.get(&twin);
        if known.is_some_and(|line| line.cloud_id.is_some()) {
            return None;
        }
        let line = LedgerEntry {
            id: known.map_or_else(&mut new_id, |line| line.id),
            kind: twin.to_string(),
            cloud_id: None,
            state: LedgerState::Intended,
            created_at: known.map_or(self.now, |line| line.created_at),
            updated_at: Some(self.now),
            ..asked.clone()
        };
        Some((twin, line))
    }

    /// Returns the entry of an object that was just created under this id.
    pub fn created(&self, key: &Key, id: &str) -> Option<LedgerEntry> {
        let line = self.lines.get(key)?;
        Some(LedgerEntry {
            cloud_id: Some(id.to_owned()),
            state: LedgerState::Present,
            updated_at: Some(self.now),
            ..line.clone()
        })
    }
}
