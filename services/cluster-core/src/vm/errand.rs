//! Single actions on a VM, such as a reboot: recorded first, then requested from Nova, and judged by later observations.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{ServerFacts, ServerIs, VmFlavor};

/// A single action on a VM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Errand {
    pub kind: ErrandKind,
    pub asker: Asker,
    pub asked_at: Timestamp,
    /// The request to Nova; `None`: not sent yet.
    pub sent: Option<Sent>,
}

/// The kind of an action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrandKind {
    Start,
    Stop,
    /// The operating system reboots.
    RebootSoft,
    /// The server is switched off and on again.
    RebootHard,
    Resize(VmFlavor),
}

/// The origin of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Asker {
    /// A request through the API.
    Owner,
    /// The end of the lease, or its undoing.
    Lease,
}

/// The request to Nova for an action. Recorded before the request is sent, so that a crash never sends it twice unnoticed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    pub at: Timestamp,
    /// The id of the last request that Nova had recorded for this server before. A newer one is the request of this action.
    pub after: Option<String>,
    /// How often the request was sent.
    pub times: u32,
}

/// Whether Nova received the request for an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    Arrived,
    /// Nova has recorded no request since the one named in [`Sent::after`].
    NotYet,
}

/// The next step of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Nova is working, or may still receive the request.
    Wait,
    /// The request is to be sent.
    Ask,
    /// The new size is to be confirmed.
    Confirm,
    Done,
    /// The server is in a state that does not allow the action, and no request is in progress.
    Refuse(String),
    /// Nova received the request and did not carry it out, or never received it.
    Fail(String),
}

/// How often a request that never arrives is sent.
const MOST_TIMES: u32 = 3;

impl Errand {
    /// Makes a new action that was not sent yet.
    pub fn new(kind: ErrandKind, asker: Asker, now: Timestamp) -> Self {
        Errand { kind, asker, asked_at: now, sent: None }
    }

    /// Decides the next step of the action.
    ///
    /// `arrival` must have been read before the observation of the server. `is_late` says whether Nova can no longer receive a request that
    /// was sent.
    pub(super) fn next(
        &self,
        server: Option<&ServerFacts>,
        arrival: Arrival,
        is_late: bool,
    ) -> Next {
        let Some(server) = server else {
            return Next::Refuse("the VM has no server".to_owned());
        };
        match (&server.is, self.sent.is_some()) {
            (ServerIs::Leaving, _) => return Next::Refuse("the VM is being deleted".to_owned()),
            (ServerIs::Building | ServerIs::Changing, _) => return Next::Wait,
            _ if server.is_busy => return Next::Wait,
            (ServerIs::Resized, true) if matches!(self.kind, ErrandKind::Resize(_)) => {
                return Next::Confirm;
            }
            _ => {}
        }
        if self.is_reached(server) && (self.sent.is_none() || !self.is_reboot()) {
            return Next::Done;
        }
        let Some(sent) = &self.sent else {
            return match self.obstacle(server) {
                Some(why) => Next::Refuse(why),
                None => Next::Ask,
            };
        };
        match arrival {
            Arrival::NotYet if !is_late => Next::Wait,
            Arrival::NotYet if sent.times < MOST_TIMES => match self.obstacle(server) {
                Some(why) => Next::Refuse(why),
                None => Next::Ask,
            },
            Arrival::NotYet => Next::Fail("Nova never started it".to_owned()),
            Arrival::Arrived if self.is_reboot() && server.is == ServerIs::On => Next::Done,
            Arrival::Arrived => {
                Next::Fail(format!("Nova gave up, and the server is {}", word(&server.is)))
            }
        }
    }

    /// Whether the server is in the state that the action leads to. Never true for a reboot, which leads to the same state.
    fn is_reached(&self, server: &ServerFacts) -> bool {
        match &self.kind {
            ErrandKind::Start => server.is == ServerIs::On,
            ErrandKind::Stop => server.is == ServerIs::Off,
            ErrandKind::RebootSoft | ErrandKind::RebootHard => false,
            ErrandKind::Resize(flavor) => {
                server.flavor == flavor.name && matches!(server.is, ServerIs::On | ServerIs::Off)
            }
        }
    }

    fn is_reboot(&self) -> bool {
        matches!(self.kind, ErrandKind::RebootSoft | ErrandKind::RebootHard)
    }

    /// Returns why the action cannot be done to a server in this state.
    fn obstacle(&self, server: &ServerFacts) -> Option<String> {
        let may = match (&self.kind, &server.is) {
            (ErrandKind::Start, ServerIs::Off)
            | (ErrandKind::Stop, ServerIs::On | ServerIs::Failed(_))
            | (ErrandKind::RebootSoft, ServerIs::On)
            // A hard reboot is how a server leaves ERROR.
            | (
                ErrandKind::RebootHard,
                ServerIs::On | ServerIs::Off | ServerIs::Failed(_) | ServerIs::Other(_),
            )
            | (ErrandKind::Resize(_), ServerIs::On | ServerIs::Off) => true,
            (_, _) => false,
        };
        (!may).then(|| format!("the server is {}", word(&server.is)))
    }
}

/// Describes the state of a server in the middle of a sentence.
fn word(is: &ServerIs) -> String {
    match is {
        ServerIs::Building => "being built".to_owned(),
        ServerIs::On => "on".to_owned(),
        ServerIs::Off => "off".to_owned(),
        ServerIs::Resized => "resized, but the new size is not confirmed".to_owned(),
        ServerIs::Changing => "changing".to_owned(),
        ServerIs::Failed(why) => format!("in ERROR ({why})"),
        ServerIs::Leaving => "being deleted".to_owned(),
        ServerIs::Other(other) => format!("in state {other}"),
    }
}

impl fmt::Display for ErrandKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ErrandKind::Start => f.write_str("start"),
            ErrandKind::Stop => f.write_str("stop"),
            ErrandKind::RebootSoft => f.write_str("reboot"),
            ErrandKind::RebootHard => f.write_str("hard reboot"),
            ErrandKind::Resize(flavor) => write!(f, "resize to {}", flavor.name),
        }
    }
}
