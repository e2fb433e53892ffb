//! One boot of the ramdisk on a node's machine, and the agent that came of it.

use jiff::Timestamp;

use crate::{NodeUuid, WorkUuid};

/// The newest boot of a node's machine into the ramdisk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boot {
    /// Which node.
    pub node: NodeUuid,
    /// The work it is part of. A boot of other work is history.
    pub work: WorkUuid,
    /// Made anew for each boot script handed out; the agent's token derives from it and the service's key.
    pub nonce: String,
    /// When the boot script was handed out.
    pub script_at: Option<Timestamp>,
    /// When the inventory arrived.
    pub inventory_at: Option<Timestamp>,
    /// Where the agent's API is; `None` until its first heartbeat.
    pub callback_url: Option<String>,
    /// The certificate the agent's API serves, PEM.
    pub certificate: Option<String>,
    /// The agent's version.
    pub agent_version: Option<String>,
    /// When the agent last spoke or answered.
    pub seen_at: Option<Timestamp>,
}
