//! The quorum check: whether a host may be drained besides the hosts that are drained already.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::{Drain, DrainPhase, HostName, Member};
use crate::{Cluster, ClusterUuid, DesiredState, GroupRole, MemberName, NodeGroup};

/// The etcd of a cluster, as known when a drain is decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdQuorum {
    pub cluster: ClusterUuid,
    pub name: String,
    pub members: BTreeSet<MemberName>,
    /// Members that are already out for another reason than a drain.
    pub away: BTreeSet<MemberName>,
    /// Whether a CA rotation is in progress, during which the members restart one after the other.
    pub is_rotating: bool,
}

/// A cluster that would lose its etcd quorum, with the reasons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuorumLost {
    pub cluster: ClusterUuid,
    pub name: String,
    /// How many members its etcd has.
    pub members: usize,
    /// How many members would be left.
    pub left: usize,
    /// How many members are a quorum.
    pub needed: usize,
    /// The members on the host.
    pub here: Vec<MemberName>,
    /// The members that are out for another reason than a drain.
    pub away: Vec<MemberName>,
    /// The members that other drains take out.
    pub drained: BTreeMap<HostName, Vec<MemberName>>,
    /// Whether a CA rotation is in progress.
    pub is_rotating: bool,
}

/// The drain of a host is refused, because clusters would lose their etcd quorum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrainRefused {
    pub host: HostName,
    /// The clusters that would lose their quorum; at least one.
    pub lost: Vec<QuorumLost>,
}

impl EtcdQuorum {
    /// Reads the members of etcd from the record of a cluster. A cluster that is being deleted or switched off has no members: it has no
    /// quorum to lose.
    ///
    /// The replacement of a member in an upgrade is in etcd before it is a node, and counts for the majority before it runs.
    pub fn of(cluster: &Cluster, groups: &[NodeGroup]) -> EtcdQuorum {
        let is_watched = cluster.desire == DesiredState::Exist && !cluster.is_off();
        let masters = || groups.iter().filter(|group| group.role == GroupRole::Master);
        let is_member = |machine: &&MemberName| masters().any(|group| group.name == machine.group);
        let nodes = cluster.nodes.iter().filter(is_member).cloned();
        let joins = masters()
            .filter(|_| cluster.restore.is_none())
            .flat_map(|group| group.refs().filter(move |it| group.is_replacement(it.number)));
        let members: BTreeSet<MemberName> = nodes.chain(joins).filter(|_| is_watched).collect();
        let stays: BTreeSet<MemberName> = masters().flat_map(NodeGroup::refs).collect();
        let is_away = |machine: &&MemberName| {
            !cluster.nodes.contains(*machine)
                || cluster.unready.contains(*machine)
                || cluster.is_renewing(machine)
                || is_in_reboot(cluster, machine)
                || !stays.contains(*machine)
        };
        EtcdQuorum {
            cluster: cluster.id,
            name: cluster.name.to_string(),
            away: members.iter().filter(is_away).cloned().collect(),
            members,
            is_rotating: !cluster.authorities.is_settled(),
        }
    }

    /// Returns how many members are a quorum.
    pub fn needed(&self) -> usize {
        self.members.len() / 2 + 1
    }
}

impl DrainRefused {
    /// Returns the members of etcd on the host whose clusters would lose their quorum.
    fn members(&self) -> impl Iterator<Item = Member> {
        self.lost.iter().flat_map(|lost| {
            let of_cluster = move |machine| Member { cluster: lost.cluster, machine };
            lost.here.iter().cloned().map(of_cluster)
        })
    }
}

/// Checks whether `host` may be drained, with the members `takes` on it, besides the drains `others`.
///
/// `quorums` describes the clusters of these members; clusters in `forced` may lose their quorum. Pure, and independent of the order in
/// which drains were admitted: only the members that would be left count.
///
/// # Errors
///
/// The clusters that would lose their quorum, with the reasons.
pub fn admit_drain(
    host: &HostName,
    takes: &BTreeSet<Member>,
    forced: &BTreeSet<ClusterUuid>,
    others: &BTreeMap<HostName, BTreeSet<Member>>,
    quorums: &[EtcdQuorum],
) -> Result<(), DrainRefused> {
    let unforced = quorums.iter().filter(|quorum| !forced.contains(&quorum.cluster));
    let lost: Vec<QuorumLost> =
        unforced.filter_map(|quorum| lost(quorum, host, takes, others)).collect();
    if lost.is_empty() { Ok(()) } else { Err(DrainRefused { host: host.clone(), lost }) }
}

fn lost(
    quorum: &EtcdQuorum,
    host: &HostName,
    takes: &BTreeSet<Member>,
    others: &BTreeMap<HostName, BTreeSet<Member>>,
) -> Option<QuorumLost> {
    let taken = |by: &BTreeSet<Member>| -> Vec<MemberName> {
        let own = by.iter().filter(|member| member.cluster == quorum.cluster);
        let own = own.map(|member| &member.machine);
        own.filter(|machine| quorum.members.contains(*machine)).cloned().collect()
    };
    let here = taken(takes);
    if here.is_empty() {
        return None;
    }
    let others = others.iter().filter(|(other, _)| *other != host);
    let drained: BTreeMap<HostName, Vec<MemberName>> = others
        .map(|(other, takes)| (other.clone(), taken(takes)))
        .filter(|(_, takes)| !takes.is_empty())
        .collect();
    let out: BTreeSet<&MemberName> =
        here.iter().chain(drained.values().flatten()).chain(&quorum.away).collect();
    // During a CA rotation the members restart one after the other, so any one of those left may be out.
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

impl Drain {
    /// Returns the drain with the result of a new admission check, which has not yet passed for members that are not among `known`. They are
    /// held while the check fails, and a drained host is stuck instead while switching it off would break a quorum.
    pub fn with_admission(
        &self,
        weighed: Result<(), DrainRefused>,
        known: &BTreeSet<Member>,
    ) -> Drain {
        let Err(refused) = weighed else {
            return Drain { problem: None, held: BTreeSet::new(), ..self.clone() };
        };
        let is_held = |member: &Member| self.held.contains(member) || !known.contains(member);
        Drain {
            phase: if self.phase == DrainPhase::Drained { DrainPhase::Stuck } else { self.phase },
            problem: Some(refused.to_string()),
            held: refused.members().filter(is_held).collect(),
            ..self.clone()
        }
    }
}

/// Whether the member reboots, or does as soon as it is drained.
fn is_in_reboot(cluster: &Cluster, machine: &MemberName) -> bool {
    cluster.reboot.as_ref().is_some_and(|reboot| reboot.machine == *machine)
}

fn named(machines: &[MemberName]) -> String {
    machines.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for QuorumLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let QuorumLost { name, cluster, members, left, needed, .. } = self;
        write!(f, "cluster {name} ({cluster}) would have {left} of its {members} etcd members")?;
        write!(f, " and needs {needed}: on this host: {}", named(&self.here))?;
        for (host, machines) in &self.drained {
            write!(f, "; the drain of {host} moves {}", named(machines))?;
        }
        if !self.away.is_empty() {
            write!(f, "; not ready, or restarting: {}", named(&self.away))?;
        }
        if self.is_rotating {
            f.write_str(
                "; a CA rotation is in progress, in which one more member may be restarting",
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for DrainRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "host {} cannot be drained now: ", self.host)?;
        let lost: Vec<String> = self.lost.iter().map(ToString::to_string).collect();
        write!(
            f,
            "{}; wait, or name in force each cluster that may lose its quorum",
            lost.join("; ")
        )
    }
}

impl std::error::Error for DrainRefused {}
