//! Plans the next actions for a cluster: the difference between the desired objects and those that exist.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;

use crate::reboot::member_to_drain;
use crate::restore_plan::is_control_plane_server;
use crate::{
    Bootstrap, CloudObjectDetails, CloudObjectState, ClusterObservation, ClusterSpec,
    DesiredObject, DesiredObjects, DesiredState, GroupRole, IngressRule, Key, MemberName,
    MemberObservation, NodeHealth, ResourceSpec, SecurityGroupRole, desired_objects,
};

/// Something to do for a cluster. Each action may be performed twice without harm.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    Create(Key),
    /// Replace the rules of a security group by the desired ones.
    SetRules(Key),
    /// Replace the addresses of a load balancer or a DNS record by these.
    SetAddresses(Key, BTreeSet<IpAddr>),
    /// Evict the pods of a member.
    Drain(MemberName),
    LeaveEtcd(MemberName),
    /// Delete the Kubernetes node of a member whose server is deleted.
    ForgetNode(MemberName),
    Delete(Key),
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Create(key) => write!(f, "create {key}"),
            Action::SetRules(key) => write!(f, "set the rules of {key}"),
            Action::SetAddresses(key, addresses) => {
                let addresses: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
                write!(f, "set the addresses of {key} to {}", addresses.join(", "))
            }
            Action::Drain(machine) => write!(f, "drain {machine}"),
            Action::LeaveEtcd(machine) => write!(f, "remove {machine} from etcd"),
            Action::ForgetNode(machine) => write!(f, "delete the Kubernetes node {machine}"),
            Action::Delete(key) => write!(f, "delete {key}"),
        }
    }
}

/// Returns every action that can be performed now for `spec`, given the observation. The order has no meaning.
///
/// Pure: the same inputs always give the same actions. Everything else waits for work in progress. A cluster is finished when no action is
/// left and [`crate::conditions()`] are all true; a cluster to be deleted is gone when the observation has no object of it.
pub fn plan(spec: &ClusterSpec<'_>, seen: &ClusterObservation) -> Vec<Action> {
    let shape = desired_objects(spec);
    let mut actions = Vec::new();
    for (key, object) in &shape {
        actions.extend(next_action(key, object, &shape, seen));
    }
    // A server that is created during a CA rotation would get CAs that are about to be removed.
    if !spec.cluster.authorities.is_settled() {
        actions.retain(|action| !matches!(action, Action::Create(Key::Server(_))));
    }
    if spec.has_mixed_control_plane() {
        let is_worker = |member: &MemberName| {
            let group = spec.groups.iter().find(|group| group.name == member.group);
            group.is_some_and(|group| group.role != GroupRole::Master)
        };
        actions.retain(
            |action| !matches!(action, Action::Create(Key::Server(member)) if is_worker(member)),
        );
    }
    for key in seen.objects.keys().filter(|key| !shape.contains_key(*key)) {
        actions.extend(next_removal(key, spec, seen));
    }
    actions.extend(member_to_drain(spec, seen).map(Action::Drain));
    if spec.cluster.desire == DesiredState::Exist {
        actions.extend(seen.machines.iter().filter_map(|(machine, said)| {
            let server = Key::Server(machine.clone());
            let is_gone = !shape.contains_key(&server) && !seen.objects.contains_key(&server);
            is_gone.then(|| forget_member(machine, said)).flatten()
        }));
    }
    if spec.cluster.is_clearing() {
        clear_control_plane(&mut actions, spec, seen);
    }
    actions
}

/// Returns the next action that brings an object closer to its desired state.
pub(crate) fn next_action(
    key: &Key,
    object: &DesiredObject,
    shape: &DesiredObjects,
    seen: &ClusterObservation,
) -> Option<Action> {
    let Some(found) = seen.objects.get(key) else {
        // Repair replaces the server of a former node by a new member; the old one is never created again.
        if was_node(key, seen) || seen.held.contains_key(key) {
            return None;
        }
        let ready = object.needs.iter().all(|need| is_there(need, seen));
        return ready.then(|| Action::Create(key.clone()));
    };
    match &found.state {
        // Repair replaces a failed server of a former node as well; every other failed object is deleted and created again.
        CloudObjectState::Failed(_) if was_node(key, seen) => None,
        CloudObjectState::Failed(_) => can_go(key, seen).then(|| Action::Delete(key.clone())),
        CloudObjectState::Working | CloudObjectState::Deleting => None,
        CloudObjectState::Ready => match &object.thing {
            ResourceSpec::SecurityGroup { rules } => differing_rules(key, rules, seen),
            ResourceSpec::LoadBalancer { members: of, .. } | ResourceSpec::Record { of, .. } => {
                differing_addresses(key, of, shape, seen)
            }
            ResourceSpec::Network
            | ResourceSpec::Subnet { .. }
            | ResourceSpec::Router { .. }
            | ResourceSpec::RouterInterface
            | ResourceSpec::ServerGroup { .. }
            | ResourceSpec::Port { .. }
            | ResourceSpec::FloatingIp { .. }
            | ResourceSpec::Server { .. }
            | ResourceSpec::Volume { .. }
            | ResourceSpec::Credential => None,
        },
    }
}

/// Replaces the actions on control-plane servers by their deletion. Neither Kubernetes nor etcd is asked: both are gone, or are about to
/// be replaced by those of a backup.
fn clear_control_plane(
    actions: &mut Vec<Action>,
    spec: &ClusterSpec<'_>,
    seen: &ClusterObservation,
) {
    let is_cleared = |key: &Key| is_control_plane_server(key, spec.groups);
    let is_kept = |action: &Action| match action {
        Action::Create(key) | Action::Delete(key) => !is_cleared(key),
        Action::Drain(machine) | Action::LeaveEtcd(machine) | Action::ForgetNode(machine) => {
            !is_cleared(&Key::Server(machine.clone()))
        }
        Action::SetRules(_) | Action::SetAddresses(..) => true,
    };
    actions.retain(is_kept);
    let there = seen.objects.iter().filter(|(key, _)| is_cleared(key));
    let there = there.filter(|(_, found)| found.state != CloudObjectState::Deleting);
    actions.extend(there.map(|(key, _)| Action::Delete(key.clone())));
}

/// Returns the next action that removes a deleted member from etcd and Kubernetes.
fn forget_member(machine: &MemberName, said: &MemberObservation) -> Option<Action> {
    if said.is_etcd_member {
        return Some(Action::LeaveEtcd(machine.clone()));
    }
    match said.node {
        NodeHealth::Ready | NodeHealth::NotReady { .. } => {
            Some(Action::ForgetNode(machine.clone()))
        }
        NodeHealth::Absent | NodeHealth::Unknown => None,
    }
}

/// Whether the object is a server that became a Kubernetes node.
fn was_node(key: &Key, seen: &ClusterObservation) -> bool {
    let Key::Server(machine) = key else { return false };
    seen.machines.get(machine).is_some_and(|said| said.bootstrap == Bootstrap::Done)
}

/// Whether the object exists in the cloud so far that other objects can refer to it.
fn is_there(key: &Key, seen: &ClusterObservation) -> bool {
    let found = seen.objects.get(key);
    found.is_some_and(|found| {
        matches!(found.state, CloudObjectState::Working | CloudObjectState::Ready)
            && (found.address.is_some() || !has_address(key))
    })
}

/// Whether an object of this kind is of use only once its address is known.
fn has_address(key: &Key) -> bool {
    matches!(key, Key::Port(_) | Key::VipPort(_) | Key::MachineAddress(_) | Key::BalancerAddress(_))
}

fn differing_rules(
    key: &Key,
    rules: &BTreeSet<IngressRule>,
    seen: &ClusterObservation,
) -> Option<Action> {
    let facts = seen.objects.get(key).map(|found| &found.facts);
    let same = matches!(facts, Some(CloudObjectDetails::Rules(has)) if has == rules);
    // Rules can refer to security groups, which must exist first.
    let known = [SecurityGroupRole::Node, SecurityGroupRole::ControlPlane].iter().all(|role| {
        let group = Key::SecurityGroup(*role);
        let named = rules
            .iter()
            .any(|rule| matches!(&rule.from, crate::RuleSource::Group(of) if *of == group));
        !named || is_there(&group, seen)
    });
    (!same && known).then(|| Action::SetRules(key.clone()))
}

fn differing_addresses(
    key: &Key,
    of: &BTreeSet<Key>,
    shape: &DesiredObjects,
    seen: &ClusterObservation,
) -> Option<Action> {
    let wanted: BTreeSet<IpAddr> = of
        .iter()
        .filter(|key| shape.contains_key(*key))
        .filter_map(|key| seen.objects.get(key)?.address)
        .collect();
    let facts = seen.objects.get(key).map(|found| &found.facts);
    let same = matches!(facts, Some(CloudObjectDetails::Addresses(has)) if *has == wanted);
    (!same && !wanted.is_empty()).then(|| Action::SetAddresses(key.clone(), wanted))
}

/// Returns the next action toward the deletion of an object that should not exist.
fn next_removal(key: &Key, spec: &ClusterSpec<'_>, seen: &ClusterObservation) -> Option<Action> {
    let found = seen.objects.get(key)?;
    let is_exchanged =
        matches!(key, Key::Credential(_)) && spec.cluster.desire == DesiredState::Exist;
    if found.state == CloudObjectState::Deleting || (!can_go(key, seen) && !is_exchanged) {
        return None;
    }
    if spec.cluster.desire == DesiredState::Exist && must_stay(key, spec, seen) {
        return None;
    }
    let delete = Some(Action::Delete(key.clone()));
    let (Key::Server(machine), DesiredState::Exist) = (key, spec.cluster.desire) else {
        return delete;
    };
    // While the cluster stays, a member that reported is removed in order: drain, etcd, server.
    let Some(said) = seen.machines.get(machine) else { return delete };
    let was_node = said.bootstrap == Bootstrap::Done;
    if was_node && said.node == NodeHealth::Unknown {
        // Kubernetes does not answer, so it is unknown which pods run on the member: they must be evicted first.
        return None;
    }
    let is_node = was_node && said.node != NodeHealth::Absent;
    if is_node && !said.is_drained {
        Some(Action::Drain(machine.clone()))
    } else if said.is_etcd_member {
        Some(Action::LeaveEtcd(machine.clone()))
    } else {
        delete
    }
}

/// Whether an object that is not desired must stay for now.
fn must_stay(key: &Key, spec: &ClusterSpec<'_>, seen: &ClusterObservation) -> bool {
    match key {
        Key::ServiceBalancer(_) | Key::Volume(_) => true,
        // Add-ons in the cluster use the old credential until they were given the new one.
        Key::Credential(_) => {
            let used = seen.add_ons.as_ref().and_then(|it| it.credential);
            used != Some(spec.cluster.credential)
        }
        Key::Twin(_)
        | Key::Network
        | Key::Subnet
        | Key::Router
        | Key::RouterInterface
        | Key::SecurityGroup(_)
        | Key::ServerGroup(_)
        | Key::VipPort(_)
        | Key::LoadBalancer(_)
        | Key::BalancerAddress(_)
        | Key::Port(_)
        | Key::MachineAddress(_)
        | Key::Record(_)
        | Key::RootVolume
        | Key::Server(_) => false,
    }
}

/// Whether every object that must be deleted before this one is deleted.
pub(crate) fn can_go(key: &Key, seen: &ClusterObservation) -> bool {
    !seen.objects.keys().any(|other| other.is_deleted_before(key))
}

#[cfg(test)]
mod tests;
