//! Single actions on a VM, such as a reboot: recorded first, then requested from Nova, and judged by later observations.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{ServerDetails, ServerState};

use super::VmFlavor;

/// A single action on a VM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VmAction {
    pub kind: VmActionKind,
    pub asker: ActionOrigin,
    pub asked_at: Timestamp,
    /// The request to Nova; `None`: not sent yet.
    pub sent: Option<SentRequest>,
}

/// The kind of an action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VmActionKind {
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
pub enum ActionOrigin {
    /// A request through the API.
    Owner,
    /// The end of the lease, or its undoing.
    Lease,
}

/// The request to Nova for an action. Recorded before the request is sent, so that a crash never sends it twice unnoticed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentRequest {
    pub at: Timestamp,
    /// The id of the last request that Nova had recorded for this server before. A newer one is the request of this action.
    pub after: Option<String>,
    /// How often the request was sent.
    pub times: u32,
}

/// Whether Nova received the request for an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestArrival {
    Arrived,
    /// Nova has recorded no request since the one named in [`SentRequest::after`].
    NotYet,
}

/// The next step of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ActionStep {
    /// Nova is working, or may still receive the request.
    Wait,
    /// The request is to be sent.
    Ask,
    Confirm,
    Done,
    /// The server is in a state that does not allow the action, and no request is in progress.
    Refuse(String),
    /// Nova received the request and did not carry it out, or never received it.
    Fail(String),
}

/// How often a request that never arrives is sent.
const MAX_SENDS: u32 = 3;

impl VmAction {
    /// Makes a new action that was not sent yet.
    pub fn new(kind: VmActionKind, asker: ActionOrigin, now: Timestamp) -> Self {
        VmAction { kind, asker, asked_at: now, sent: None }
    }

    /// Decides the next step of the action.
    ///
    /// `arrival` must have been read before the observation of the server. `is_late` says whether Nova can no longer receive a request that
    /// was sent.
    pub(super) fn next(
        &self,
        server: Option<&ServerDetails>,
        arrival: RequestArrival,
        is_late: bool,
    ) -> ActionStep {
        let Some(server) = server else {
            return ActionStep::Refuse("the VM has no server".to_owned());
        };
        match (&server.is, self.sent.is_some()) {
            (ServerState::Leaving, _) => {
                return ActionStep::Refuse("the VM is being deleted".to_owned());
            }
            (ServerState::Building | ServerState::Changing, _) => return ActionStep::Wait,
            _ if server.is_busy => return ActionStep::Wait,
            (ServerState::Resized, true) if matches!(self.kind, VmActionKind::Resize(_)) => {
                return ActionStep::Confirm;
            }
            _ => {}
        }
        if self.is_reached(server) && (self.sent.is_none() || !self.is_reboot()) {
            return ActionStep::Done;
        }
        let Some(sent) = &self.sent else {
            return match self.obstacle(server) {
                Some(why) => ActionStep::Refuse(why),
                None => ActionStep::Ask,
            };
        };
        match arrival {
            RequestArrival::NotYet if !is_late => ActionStep::Wait,
            RequestArrival::NotYet if sent.times < MAX_SENDS => match self.obstacle(server) {
                Some(why) => ActionStep::Refuse(why),
                None => ActionStep::Ask,
            },
            RequestArrival::NotYet => ActionStep::Fail("Nova never started it".to_owned()),
            RequestArrival::Arrived if self.is_reboot() && server.is == ServerState::On => {
                ActionStep::Done
            }
            RequestArrival::Arrived => {
                ActionStep::Fail(format!("Nova gave up, and the server is {}", word(&server.is)))
            }
        }
    }

    /// Whether the server is in the state that the action leads to. Never true for a reboot, which leads to the same state.
    fn is_reached(&self, server: &ServerDetails) -> bool {
        match &self.kind {
            VmActionKind::Start => server.is == ServerState::On,
            VmActionKind::Stop => server.is == ServerState::Off,
            VmActionKind::RebootSoft | VmActionKind::RebootHard => false,
            VmActionKind::Resize(flavor) => {
                server.flavor == flavor.name
                    && matches!(server.is, ServerState::On | ServerState::Off)
            }
        }
    }

    fn is_reboot(&self) -> bool {
        matches!(self.kind, VmActionKind::RebootSoft | VmActionKind::RebootHard)
    }

    /// Returns why the action cannot be done to a server in this state.
    fn obstacle(&self, server: &ServerDetails) -> Option<String> {
        let may = match (&self.kind, &server.is) {
            (VmActionKind::Start, ServerState::Off)
            | (VmActionKind::Stop, ServerState::On | ServerState::Failed(_))
            | (VmActionKind::RebootSoft, ServerState::On)
            // A hard reboot is how a server leaves ERROR.
            | (
                VmActionKind::RebootHard,
                ServerState::On | ServerState::Off | ServerState::Failed(_) | ServerState::Other(_),
            )
            | (VmActionKind::Resize(_), ServerState::On | ServerState::Off) => true,
            (_, _) => false,
        };
        (!may).then(|| format!("the server is {}", word(&server.is)))
    }
}

/// Describes the state of a server in the middle of a sentence.
pub(super) fn word(is: &ServerState) -> String {
    match is {
        ServerState::Building => "being built".to_owned(),
        ServerState::On => "on".to_owned(),
        ServerState::Off => "off".to_owned(),
        ServerState::Resized => "resized, but the new size is not confirmed".to_owned(),
        ServerState::Changing => "changing".to_owned(),
        ServerState::Failed(why) => format!("in ERROR ({why})"),
        ServerState::Leaving => "being deleted".to_owned(),
        ServerState::Other(other) => format!("in state {other}"),
    }
}

impl fmt::Display for VmActionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VmActionKind::Start => f.write_str("start"),
            VmActionKind::Stop => f.write_str("stop"),
            VmActionKind::RebootSoft => f.write_str("reboot"),
            VmActionKind::RebootHard => f.write_str("hard reboot"),
            VmActionKind::Resize(flavor) => write!(f, "resize to {}", flavor.name),
        }
    }
}
