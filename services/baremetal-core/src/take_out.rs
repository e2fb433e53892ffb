//! Checks whether a node that is a compute host may be taken out of use.

use crate::{DrainSeen, Node};

/// Why a node must not be taken out of use now.
#[derive(Debug, thiserror::Error)]
pub enum TakeOutRefused {
    /// A cluster would lose its quorum.
    #[error("node {node} is compute host {host}: {why}")]
    Refused {
        node: String,
        /// The name of the compute host.
        host: String,
        /// The reason in clusterd's words.
        why: String,
    },
    /// Servers may run on the host.
    #[error(
        "node {node} is compute host {host}, which is not drained{}; drain it first (`bedplate drain {host} --wait`), or name {host} in force",
        so_far(*left)
    )]
    Occupied {
        node: String,
        /// The name of the compute host.
        host: String,
        /// The number of servers left, or 0 if the drain has not counted them yet.
        left: usize,
    },
    /// clusterd does not answer, so nobody knows what runs on the host.
    #[error(
        "node {node} is compute host {host}, and clusterd did not say whether the host may be taken out: {why}; name {host} in force to skip this check"
    )]
    Unknown {
        node: String,
        /// The name of the compute host.
        host: String,
        why: String,
    },
}

/// Returns the progress of a drain as a part of a message; empty if the drain has not counted yet.
fn so_far(left: usize) -> String {
    match left {
        0 => String::new(),
        1 => ": 1 server is on it".to_owned(),
        many => format!(": {many} servers are on it"),
    }
}

/// Checks whether the machine of `node` may be taken out of use, given clusterd's answer about its compute host.
pub fn check_take_out(node: &Node, host: &str, seen: &DrainSeen) -> Result<(), TakeOutRefused> {
    let (node, host) = (node.label(), host.to_owned());
    match seen {
        DrainSeen::NoHost | DrainSeen::Drained => Ok(()),
        DrainSeen::NotDrained | DrainSeen::Ending => {
            Err(TakeOutRefused::Occupied { node, host, left: 0 })
        }
        DrainSeen::Draining(left) | DrainSeen::Stuck(left, _) => {
            Err(TakeOutRefused::Occupied { node, host, left: *left })
        }
        DrainSeen::Refused(why) => Err(TakeOutRefused::Refused { node, host, why: why.clone() }),
        DrainSeen::Unknown(why) => Err(TakeOutRefused::Unknown { node, host, why: why.clone() }),
    }
}
