//! Decides the next step of a roll: which member is replaced, and when its replacement takes over.
//!
//! The control plane comes first, one member at a time. A new member joins before an old one leaves, so etcd never has fewer members than
//! the cluster was made with. Each step is recorded before anything happens, so the next turn continues after a crash.

use crate::{
    Cluster, ClusterObservation, ClusterSpec, DesiredState, GroupRole, Key, MemberName, NodeGroup,
    NodeHealth, Roll,
};

/// The next step of a roll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RollStep {
    /// The roll waits, for this reason.
    Wait(String),
    Change(Box<RollChanged>),
}

/// The change that a step of a roll records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RollChanged {
    pub(crate) cluster: Cluster,
    /// The groups that change.
    pub(crate) groups: Vec<NodeGroup>,
    /// The reason of the event about the step, and its message.
    pub(crate) event: (&'static str, String),
}

/// Returns the next step of a roll; `None` when no roll is in progress, or nothing is known about the members.
pub(crate) fn roll_step(spec: &ClusterSpec<'_>, seen: &ClusterObservation) -> Option<RollStep> {
    let roll = spec.cluster.roll.as_ref()?;
    let is_working = spec.cluster.desire == DesiredState::Exist && spec.cluster.rest.is_none();
    if !is_working || seen.at.is_none() {
        return None;
    }
    if roll.is_paused {
        return Some(RollStep::Wait("the upgrade is paused".to_owned()));
    }
    if let Some(why) = restart(spec) {
        return Some(RollStep::Wait(why));
    }
    let view = View { spec, roll, seen };
    let (masters, workers): (Vec<_>, Vec<_>) =
        spec.groups.iter().partition(|group| group.role == GroupRole::Master);
    let of_control_plane = masters.into_iter().find_map(|group| view.group_step(group));
    let done = || roll.origin.is_some().then(|| view.control_plane_step());
    let of_workers = || workers.into_iter().find_map(|group| view.group_step(group));
    let step = of_control_plane.or_else(done).or_else(of_workers);
    Some(step.unwrap_or_else(|| view.end()))
}

/// Returns why no member may join or leave, though all members may be ready: one of them is about to restart, or to be replaced.
fn restart(spec: &ClusterSpec<'_>) -> Option<String> {
    let ClusterSpec { cluster, groups } = spec;
    if cluster.restore.is_some() {
        return Some("the control plane is being restored".to_owned());
    }
    if let Some(reboot) = &cluster.reboot {
        return Some(format!("member {} reboots", reboot.machine));
    }
    let masters = groups.iter().filter(|group| group.role == GroupRole::Master);
    let renewing = masters.flat_map(NodeGroup::refs).find(|member| cluster.is_renewing(member));
    renewing.map(|member| format!("member {member} renews its certificates"))
}

struct View<'a> {
    spec: &'a ClusterSpec<'a>,
    roll: &'a Roll,
    seen: &'a ClusterObservation,
}

impl View<'_> {
    /// Returns the next step of a group; `None` when the roll has nothing to do there, and no removed member is left.
    fn group_step(&self, group: &NodeGroup) -> Option<RollStep> {
        if self.roll.waiting.contains_key(&group.id) {
            return Some(self.begin(group));
        }
        if let Some(step) = self.completed_pair(group) {
            return Some(step);
        }
        let left = self.left(group);
        let Some(old) = group.outdated.iter().find(|it| !group.replacing.contains_key(*it)) else {
            let pair = group.replacing.values().next().map(|new| self.name(group, *new));
            let of_pair = pair.map(|new| format!("waiting for {new} to become a ready member"));
            let of_left = left.first().map(|old| format!("{old} is being removed"));
            return of_pair.or(of_left).map(RollStep::Wait);
        };
        let is_master = group.role == GroupRole::Master;
        if let Some(member) = self.unready_master(group).filter(|_| is_master) {
            return Some(RollStep::Wait(format!(
                "{member} is not a ready member of the control plane"
            )));
        }
        let at_once = if is_master { 1 } else { self.roll.at_once as usize };
        if group.replacing.len() + left.len() < at_once {
            return Some(self.replaced(group, *old));
        }
        let missing = group.refs().filter(|it| !self.is_ready(it)).count()
            - self.unready_replacements(group)
            + left.len();
        if !is_master && missing < self.roll.max_unavailable as usize {
            return Some(self.removed(group, *old));
        }
        let busy = left.first().map(|old| format!("{old} is being removed"));
        let pair = group.replacing.values().next().map(|new| self.name(group, *new));
        let why = busy.or(pair.map(|new| format!("waiting for {new} to become a ready member")));
        Some(RollStep::Wait(why.unwrap_or_else(|| format!("waiting for {}", group.name))))
    }

    fn begin(&self, group: &NodeGroup) -> RollStep {
        let mut roll = self.roll.clone();
        let mut begun = group.clone();
        if let Some(parameters) = roll.waiting.remove(&group.id) {
            begun = begun.with_parameters(parameters);
        }
        begun.kubernetes = None;
        begun.outdated = begun.machines.clone();
        let message = format!("replacing the {} members of {}", group.node_count(), group.name);
        self.change(roll, vec![begun], ("RollBegun", message))
    }

    /// Removes an outdated member whose replacement is ready. A drain takes out a replacement of the control plane that has come to its host
    /// before it was a member, so nothing but the outdated member may be left of etcd.
    fn completed_pair(&self, group: &NodeGroup) -> Option<RollStep> {
        let is_master = group.role == GroupRole::Master;
        let is_done = |new: &MemberName| match is_master {
            true => self.is_well(new),
            false => self.is_ready(new),
        };
        let mut pairs = group.replacing.iter();
        let (old, new) = pairs.find(|(_, new)| is_done(&self.name(group, **new)))?;
        let mut changed = group.clone();
        changed.complete(*old);
        let (old, new) = (self.name(group, *old), self.name(group, *new));
        let message = format!("{new} is ready, and {old} is removed");
        Some(self.change(self.roll.clone(), vec![changed], ("MemberReplaced", message)))
    }

    /// Adds the replacement of a member.
    fn replaced(&self, group: &NodeGroup, old: u32) -> RollStep {
        let mut changed = group.clone();
        let new = changed.surge(old);
        let (old, new) = (self.name(group, old), self.name(group, new));
        let message = format!("{new} is created and will replace {old}");
        self.change(self.roll.clone(), vec![changed], ("MemberAdded", message))
    }

    /// Removes a member before its replacement is ready.
    fn removed(&self, group: &NodeGroup, old: u32) -> RollStep {
        let mut changed = group.clone();
        changed.replace_machine(old);
        let message = format!("{} is removed, and a new member is created", self.name(group, old));
        self.change(self.roll.clone(), vec![changed], ("MemberReplaced", message))
    }

    /// Ends the roll of the control plane: the cluster has its version, and workers that are still older keep theirs.
    fn control_plane_step(&self) -> RollStep {
        let (before, now) = (self.spec.cluster.kubernetes, self.roll.kubernetes);
        let mut masters = self.spec.groups.iter().filter(|group| group.role == GroupRole::Master);
        if let Some(member) = masters.find_map(|group| self.unready_master(group)) {
            return RollStep::Wait(format!("{member} is not a ready member of the control plane"));
        }
        let proxy = self.seen.kube_proxy.as_ref().filter(|tag| **tag != now.to_string());
        if let Some(tag) = proxy.filter(|_| before != now) {
            return RollStep::Wait(format!("kube-proxy is being upgraded from {tag}"));
        }
        let mut roll = Roll { origin: None, ..self.roll.clone() };
        let mut changed = Vec::new();
        let is_left_behind = |group: &&NodeGroup| {
            group.role != GroupRole::Master && group.kubernetes.is_none() && before != now
        };
        for group in self.spec.groups.iter().filter(is_left_behind) {
            // A group that was made during the roll has the labels of the new version, and members of the old one.
            if group.created_at > roll.began_at {
                roll.waiting.entry(group.id).or_insert_with(|| group.parameters());
            }
            changed.push(NodeGroup { kubernetes: Some(before), ..group.clone() });
        }
        let message = match before == now {
            true => "all control-plane members are replaced".to_owned(),
            false => format!("the control plane is upgraded from {before} to {now}"),
        };
        let mut step = self.changed(roll, changed, ("ControlPlaneReplaced", message));
        step.cluster.kubernetes = now;
        RollStep::Change(Box::new(step))
    }

    fn end(&self) -> RollStep {
        let message = format!("all members have version {}", self.roll.kubernetes);
        let mut step = self.changed(self.roll.clone(), Vec::new(), ("RollComplete", message));
        step.cluster.roll = None;
        RollStep::Change(Box::new(step))
    }

    fn change(
        &self,
        roll: Roll,
        groups: Vec<NodeGroup>,
        event: (&'static str, String),
    ) -> RollStep {
        RollStep::Change(Box::new(self.changed(roll, groups, event)))
    }

    fn changed(
        &self,
        roll: Roll,
        groups: Vec<NodeGroup>,
        event: (&'static str, String),
    ) -> RollChanged {
        let roll = Some(Roll { waits_for: None, ..roll });
        RollChanged { cluster: Cluster { roll, ..self.spec.cluster.clone() }, groups, event }
    }

    fn name(&self, group: &NodeGroup, number: u32) -> MemberName {
        MemberName { group: group.name.clone(), number }
    }

    fn is_ready(&self, member: &MemberName) -> bool {
        self.seen.machines.get(member).is_some_and(|said| said.node == NodeHealth::Ready)
    }

    /// Returns the number of replacements that are not ready yet.
    fn unready_replacements(&self, group: &NodeGroup) -> usize {
        let names = group.replacing.values().map(|new| self.name(group, *new));
        names.filter(|new| !self.is_ready(new)).count()
    }

    /// Returns a control-plane member that is not ready, does not serve, or is drained. Then etcd must not lose or get a member.
    fn unready_master(&self, group: &NodeGroup) -> Option<MemberName> {
        group.refs().find(|member| !self.is_well(member))
    }

    /// Whether a control-plane member is ready, serves, and is not drained.
    fn is_well(&self, member: &MemberName) -> bool {
        let serves = self.seen.serving.contains(member);
        serves && self.is_ready(member) && !self.seen.drained.contains(member)
    }

    /// Returns the members that were removed from a group, and are still there.
    fn left(&self, group: &NodeGroup) -> Vec<MemberName> {
        let of_group = |member: &&MemberName| {
            member.group == group.name && !group.machines.contains(&member.number)
        };
        let servers = self
            .seen
            .objects
            .keys()
            .filter_map(|key| if let Key::Server(member) = key { Some(member) } else { None });
        let mut left: Vec<MemberName> =
            servers.chain(&self.spec.cluster.nodes).filter(of_group).cloned().collect();
        left.sort();
        left.dedup();
        left
    }
}

#[cfg(test)]
mod tests;
