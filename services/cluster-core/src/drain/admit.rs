//! The guard of quorum: whether a host may be taken out beside those that are out already.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::{HostName, Member};
use crate::{Cluster, ClusterUuid, Desire, GroupRole, MachineRef, NodeGroup};

/// What is known of a cluster's etcd as a drain is decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quorum {
    /// The cluster.
    pub cluster: ClusterUuid,
    /// Its name.
    pub name: String,
    /// The members of its etcd.
    pub members: BTreeSet<MachineRef>,
    /// Those of them that are out already, whatever is drained.
    pub away: BTreeSet<MachineRef>,
    /// Whether its authorities are being exchanged, for which its members are started again, one after the other.
    pub is_rotating: bool,
}

/// A cluster would lose its quorum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuorumLost {
    /// The cluster.
    pub cluster: ClusterUuid,
    /// Its name.
    pub name: String,
    /// So many members its etcd has.
    pub members: usize,
    /// So many would be left.
    pub left: usize,
    /// So many it needs.
    pub needed: usize,
    /// The members on the host.
    pub here: Vec<MachineRef>,
    /// Those that are out already.
    pub away: Vec<MachineRef>,
    /// Those that other drains took out.
    pub drained: BTreeMap<HostName, Vec<MachineRef>>,
    /// Whether its authorities are being exchanged.
    pub is_rotating: bool,
}

/// A host cannot be taken out now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrainRefused {
    /// The host.
    pub host: HostName,
    /// Each cluster that would lose its quorum; at least one.
    pub lost: Vec<QuorumLost>,
}

impl Quorum {
    /// What a cluster's record tells of its etcd. A cluster that is to be gone, or is switched off, has nothing to lose.
    pub fn of(cluster: &Cluster, groups: &[NodeGroup]) -> Quorum {
        let is_watched = cluster.desire == Desire::Exist && !cluster.is_off();
        let masters = || groups.iter().filter(|group| group.role == GroupRole::Master);
        let is_member = |machine: &&MachineRef| masters().any(|group| group.name == machine.group);
        let members: BTreeSet<MachineRef> =
            cluster.nodes.iter().filter(|_| is_watched).filter(is_member).cloned().collect();
        let stays: BTreeSet<MachineRef> = masters().flat_map(NodeGroup::refs).collect();
        let is_away =
            |machine: &&MachineRef| cluster.unready.contains(*machine) || !stays.contains(*machine);
        Quorum {
            cluster: cluster.id,
            name: cluster.name.to_string(),
            away: members.iter().filter(is_away).cloned().collect(),
            members,
            is_rotating: !cluster.authorities.is_settled(),
        }
    }

    /// How many members are enough.
    pub fn needed(&self) -> usize {
        self.members.len() / 2 + 1
    }
}

/// Whether `host` may be taken out, with the machines of clusters that are on it, beside the drains that were granted already. `quorums`
/// are those of the clusters of these machines; what `forced` names may be broken.
///
/// Pure, and the same whoever was granted first: what counts is which members would be left.
///
/// # Errors
///
/// The clusters that would lose their quorum, and by what.
pub fn admit_drain(
    host: &HostName,
    takes: &BTreeSet<Member>,
    forced: &BTreeSet<ClusterUuid>,
    others: &BTreeMap<HostName, BTreeSet<Member>>,
    quorums: &[Quorum],
) -> Result<(), DrainRefused> {
    let unforced = quorums.iter().filter(|quorum| !forced.contains(&quorum.cluster));
    let lost: Vec<QuorumLost> =
        unforced.filter_map(|quorum| lost(quorum, host, takes, others)).collect();
    if lost.is_empty() { Ok(()) } else { Err(DrainRefused { host: host.clone(), lost }) }
}

fn lost(
    quorum: &Quorum,
    host: &HostName,
    takes: &BTreeSet<Member>,
    others: &BTreeMap<HostName, BTreeSet<Member>>,
) -> Option<QuorumLost> {
    let taken = |by: &BTreeSet<Member>| -> Vec<MachineRef> {
        let own = by.iter().filter(|member| member.cluster == quorum.cluster);
        let own = own.map(|member| &member.machine);
        own.filter(|machine| quorum.members.contains(*machine)).cloned().collect()
    };
    let here = taken(takes);
    if here.is_empty() {
        return None;
    }
    let others = others.iter().filter(|(other, _)| *other != host);
    let drained: BTreeMap<HostName, Vec<MachineRef>> = others
        .map(|(other, takes)| (other.clone(), taken(takes)))
        .filter(|(_, takes)| !takes.is_empty())
        .collect();
    let out: BTreeSet<&MachineRef> =
        here.iter().chain(drained.values().flatten()).chain(&quorum.away).collect();
    // While members are started again one after the other, any one of those that are left may be out.
    let left = (quorum.members.len().saturating_sub(out.len()))
        .saturating_sub(usize::from(quorum.is_rotating));
    let needed = quorum.needed();
    (left < needed).then(|| QuorumLost {
        cluster: quorum.cluster,
        name: quorum.name.clone(),
        members: quorum.members.len(),
        left,
        needed,
        here,
        away: quorum.away.iter().cloned().collect(),
        drained,
        is_rotating: quorum.is_rotating,
    })
}

fn named(machines: &[MachineRef]) -> String {
    machines.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for QuorumLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let QuorumLost { name, cluster, members, left, needed, .. } = self;
        write!(f, "cluster {name} ({cluster}) would have {left} of its {members} etcd members")?;
        write!(f, " and needs {needed}: here is {}", named(&self.here))?;
        for (host, machines) in &self.drained {
            write!(f, "; the drain of {host} takes {}", named(machines))?;
        }
        if !self.away.is_empty() {
            write!(f, "; not ready is {}", named(&self.away))?;
        }
        if self.is_rotating {
            f.write_str("; its authorities are being exchanged, and one more is out at times")?;
        }
        Ok(())
    }
}

impl fmt::Display for DrainRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "host {} cannot be drained now: ", self.host)?;
        let lost: Vec<String> = self.lost.iter().map(ToString::to_string).collect();
        write!(f, "{}; wait, or name in force what may break", lost.join("; "))
    }
}

impl std::error::Error for DrainRefused {}
