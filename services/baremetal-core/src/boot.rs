//! The record of one boot of the ramdisk, and of the agent that reported from it.

use jiff::Timestamp;

use crate::{NodeUuid, WorkUuid};

/// The newest boot of a node's machine into the ramdisk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boot {
    pub node: NodeUuid,
    /// The work that asked for this boot. Boots of earlier work are ignored.
    pub work: WorkUuid,
    /// A random value, new for each boot script. The agent's token derives from the nonce and the service's key.
    pub nonce: String,
    /// When the boot script was handed out.
    pub script_at: Option<Timestamp>,
    pub inventory_at: Option<Timestamp>,
    /// The URL of the agent's API; `None` until the agent's first heartbeat.
    pub callback_url: Option<String>,
    /// The certificate of the agent's API, as PEM.
    pub certificate: Option<String>,
    pub agent_version: Option<String>,
    /// When the agent last reported or answered.
    pub seen_at: Option<Timestamp>,
}
