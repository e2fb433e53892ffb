//! Plans the next actions in the cloud for a VM.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::failure::{held_of, setbacks_of};
use crate::plan::{can_go, next_action};
use crate::{
    Action, BackingOff, Backoff, CloudObjectState, ClusterObservation, DesiredObjects, Key,
};

use super::Vm;

/// After how many failures in a row an object of a VM is given up.
pub(super) const MAX_FAILURES: u32 = 3;

/// Returns every action that can be performed now for `vm`, given the observation.
///
/// A server that ran once is never created again, and never deleted because it failed: its disk holds the owner's data.
pub fn vm_plan(vm: &Vm, shape: &DesiredObjects, seen: &ClusterObservation) -> Vec<Action> {
    let mut actions: Vec<Action> = shape
        .iter()
        .filter_map(|(key, object)| next_action(key, object, shape, seen))
        .filter(|action| vm.built_at.is_none() || !is_of_server(action))
        .filter(|action| is_booted_from(action, seen))
        .collect();
    for (key, found) in seen.objects.iter().filter(|(key, _)| !shape.contains_key(*key)) {
        // Cinder refuses to delete a volume while it writes the image to it.
        let is_held = *key == Key::RootVolume && found.state == CloudObjectState::Working;
        if found.state != CloudObjectState::Deleting && !is_held && can_go(key, seen) {
            actions.push(Action::Delete(key.clone()));
        }
    }
    actions
}

/// Whether the action creates or deletes the server, or an object that the server cannot exist without.
fn is_of_server(action: &Action) -> bool {
    let (Action::Create(key) | Action::Delete(key)) = action else { return false };
    matches!(key, Key::Server(_) | Key::Port(_) | Key::RootVolume)
}

/// Whether the boot volume is ready; always true for actions that do not need it.
fn is_booted_from(action: &Action, seen: &ClusterObservation) -> bool {
    let Action::Create(Key::Server(_)) = action else { return true };
    seen.objects.get(&Key::RootVolume).is_none_or(|volume| volume.is_ready())
}

impl Vm {
    /// Returns the objects whose next attempt is not due yet. An object that was given up is never due.
    pub fn held(&self, backoff: &Backoff, now: Timestamp) -> BTreeMap<Key, BackingOff> {
        let mut held = held_of(self.setbacks.iter(), backoff, now);
        for (key, setback) in self.given_up() {
            let why = setback.why.clone();
            held.insert(
                key.clone(),
                BackingOff { times: setback.times, why, until: Timestamp::MAX },
            );
        }
        held
    }

    /// Returns the VM with the failures that the observation shows.
    pub fn with_setbacks(
        &self,
        shape: &DesiredObjects,
        seen: &ClusterObservation,
        now: Timestamp,
    ) -> Vm {
        let setbacks = setbacks_of(&self.setbacks, self.created_at, shape, seen, now);
        Vm { setbacks, ..self.clone() }
    }

    /// Returns the objects that were given up.
    pub(super) fn given_up(&self) -> impl Iterator<Item = (&Key, &crate::FailureCount)> {
        self.setbacks.iter().filter(|(_, setback)| setback.times >= MAX_FAILURES)
    }
}
