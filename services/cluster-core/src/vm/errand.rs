//! What is done to a machine once: written down, asked of the cloud, and concluded from what is seen.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{ServerFacts, ServerIs, VmFlavor};

/// Something to do to a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Errand {
    /// What.
    pub kind: ErrandKind,
    /// Who asked for it.
    pub asker: Asker,
    /// When.
    pub asked_at: Timestamp,
    /// When the cloud was asked, if it was.
    pub sent: Option<Sent>,
}

/// What is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrandKind {
    /// It is switched on.
    Start,
    /// It is shut down.
    Stop,
    /// Its system is asked to reboot.
    RebootSoft,
    /// It is switched off and on.
    RebootHard,
    /// It gets another size.
    Resize(VmFlavor),
}

/// Who wants an errand done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Asker {
    /// Whoever may.
    Owner,
    /// The end of its lease, or that it was undone.
    Lease,
}

/// That the cloud was asked. Written before it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// When.
    pub at: Timestamp,
    /// The id of the request that was the last one that Nova had taken up for this server before.
    pub after: Option<String>,
    /// How often it was asked.
    pub times: u32,
}

/// Whether what was sent has reached Nova.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It took it up.
    Arrived,
    /// It knows of nothing after what it knew before.
    NotYet,
}

/// What is to become of an errand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The cloud is at work, or may still get it.
    Wait,
    /// The cloud is to be asked.
    Ask,
    /// Its new size is to be confirmed.
    Confirm,
    /// It is done.
    Done,
    /// It cannot be done as the machine is: nobody was asked.
    Refuse(String),
    /// The cloud was asked, and did not do it.
    Fail(String),
}

/// So often a request is repeated that never arrives.
const MOST_TIMES: u32 = 3;

impl Errand {
    /// One that was just asked for.
    pub fn new(kind: ErrandKind, asker: Asker, now: Timestamp) -> Self {
        Errand { kind, asker, asked_at: now, sent: None }
    }

    /// What is next, for a server that was seen so after `arrival` was looked up; `is_late`, where what was sent can arrive no more.
    pub(super) fn next(
        &self,
        server: Option<&ServerFacts>,
        arrival: Arrival,
        is_late: bool,
    ) -> Next {
        let Some(server) = server else {
            return Next::Refuse("it has no server".to_owned());
        };
        match (&server.is, self.sent.is_some()) {
            (ServerIs::Leaving, _) => return Next::Refuse("it is being deleted".to_owned()),
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
            Arrival::NotYet => Next::Fail("the cloud never took it up".to_owned()),
            Arrival::Arrived if self.is_reboot() && server.is == ServerIs::On => Next::Done,
            Arrival::Arrived => {
                Next::Fail(format!("the cloud gave up, and left it {}", word(&server.is)))
            }
        }
    }

    /// Whether it is as it would be afterwards, of what shows that.
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

    /// Why it cannot be done to a server that is at rest like this.
    fn obstacle(&self, server: &ServerFacts) -> Option<String> {
        let may = match (&self.kind, &server.is) {
            (ErrandKind::Start, ServerIs::Off)
            | (ErrandKind::Stop, ServerIs::On | ServerIs::Failed(_))
            | (ErrandKind::RebootSoft, ServerIs::On)
            // The way out of ERROR.
            | (
                ErrandKind::RebootHard,
                ServerIs::On | ServerIs::Off | ServerIs::Failed(_) | ServerIs::Other(_),
            )
            | (ErrandKind::Resize(_), ServerIs::On | ServerIs::Off) => true,
            (_, _) => false,
        };
        (!may).then(|| format!("it is {}", word(&server.is)))
    }
}

/// How a server is, in a sentence.
fn word(is: &ServerIs) -> String {
    match is {
        ServerIs::Building => "being built".to_owned(),
        ServerIs::On => "on".to_owned(),
        ServerIs::Off => "off".to_owned(),
        ServerIs::Resized => "of a new size that is not confirmed".to_owned(),
        ServerIs::Changing => "changing".to_owned(),
        ServerIs::Failed(why) => format!("failed ({why})"),
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
