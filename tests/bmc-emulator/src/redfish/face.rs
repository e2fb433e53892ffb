//! The state of the Redfish service of one machine.

use std::sync::atomic::{AtomicBool, Ordering};
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
    /// Whether a client has the serial port.
    console_is_taken: AtomicBool,
}

impl RedfishFace {
    pub(crate) fn new(machine: Machine, profile: &'static Profile) -> RedfishFace {
        let sessions = Mutex::new(Sessions::new(&profile.sessions));
        RedfishFace {
            machine,
            profile,
            sessions,
            tasks: Mutex::default(),
            console_is_taken: AtomicBool::new(false),
        }
    }

    pub(crate) fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The URI of the serial console, as the document of the system names it. `None` if the profile has none.
    pub(crate) fn console_uri(&self) -> Option<&'static str> {
        let row =
            self.profile.tree.iter().find(|row| row.document.contains_key("SerialConsole"))?;
        row.document["SerialConsole"]["WebSocket"]["ConsoleURI"].as_str()
    }

    /// Gives the serial port to a client. Returns whether no other client has it.
    pub(crate) fn take_console(&self) -> bool {
        !self.console_is_taken.swap(true, Ordering::AcqRel)
    }

    pub(crate) fn give_console_back(&self) {
        self.console_is_taken.store(false, Ordering::Release);
    }

    pub(crate) fn tasks(&self) -> MutexGuard<'_, Tasks> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
