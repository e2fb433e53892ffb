//! Checks requests of users for clusters and node groups before anything is recorded.

use jiff::Timestamp;

use crate::node_group::MAX_GROUP_SIZE;
use crate::{
    Cluster, ClusterParameters, DesiredState, GroupRole, InvalidName, LabelsError, MemberName,
    NetworkDriver, NodeGroup, PodNetwork,
};

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("{field}: {why}")]
    Field {
        /// The name of the field in the API.
        field: &'static str,
        /// The reason, and what to send instead.
        why: String,
    },
    /// A label of the template is unknown or invalid, or no longer allowed.
    #[error(transparent)]
    Labels(#[from] LabelsError),
    #[error("name: {0}")]
    Name(#[from] InvalidName),
    #[error("cluster {name} is being deleted")]
    Deleting { name: String },
    /// The same request can succeed later.
    #[error("{why}")]
    Busy {
        /// The obstacle, and when it will be gone.
        why: String,
    },
    #[error("node group {name} is a default group: it can only be deleted with its cluster")]
    DefaultGroup { name: String },
}

fn field<T>(field: &'static str, why: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::Field { field, why: why.into() })
}

/// The largest number of node groups of a cluster, which every turn of the cluster reads.
pub const MOST_GROUPS: usize = 100;

/// Checks that a cluster with these node groups may have another one.
pub fn check_another_group(groups: &[NodeGroup]) -> Result<(), Refusal> {
    if groups.len() < MOST_GROUPS {
        return Ok(());
    }
    let why = format!(
        "the cluster has {} node groups, and {MOST_GROUPS} is the limit: delete one first",
        groups.len()
    );
    Err(Refusal::Busy { why })
}

/// Checks what every cluster of this template would fail on.
pub fn check_template(blueprint: &ClusterParameters) -> Result<(), Refusal> {
    if blueprint.image.is_empty() {
        return field("image_id", "is required");
    }
    blueprint.labels.check()?;
    let asks_driver = blueprint.labels.settings().pod_network == PodNetwork::Driver;
    if blueprint.network_driver == NetworkDriver::Calico && asks_driver {
        return field(
            "network_driver",
            "clusterd does not install calico; choose flannel, or set the label pod_network=routes",
        );
    }
    Ok(())
}

/// Checks whether a cluster with this many control-plane members can be made from `blueprint`.
pub fn check_cluster(blueprint: &ClusterParameters, masters: u32) -> Result<(), Refusal> {
    check_template(blueprint)?;
    let settings = blueprint.labels.settings();
    if ![1, 3, 5].contains(&masters) {
        return field("master_count", "must be 1, 3 or 5, because etcd needs a majority");
    }
    if masters > 1 && !blueprint.master_lb_enabled && settings.dns_zone.is_none() {
        return field(
            "master_count",
            "more than one needs master_lb_enabled, or the label dns_zone for a DNS name that leads to all of them",
        );
    }
    if blueprint.fixed_network.is_some() != blueprint.fixed_subnet.is_some() {
        return field("fixed_subnet", "set both fixed_network and fixed_subnet, or neither");
    }
    if settings.balancer_floating_ip == Some(true) && blueprint.external_network.is_none() {
        return field(
            "labels/master_lb_floating_ip_enabled",
            "needs external_network_id, the network of floating IPs",
        );
    }
    if !settings.api_allowed_cidrs.is_empty() && !blueprint.master_lb_enabled {
        return field("labels/master_lb_allowed_cidrs", "needs master_lb_enabled");
    }
    if blueprint.flavor.is_none() {
        return field("flavor_id", "is required, because the template has none either");
    }
    Ok(())
}

/// Checks the size of `group` against its limits.
pub fn check_group(group: &NodeGroup) -> Result<(), Refusal> {
    let count = group.node_count();
    if group.role == GroupRole::Master {
        if ![1, 3, 5].contains(&count) {
            return field("node_count", "a control plane has 1, 3 or 5 members");
        }
        return Ok(());
    }
    if count > MAX_GROUP_SIZE {
        return field("node_count", format!("must be at most {MAX_GROUP_SIZE}"));
    }
    if let Some(most) = group.max_node_count
        && most < group.min_node_count
    {
        return field(
            "max_node_count",
            format!("is less than min_node_count, {}", group.min_node_count),
        );
    }
    if count < group.min_node_count {
        return field(
            "node_count",
            format!("is less than min_node_count, {}", group.min_node_count),
        );
    }
    match group.max_node_count {
        Some(most) if count > most => {
            field("node_count", format!("is more than max_node_count, {most}"))
        }
        Some(_) | None => Ok(()),
    }
}

/// Checks that the cluster is not being deleted.
pub fn check_not_deleting(cluster: &Cluster) -> Result<(), Refusal> {
    match cluster.desire {
        DesiredState::Exist => Ok(()),
        DesiredState::Gone => Err(Refusal::Deleting { name: cluster.name.to_string() }),
    }
}

/// Returns the cluster without `group`, whose numbers of members are not used again.
pub fn without_group(
    cluster: Cluster,
    group: &NodeGroup,
    now: Timestamp,
) -> Result<Cluster, Refusal> {
    if group.is_default {
        return Err(Refusal::DefaultGroup { name: group.name.to_string() });
    }
    let first_machine = cluster.first_machine.max(group.next_machine);
    Ok(Cluster { asked_at: now, first_machine, ..cluster })
}

/// Checks that the group may get another size now. The etcd of a control plane that starts from a backup has a fixed list of members, so no
/// member may be added or removed meanwhile.
pub fn check_can_resize(cluster: &Cluster, group: &NodeGroup) -> Result<(), Refusal> {
    match group.role {
        GroupRole::Master => check_not_restoring(cluster),
        GroupRole::Worker(_) => Ok(()),
    }
}

/// Checks that the control plane is not being restored from a backup.
pub(crate) fn check_not_restoring(cluster: &Cluster) -> Result<(), Refusal> {
    if cluster.restore.is_none() {
        return Ok(());
    }
    let why = format!(
        "the control plane of cluster {} is being restored; try again afterwards",
        cluster.name
    );
    Err(Refusal::Busy { why })
}

/// Returns the group with `count` members. New members get new numbers; the members in `remove` are removed first, then the newest.
pub fn resize(group: &NodeGroup, count: u32, remove: &[MemberName]) -> Result<NodeGroup, Refusal> {
    let mut resized = group.clone();
    if count > MAX_GROUP_SIZE {
        return field("node_count", format!("must be at most {MAX_GROUP_SIZE}"));
    }
    if group.role == GroupRole::Master && group.is_rolling() {
        let why = format!(
            "members of node group {} are being replaced; try again afterwards",
            group.name
        );
        return Err(Refusal::Busy { why });
    }
    for machine in remove {
        if machine.group != group.name || !resized.remove_machine(machine.number) {
            return field(
                "nodes_to_remove",
                format!("{machine} is not a member of node group {}", group.name),
            );
        }
    }
    if !remove.is_empty() && count > resized.node_count() {
        return field(
            "nodes_to_remove",
            format!(
                "{} members are named, but only {} would be removed",
                remove.len(),
                i64::from(group.node_count()) - i64::from(count)
            ),
        );
    }
    while resized.node_count() > count {
        let Some(number) = resized.first_to_go() else { break };
        resized.remove_machine(number);
    }
    while resized.node_count() < count {
        resized.add_machine();
    }
    check_group(&resized)?;
    Ok(resized)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::Labels;
    use crate::sample::{Sample, at, labels};

    #[track_caller]
    fn refuses(result: Result<impl std::fmt::Debug, Refusal>, want: &str) {
        assert_eq!(result.unwrap_err().to_string(), want);
    }

    #[test]
    fn a_control_plane_has_a_majority_and_an_address() {
        let sample = Sample::highly_available();
        let mut blueprint = sample.cluster.blueprint.clone();
        assert_eq!(check_cluster(&blueprint, 3), Ok(()));
        refuses(
            check_cluster(&blueprint, 2),
            "master_count: must be 1, 3 or 5, because etcd needs a majority",
        );
        blueprint.master_lb_enabled = false;
        refuses(
            check_cluster(&blueprint, 3),
            "master_count: more than one needs master_lb_enabled, or the label dns_zone for a DNS name that leads to all of them",
        );
        assert_eq!(check_cluster(&blueprint, 1), Ok(()));
        blueprint.fixed_network = Some("net".to_owned());
        refuses(
            check_cluster(&blueprint, 1),
            "fixed_subnet: set both fixed_network and fixed_subnet, or neither",
        );
    }

    #[test]
    fn calico_as_network_driver_is_refused_at_once() {
        let sample = Sample::highly_available();
        let mut blueprint = sample.cluster.blueprint.clone();
        blueprint.network_driver = NetworkDriver::Calico;
        let why = "network_driver: clusterd does not install calico; choose flannel, or set the label pod_network=routes";
        refuses(check_template(&blueprint), why);
        refuses(check_cluster(&blueprint, 3), why);
        let routes = [("pod_network".to_owned(), "routes".to_owned())];
        blueprint.labels = Labels::try_from(BTreeMap::from(routes)).unwrap();
        assert_eq!(check_template(&blueprint), Ok(()));
    }

    #[test]
    fn a_group_grows_by_new_numbers_and_loses_its_newest_members_first() {
        let sample = Sample::highly_available();
        let workers = &sample.groups[1];
        let grown = resize(workers, 4, &[]).unwrap();
        assert_eq!(Vec::from_iter(grown.machines.clone()), [0, 1, 2, 3]);
        let shrunk = resize(&grown, 2, &[]).unwrap();
        assert_eq!(Vec::from_iter(shrunk.machines.clone()), [0, 1]);
        let again = resize(&shrunk, 3, &[]).unwrap();
        assert_eq!(Vec::from_iter(again.machines), [0, 1, 4]);
    }

    #[test]
    fn a_control_plane_that_is_being_restored_keeps_its_size() {
        let Sample { mut cluster, groups } = Sample::highly_available();
        for group in &groups {
            assert_eq!(check_can_resize(&cluster, group), Ok(()));
        }
        cluster.restore = Some(crate::sample::restore());
        let why = "the control plane of cluster blue is being restored; try again afterwards";
        refuses(check_can_resize(&cluster, &groups[0]), why);
        assert_eq!(check_can_resize(&cluster, &groups[1]), Ok(()));
    }

    #[test]
    fn named_members_are_removed_first() {
        let sample = Sample::highly_available();
        let workers = &sample.groups[1];
        let first = workers.refs().next().unwrap();
        let shrunk = resize(workers, 1, std::slice::from_ref(&first)).unwrap();
        assert_eq!(Vec::from_iter(shrunk.machines), [1]);
        refuses(
            resize(workers, 2, &[first]),
            "nodes_to_remove: 1 members are named, but only 0 would be removed",
        );
        let stranger = "default-master-0".parse().unwrap();
        refuses(
            resize(workers, 1, &[stranger]),
            "nodes_to_remove: default-master-0 is not a member of node group default-worker",
        );
    }

    #[test]
    fn the_numbers_of_a_deleted_group_are_not_used_again() {
        let Sample { cluster, mut groups } = Sample::highly_available();
        let mut workers = groups.remove(1);
        let why =
            "node group default-worker is a default group: it can only be deleted with its cluster";
        refuses(without_group(cluster.clone(), &workers, at(9)), why);
        workers.is_default = false;
        let without = without_group(cluster, &workers, at(9)).unwrap();
        assert_eq!((without.first_machine, without.asked_at), (2, at(9)));
        let older = Cluster { first_machine: 7, ..without };
        assert_eq!(without_group(older, &workers, at(9)).unwrap().first_machine, 7);
    }

    #[test]
    fn the_size_of_a_group_may_reach_each_limit_and_not_exceed_it() {
        let sample = Sample::highly_available();
        let sized = |count: u32, min_node_count, max_node_count| NodeGroup {
            machines: (0..count).collect(),
            min_node_count,
            max_node_count,
            ..sample.groups[1].clone()
        };
        for (count, least, most) in [(2, 2, Some(2)), (0, 0, Some(0)), (1000, 0, None)] {
            assert_eq!(check_group(&sized(count, least, most)), Ok(()), "{count} {least} {most:?}");
        }
        let rows = [
            (1, 2, Some(2), "node_count: is less than min_node_count, 2"),
            (3, 2, Some(2), "node_count: is more than max_node_count, 2"),
            (2, 3, Some(2), "max_node_count: is less than min_node_count, 3"),
            (1001, 0, None, "node_count: must be at most 1000"),
        ];
        for (count, least, most, why) in rows {
            refuses(check_group(&sized(count, least, most)), why);
        }
        assert_eq!(resize(&sample.groups[1], 1000, &[]).unwrap().node_count(), 1000);
        refuses(resize(&sample.groups[1], 1001, &[]), "node_count: must be at most 1000");
    }

    #[test]
    fn a_cluster_has_at_most_a_hundred_groups() {
        let group = Sample::highly_available().groups.remove(1);
        let groups = |count| vec![group.clone(); count];
        assert_eq!(check_another_group(&groups(99)), Ok(()));
        let why = "the cluster has 100 node groups, and 100 is the limit: delete one first";
        refuses(check_another_group(&groups(100)), why);
    }

    #[test]
    fn a_label_of_the_load_balancer_needs_a_load_balancer_and_its_network() {
        let mut blueprint = Sample::highly_available().cluster.blueprint;
        blueprint.labels = labels(&[("master_lb_allowed_cidrs", "192.0.2.0/24")]);
        assert_eq!(check_cluster(&blueprint, 1), Ok(()));
        blueprint.master_lb_enabled = false;
        let why = "labels/master_lb_allowed_cidrs: needs master_lb_enabled";
        refuses(check_cluster(&blueprint, 1), why);
        blueprint.labels = labels(&[("master_lb_floating_ip_enabled", "true")]);
        assert_eq!(check_cluster(&blueprint, 1), Ok(()));
        blueprint.external_network = None;
        let why = "labels/master_lb_floating_ip_enabled: needs external_network_id, the network of floating IPs";
        refuses(check_cluster(&blueprint, 1), why);
    }

    #[test]
    fn limits_are_kept() {
        let mut sample = Sample::highly_available();
        sample.groups[1].max_node_count = Some(3);
        sample.groups[1].min_node_count = 1;
        refuses(resize(&sample.groups[1], 4, &[]), "node_count: is more than max_node_count, 3");
        refuses(resize(&sample.groups[1], 0, &[]), "node_count: is less than min_node_count, 1");
        refuses(
            resize(&sample.groups[0], 2, &[]),
            "node_count: a control plane has 1, 3 or 5 members",
        );
        refuses(
            resize(&sample.groups[0], 0, &[]),
            "node_count: a control plane has 1, 3 or 5 members",
        );
    }
}
