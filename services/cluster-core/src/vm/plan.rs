//! What may be done next in the cloud for a machine.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::plan::{can_go, toward};
use crate::setback::{held_of, setbacks_of};
use crate::{Action, Backoff, FoundState, Held, Key, Seen, Shape};

use super::Vm;

/// So often the cloud may fail at an object of a machine before nobody asks for it any more.
pub(super) const MOST_SETBACKS: u32 = 3;

/// Everything that may be done now for `vm`, given what was seen of it.
///
/// A server that was there as it should be is never made anew, nor deleted because it failed: it holds what its owner did.
pub fn vm_plan(vm: &Vm, shape: &Shape, seen: &Seen) -> Vec<Action> {
    let mut actions: Vec<Action> = shape
        .iter()
        .filter_map(|(key, object)| toward(key, object, shape, seen))
        .filter(|action| vm.built_at.is_none() || !is_of_server(action))
        .filter(|action| is_booted_from(action, seen))
        .collect();
    for (key, found) in seen.objects.iter().filter(|(key, _)| !shape.contains_key(*key)) {
        // A volume that is being written cannot be deleted.
        let is_held = *key == Key::RootVolume && found.state == FoundState::Working;
        if found.state != FoundState::Leaving && !is_held && can_go(key, seen) {
            actions.push(Action::Delete(key.clone()));
        }
    }
    actions
}

/// Whether it makes a server, or what a server cannot do without, or takes it away.
fn is_of_server(action: &Action) -> bool {
    let (Action::Create(key) | Action::Delete(key)) = action else { return false };
    matches!(key, Key::Server(_) | Key::Port(_) | Key::RootVolume)
}

/// A server is asked for once the volume that it boots from has its bytes.
fn is_booted_from(action: &Action, seen: &Seen) -> bool {
    let Action::Create(Key::Server(_)) = action else { return true };
    seen.objects.get(&Key::RootVolume).is_none_or(|volume| volume.is_ready())
}

impl Vm {
    /// What is not asked for before a time: the cloud failed at it. What it failed at too often is asked for never again.
    pub fn held(&self, backoff: &Backoff, now: Timestamp) -> BTreeMap<Key, Held> {
        let mut held = held_of(self.setbacks.iter(), backoff, now);
        for (key, setback) in self.given_up() {
            let why = setback.why.clone();
            held.insert(key.clone(), Held { times: setback.times, why, until: Timestamp::MAX });
        }
        held
    }

    /// It, with what the cloud failed at by this look.
    pub fn with_setbacks(&self, shape: &Shape, seen: &Seen, now: Timestamp) -> Vm {
        let setbacks = setbacks_of(&self.setbacks, self.created_at, shape, seen, now);
        Vm { setbacks, ..self.clone() }
    }

    /// What the cloud failed at too often.
    pub(super) fn given_up(&self) -> impl Iterator<Item = (&Key, &crate::Setback)> {
        self.setbacks.iter().filter(|(_, setback)| setback.times >= MOST_SETBACKS)
    }
}
