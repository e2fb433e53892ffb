//! The compute host that a node becomes by a profile: its name, its placement, and its first record.

use jiff::Timestamp;

use crate::{
    EarlierReport, Hypervisor, JoinState, NameSource, Node, Placement, Profile, RequestRefused,
};

/// The name and placement of a compute host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPlacement {
    pub name: String,
    pub availability_zone: Option<String>,
    pub aggregate: Option<String>,
}

impl HostPlacement {
    /// Returns the host for `node`, placed as `placement` says. The host's name is the node's name if that is a valid host name, and
    /// derives from the node's id otherwise.
    pub fn of(node: &Node, placement: &Placement) -> Result<HostPlacement, RequestRefused> {
        let named = |field: &str, named: &Option<NameSource>| {
            let name = named.as_ref().map(|named| named.of(node.place.as_ref())).transpose();
            name.map_err(|problem| RequestRefused::Field {
                field: format!("placement.{field}"),
                problem: format!("{problem} (node \"{}\")", node.label()),
            })
        };
        Ok(HostPlacement {
            name: host_name(node),
            availability_zone: named("availability_zone", &placement.availability_zone)?,
            aggregate: named("aggregate", &placement.aggregate)?,
        })
    }
}

impl Hypervisor {
    /// Makes the record of a host that is about to be installed.
    pub fn new(profile: &Profile, host: HostPlacement, now: Timestamp) -> Self {
        Hypervisor {
            profile: profile.name.to_string(),
            host: host.name,
            availability_zone: host.availability_zone,
            aggregate: host.aggregate,
            limits: profile.joining,
            state: JoinState::Installing,
            since: now,
            before: EarlierReport::Unknown,
            id: None,
        }
    }
}

/// Returns the name of the host. RFC 1123 §2.1, restricted to lower case: names that differ only in case would be the same host.
fn host_name(node: &Node) -> String {
    let label = |label: &str| {
        let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        !label.is_empty()
            && label.len() <= 63
            && label.chars().all(legal)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    match &node.name {
        Some(name) if name.as_str().len() <= 253 && name.as_str().split('.').all(label) => {
            name.as_str().to_owned()
        }
        Some(_) | None => format!("node-{}", node.id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Driver, NodeUuid};

    #[test]
    fn a_host_has_the_name_of_its_node_if_that_is_valid() {
        let mut node = Node::new(NodeUuid::nil(), Driver::FakeHardware, Timestamp::UNIX_EPOCH);
        let mut named = |name: &str| {
            node.name = Some(name.parse().unwrap());
            HostPlacement::of(&node, &Placement::default()).unwrap().name
        };
        assert_eq!(named("r1u07.lab"), "r1u07.lab");
        for other in ["R1U07", "r1_u07", "-r1", "r1..u07"] {
            assert_eq!(named(other), format!("node-{}", NodeUuid::nil()));
        }
    }
}
