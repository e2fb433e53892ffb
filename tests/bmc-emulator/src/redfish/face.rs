//! The state of the Redfish service of one machine.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::machine::Machine;
use crate::profile::Profile;
use crate::redfish::session::Sessions;
use crate::redfish::task::Tasks;

pub(crate) struct RedfishFace {
    pub(crate) machine: Machine,
    pub(crate) profile: &'static Profile,
    sessions: Mutex<Sessions>,
    tasks: Mutex<Tasks>,
}

impl RedfishFace {
    pub(crate) fn new(machine: Machine, profile: &'static Profile) -> RedfishFace {
        let sessions = Mutex::new(Sessions::new(&profile.sessions));
        RedfishFace { machine, profile, sessions, tasks: Mutex::default() }
    }

    pub(crate) fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn tasks(&self) -> MutexGuard<'_, Tasks> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
