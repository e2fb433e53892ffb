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

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::{Driver, NodeUuid};

    /// Asserts how the message goes on after "node … is compute host h1"; "" if the machine may be taken out.
    #[track_caller]
    fn check(seen: DrainSeen, want: &str) {
        let mut node = Node::new(NodeUuid::nil(), Driver::Redfish, Timestamp::UNIX_EPOCH);
        node.name = Some("n1".parse().unwrap());
        let said = check_take_out(&node, "h1", &seen).err().map(|why| why.to_string());
        let rest = said.as_deref().map(|it| it.strip_prefix("node n1 is compute host h1").unwrap());
        assert_eq!(rest.unwrap_or_default(), want);
    }

    #[test]
    fn a_compute_host_is_taken_out_only_when_no_server_is_left() {
        check(DrainSeen::NoHost, "");
        check(DrainSeen::Drained, "");
        let occupied = |so_far: &str| {
            format!(
                ", which is not drained{so_far}; drain it first (`bedplate drain h1 --wait`), or name h1 in force"
            )
        };
        check(DrainSeen::NotDrained, &occupied(""));
        check(DrainSeen::Ending, &occupied(""));
        check(DrainSeen::Draining(0), &occupied(""));
        check(DrainSeen::Draining(1), &occupied(": 1 server is on it"));
        check(DrainSeen::Draining(2), &occupied(": 2 servers are on it"));
        let quorum = Some("quorum".to_owned());
        check(DrainSeen::Stuck(3, quorum), &occupied(": 3 servers are on it"));
        check(DrainSeen::Refused("quorum".to_owned()), ": quorum");
        check(
            DrainSeen::Unknown("silent".to_owned()),
            ", and clusterd did not say whether the host may be taken out: silent; name h1 in force to skip this check",
        );
    }
}
