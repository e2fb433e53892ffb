//! A request to upgrade a cluster to a template: the roll that it means, and why it is refused.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::request::check_not_restoring;
use crate::{
    Amounts, Cluster, ClusterParameters, ClusterSpec, GroupParameters, GroupRole,
    KubernetesVersion, Labels, LabelsCompared, LabelsError, MemberName, Name, NodeGroup,
    NodeGroupUuid, Refusal, Roll, RollOrigin, Settings, Template, api_name_for_members,
    check_cluster, check_not_deleting, resource_uses,
};

/// Labels that have an effect only when a cluster is created. The cluster keeps its own.
const ONLY_AT_CREATION: [&str; 4] = ["lease", "lease_contact", "max_node_count", "min_node_count"];
/// The label of the version, which always comes from the template.
const KUBE_TAG: &str = "kube_tag";

/// A request to upgrade a cluster. A cluster whose roll is in progress gets another goal.
#[derive(Clone, Copy, Debug)]
pub struct UpgradeRequest<'a> {
    /// The template to upgrade to.
    pub template: &'a Template,
    /// The template of the cluster until now.
    pub former: &'a Template,
    pub scope: UpgradeScope,
    /// How many workers of a group are replaced at once.
    pub at_once: u32,
    /// How many workers of a group may be missing besides.
    pub max_unavailable: u32,
}

/// The node groups that are upgraded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpgradeScope {
    /// The control plane, then all workers.
    All,
    /// One group. Workers get the template that the control plane has.
    Group(NodeGroupUuid),
}

/// A cluster with another roll, and the node groups that change at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RollChange {
    pub cluster: Cluster,
    pub groups: Vec<NodeGroup>,
}

/// The replacement of the members of a node group, for a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedRoll {
    pub group: Name,
    pub members: u32,
    /// How many members are replaced at once.
    pub at_once: u32,
    pub from: KubernetesVersion,
    pub to: KubernetesVersion,
    /// The parameters that change besides the version: `flavor_id`, `image_id`, or a label.
    pub changes: Vec<String>,
}

fn field<T>(field: &'static str, why: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::Field { field, why: why.into() })
}

fn busy<T>(why: String) -> Result<T, Refusal> {
    Err(Refusal::Busy { why })
}

impl UpgradeRequest<'_> {
    /// Returns the cluster with the roll. Without any difference to the template there is none.
    pub fn on(
        &self,
        cluster: &Cluster,
        groups: &[NodeGroup],
        now: Timestamp,
    ) -> Result<RollChange, Refusal> {
        check_can_roll(cluster)?;
        if self.at_once == 0 && self.max_unavailable == 0 {
            return field("max_batch_size", "must be at least 1");
        }
        let UpgradeScope::Group(id) = self.scope else {
            return self.of_control_plane(cluster, groups, |_| true, now);
        };
        let Some(group) = groups.iter().find(|group| group.id == id) else {
            return field("nodegroup", "is no node group of the cluster");
        };
        match group.role {
            GroupRole::Master => {
                self.of_control_plane(cluster, groups, |group| group.id == id, now)
            }
            GroupRole::Worker(_) => self.of_workers(cluster, groups, group, now),
        }
    }

    fn of_workers(
        &self,
        cluster: &Cluster,
        groups: &[NodeGroup],
        group: &NodeGroup,
        now: Timestamp,
    ) -> Result<RollChange, Refusal> {
        if self.template.id != cluster.template {
            return field(
                "nodegroup",
                "workers cannot be upgraded before the control plane: leave out nodegroup, or name the control plane first",
            );
        }
        if cluster.roll.as_ref().is_some_and(|roll| roll.origin.is_some()) {
            let why = format!(
                "the control plane of cluster {} is being upgraded; try again afterwards",
                cluster.name
            );
            return busy(why);
        }
        let parameters = parameters(&cluster.blueprint, group)?;
        let differs = parameters != group.parameters() || group.kubernetes.is_some();
        let waiting = differs.then_some((group.id, parameters)).into_iter().collect();
        let change = (cluster.kubernetes, waiting, None);
        Ok(self.with_roll(cluster.clone(), groups, change, now))
    }

    fn of_control_plane(
        &self,
        cluster: &Cluster,
        groups: &[NodeGroup],
        is_included: impl Fn(&NodeGroup) -> bool,
        now: Timestamp,
    ) -> Result<RollChange, Refusal> {
        let blueprint = self.blueprint(cluster)?;
        let masters = groups.iter().find(|group| group.role == GroupRole::Master);
        check_cluster(&blueprint, masters.map_or(0, NodeGroup::node_count))?;
        let version = blueprint.labels.settings().kubernetes.unwrap_or(cluster.kubernetes);
        check_version(&ClusterSpec { cluster, groups }, version)?;
        let goal = cluster.roll.as_ref().map_or(cluster.kubernetes, |roll| roll.kubernetes);
        let is_new = blueprint != cluster.blueprint || version != goal;
        let mut waiting = BTreeMap::new();
        for group in groups.iter().filter(|group| is_included(group)) {
            let parameters = parameters(&blueprint, group)?;
            if is_new || parameters != group.parameters() || group.kubernetes.is_some() {
                waiting.insert(group.id, parameters);
            }
        }
        let masters = masters.filter(|group| waiting.contains_key(&group.id));
        if masters.is_some() {
            check_endpoint(&ClusterSpec { cluster, groups })?;
        }
        let origin = masters.map(|group| {
            Box::new(RollOrigin {
                template: cluster.template,
                blueprint: cluster.blueprint.clone(),
                labels_compared: cluster.labels_compared.clone(),
                masters: group.parameters(),
            })
        });
        let base = &self.template.blueprint.labels;
        let labels_compared = LabelsCompared::new(base, &blueprint.labels);
        let template = self.template.id;
        let cluster = Cluster { template, blueprint, labels_compared, ..cluster.clone() };
        Ok(self.with_roll(cluster, groups, (version, waiting, origin), now))
    }

    /// Adds the roll to a cluster. Groups of a roll in progress stay in it. When it gets another goal, replacements that have not joined are
    /// given up, because they may be the reason for the request.
    fn with_roll(
        &self,
        cluster: Cluster,
        groups: &[NodeGroup],
        (kubernetes, waiting, origin): (
            KubernetesVersion,
            BTreeMap<NodeGroupUuid, GroupParameters>,
            Option<Box<RollOrigin>>,
        ),
        now: Timestamp,
    ) -> RollChange {
        let before = cluster.roll.clone();
        let is_rolling = groups.iter().any(NodeGroup::is_rolling);
        if waiting.is_empty() && before.is_none() && !is_rolling {
            return RollChange {
                cluster: Cluster { asked_at: now, ..cluster },
                groups: Vec::new(),
            };
        }
        let had = before.as_ref().map(|roll| &roll.waiting);
        let is_had = |id: &NodeGroupUuid, to: &GroupParameters| {
            had.and_then(|had| had.get(id)).is_some_and(|had| is_same(had, to))
        };
        let is_repeated = waiting.iter().all(|(id, to)| is_had(id, to));
        let nodes = &cluster.nodes;
        let rolled = groups.iter().filter(|_| !is_repeated);
        let changed: Vec<NodeGroup> =
            rolled.filter_map(|group| without_unjoined(group, nodes)).collect();
        let (began_at, mut all, kept) = match before {
            Some(roll) => (roll.began_at, roll.waiting, roll.origin),
            None => (now, BTreeMap::new(), None),
        };
        all.extend(waiting);
        let roll = Roll {
            began_at,
            kubernetes,
            at_once: self.at_once,
            max_unavailable: self.max_unavailable,
            is_paused: false,
            waiting: all,
            origin: kept.or(origin),
            waits_for: None,
        };
        let cluster = Cluster { roll: Some(roll), asked_at: now, ..cluster };
        RollChange { cluster, groups: changed }
    }

    /// Returns the parameters of the cluster with those of the template that an upgrade changes.
    fn blueprint(&self, cluster: &Cluster) -> Result<ClusterParameters, Refusal> {
        let (new, own) = (&self.template.blueprint, &cluster.blueprint);
        self.check_template(own)?;
        let labels = rebased(&own.labels, &cluster.labels_compared, &new.labels)?;
        check_settings(own.labels.settings(), labels.settings())?;
        let old = &self.former.blueprint;
        let master = |of: &ClusterParameters| of.master_flavor.clone().or(of.flavor.clone());
        let mut names = own.names.clone();
        if new.image != own.image
            && let Some(given) = new.names.get(&new.image)
        {
            names.insert(new.image.clone(), given.clone());
        }
        Ok(ClusterParameters {
            names,
            flavor: followed((&old.flavor, &new.flavor), &own.flavor),
            master_flavor: followed((&master(old), &master(new)), &own.master_flavor),
            image: new.image.clone(),
            http_proxy: new.http_proxy.clone(),
            https_proxy: new.https_proxy.clone(),
            no_proxy: new.no_proxy.clone(),
            labels,
            ..own.clone()
        })
    }

    /// Refuses a template that differs, from the former one and from the cluster, in a field that stays as it was at the creation.
    fn check_template(&self, own: &ClusterParameters) -> Result<(), Refusal> {
        let (new, old) = (&self.template.blueprint, &self.former.blueprint);
        macro_rules! stays {
            ($($name:literal $field:ident)*) => {
                [$(($name, new.$field == old.$field || new.$field == own.$field),)*]
            };
        }
        let rows = stays! {
            "apiserver_port" apiserver_port
            "dns_nameserver" dns_nameservers
            "docker_volume_size" docker_volume_size
            "external_network_id" external_network
            "fixed_network" fixed_network
            "fixed_subnet" fixed_subnet
            "floating_ip_enabled" floating_ip_enabled
            "keypair_id" keypair
            "master_lb_enabled" master_lb_enabled
            "network_driver" network_driver
            "volume_driver" volume_driver
        };
        refuse_changed(&rows)
    }
}

/// Returns the flavor of a cluster whose template changes: the cluster keeps one that it chose itself.
fn followed(
    (old, new): (&Option<String>, &Option<String>),
    own: &Option<String>,
) -> Option<String> {
    if own == old { new.clone().or(own.clone()) } else { own.clone() }
}

/// Refuses settings of labels that an existing cluster cannot change.
fn check_settings(old: &Settings, new: &Settings) -> Result<(), Refusal> {
    macro_rules! stays {
        ($($name:literal $field:ident)*) => { [$(($name, new.$field == old.$field),)*] };
    }
    let rows = stays! {
        "labels/boot_volume_size" boot_volume
        "labels/dns_cluster_domain" cluster_domain
        "labels/dns_zone" dns_zone
        "labels/docker_volume_type" container_volume_type
        "labels/etcd_volume_size" etcd_volume
        "labels/fixed_subnet_cidr" node_cidr
        "labels/flannel_network_cidr" pod_cidr
        "labels/master_lb_allowed_cidrs" api_allowed_cidrs
        "labels/master_lb_floating_ip_enabled" balancer_floating_ip
        "labels/octavia_lb_algorithm" algorithm
        "labels/octavia_provider" provider
        "labels/pod_network" pod_network
        "labels/server_group_policies" strict_anti_affinity
        "labels/service_cluster_ip_range" service_cidr
    };
    refuse_changed(&rows)
}

fn refuse_changed(rows: &[(&'static str, bool)]) -> Result<(), Refusal> {
    let changed = rows.iter().find(|(_, stays)| !stays);
    changed.map_or(Ok(()), |(name, _)| {
        field(name, "an upgrade cannot change it; take a template that has the cluster's value")
    })
}

/// Checks that no other change of the members is in progress.
fn check_can_roll(cluster: &Cluster) -> Result<(), Refusal> {
    check_not_deleting(cluster)?;
    let name = &cluster.name;
    if cluster.completed_at.is_none() {
        return busy(format!(
            "cluster {name} was never complete; an upgrade needs a working cluster"
        ));
    }
    if cluster.rest.is_some() {
        return busy(format!(
            "the servers of cluster {name} are off or starting; extend its lease and try again"
        ));
    }
    if !cluster.authorities.is_settled() {
        return busy(format!(
            "a CA rotation of cluster {name} is in progress; try again afterwards"
        ));
    }
    check_not_restoring(cluster)
}

/// Checks the version of a roll against the control plane, the workers, and a roll in progress.
fn check_version(spec: &ClusterSpec<'_>, version: KubernetesVersion) -> Result<(), Refusal> {
    let now = spec.cluster.kubernetes;
    if let Some(why) = now.upgrade_objection(version) {
        return field("labels/kube_tag", why);
    }
    if let Some(roll) = &spec.cluster.roll {
        if version < roll.kubernetes {
            let why = format!(
                "{version} is older than {}, to which the cluster is being upgraded; roll the upgrade back instead",
                roll.kubernetes
            );
            return field("labels/kube_tag", why);
        }
        if roll.origin.is_none() && version.minor != now.minor {
            let why = format!(
                "workers of cluster {} are still being upgraded to {now}; try again afterwards",
                spec.cluster.name
            );
            return busy(why);
        }
    }
    let workers = spec.groups.iter().filter(|group| group.role != GroupRole::Master);
    let mut workers = workers.map(|group| (group, spec.version_of(group)));
    match workers.find(|(_, has)| !version.admits_kubelet(*has)) {
        Some((group, has)) => field(
            "labels/kube_tag",
            format!(
                "{version} is too new for node group {} with {has}; upgrade the node group first",
                group.name
            ),
        ),
        None => Ok(()),
    }
}

/// Refuses a cluster whose API has the address of one control-plane member, because an upgrade replaces the member.
fn check_endpoint(spec: &ClusterSpec<'_>) -> Result<(), Refusal> {
    if spec.cluster.blueprint.master_lb_enabled || api_name_for_members(spec).is_some() {
        return Ok(());
    }
    field(
        "master_lb_enabled",
        "the API has the address of a control-plane member, which an upgrade replaces: only a cluster with a load balancer, or \
         with several control-plane members and the label dns_zone, keeps the address of its API",
    )
}

/// Returns the parameters that a group of a cluster with this blueprint has.
fn parameters(
    blueprint: &ClusterParameters,
    group: &NodeGroup,
) -> Result<GroupParameters, LabelsError> {
    let base = &blueprint.labels;
    let labels = rebased(&group.labels, &group.labels_compared, base)?;
    let labels_compared = LabelsCompared::new(base, &labels);
    let image = if group.has_own_image { &group.image } else { &blueprint.image };
    let flavor = match group.role {
        _ if group.has_own_flavor => &group.flavor,
        GroupRole::Master => &blueprint.master_flavor,
        GroupRole::Worker(_) => &blueprint.flavor,
    };
    let size = group.size.filter(|_| *flavor == group.flavor);
    let (flavor, image) = (flavor.clone(), image.clone());
    Ok(GroupParameters { flavor, size, image, labels, labels_compared })
}

/// Whether the parameters are the same. The size of a flavor is not always known.
fn is_same(one: &GroupParameters, other: &GroupParameters) -> bool {
    GroupParameters { size: other.size, ..one.clone() } == *other
}

/// Returns the labels of a resource whose base gets other labels: what the resource itself added, replaced or left out stays so.
fn rebased(
    labels: &Labels,
    compared: &LabelsCompared,
    base: &Labels,
) -> Result<Labels, LabelsError> {
    let mut raw = base.raw().clone();
    for name in compared.skipped.keys().map(String::as_str).chain(ONLY_AT_CREATION) {
        raw.remove(name);
    }
    let is_own = |name: &str| {
        let is_own = compared.added.contains_key(name) || compared.overridden.contains_key(name);
        is_own || ONLY_AT_CREATION.contains(&name)
    };
    let own = labels.raw().iter().filter(|(name, _)| is_own(name));
    raw.extend(own.map(|(name, value)| (name.clone(), value.clone())));
    // The version has one truth: a cluster follows its template, and a group its cluster.
    if let Some(version) = base.raw().get(KUBE_TAG) {
        raw.insert(KUBE_TAG.to_owned(), version.clone());
    }
    raw.try_into()
}

/// Returns a group without replacements that are no Kubernetes nodes yet; `None` when it has none.
fn without_unjoined(group: &NodeGroup, nodes: &BTreeSet<MemberName>) -> Option<NodeGroup> {
    let mut changed = group.clone();
    for (old, new) in &group.replacing {
        if !nodes.contains(&MemberName { group: group.name.clone(), number: *new }) {
            changed.replacing.remove(old);
            changed.machines.remove(new);
        }
    }
    (changed != *group).then_some(changed)
}

/// Returns a cluster and its groups as they are after the roll.
pub fn after_roll(cluster: &Cluster, groups: &[NodeGroup]) -> (Cluster, Vec<NodeGroup>) {
    let mut cluster = cluster.clone();
    let Some(roll) = cluster.roll.take() else { return (cluster, groups.to_vec()) };
    if roll.origin.is_some() {
        cluster.kubernetes = roll.kubernetes;
    }
    let after = |group: &NodeGroup| match roll.waiting.get(&group.id).cloned() {
        Some(to) => NodeGroup { kubernetes: None, ..group.clone().with_parameters(to) },
        None => group.clone(),
    };
    (cluster, groups.iter().map(after).collect())
}

/// Returns how much more the members of a cluster use after its roll, and whether the sizes of all new flavors are known.
pub fn roll_growth(spec: &ClusterSpec<'_>) -> (Amounts, bool) {
    let sum = |spec: &ClusterSpec<'_>| {
        let mut all = Amounts::default();
        resource_uses(spec).iter().for_each(|part| all += &part.amounts);
        all
    };
    let (cluster, groups) = after_roll(spec.cluster, spec.groups);
    let more = sum(&ClusterSpec { cluster: &cluster, groups: &groups }).minus(&sum(spec));
    let mut pairs = spec.groups.iter().zip(&groups);
    let is_unknown = pairs.any(|(before, it)| before.flavor != it.flavor && it.size.is_none());
    (more, !is_unknown)
}

/// Returns the remaining replacements of a roll, in order.
pub fn planned_rolls(spec: &ClusterSpec<'_>) -> Vec<PlannedRoll> {
    let Some(roll) = &spec.cluster.roll else { return Vec::new() };
    let planned = |group: &NodeGroup| {
        let waiting = roll.waiting.get(&group.id);
        let members = match waiting {
            Some(_) => group.node_count(),
            None if group.is_rolling() => group.outdated.len() as u32,
            None => return None,
        };
        let is_master = group.role == GroupRole::Master;
        Some(PlannedRoll {
            group: group.name.clone(),
            members,
            at_once: if is_master { 1 } else { roll.at_once.max(roll.max_unavailable) },
            from: spec.version_of(group),
            to: roll.kubernetes,
            changes: waiting.map(|to| changes(&group.parameters(), to)).unwrap_or_default(),
        })
    };
    let (masters, workers): (Vec<_>, Vec<_>) =
        spec.groups.iter().partition(|group| group.role == GroupRole::Master);
    masters.into_iter().chain(workers).filter_map(planned).collect()
}

fn changes(from: &GroupParameters, to: &GroupParameters) -> Vec<String> {
    let none = || "none".to_owned();
    let [old, new] = [from, to].map(|it| it.flavor.clone().unwrap_or_else(none));
    let flavor = (old != new).then(|| format!("flavor_id: {old} to {new}"));
    let image =
        (from.image != to.image).then(|| format!("image_id: {} to {}", from.image, to.image));
    let compared = LabelsCompared::new(&from.labels, &to.labels);
    let names = [compared.overridden, compared.added, compared.skipped];
    let names: BTreeSet<String> = names.into_iter().flat_map(BTreeMap::into_keys).collect();
    let labels = names.into_iter().filter(|name| name != KUBE_TAG);
    flavor.into_iter().chain(image).chain(labels.map(|name| format!("labels/{name}"))).collect()
}

/// Pauses a roll: no further member is replaced.
pub fn pause_roll(cluster: &Cluster) -> Result<Cluster, Refusal> {
    with_pause(cluster, true)
}

/// Resumes a paused roll.
pub fn resume_roll(cluster: &Cluster) -> Result<Cluster, Refusal> {
    with_pause(cluster, false)
}

fn with_pause(cluster: &Cluster, is_paused: bool) -> Result<Cluster, Refusal> {
    check_not_deleting(cluster)?;
    let roll = Roll { is_paused, ..in_progress(cluster)?.clone() };
    Ok(Cluster { roll: Some(roll), ..cluster.clone() })
}

fn in_progress(cluster: &Cluster) -> Result<&Roll, Refusal> {
    let none = || format!("no upgrade of cluster {} is in progress", cluster.name);
    cluster.roll.as_ref().ok_or_else(|| Refusal::Busy { why: none() })
}

/// Rolls a cluster back to its state before the roll, as long as no new control-plane member may have changed anything in it. Workers whose
/// replacement had begun before, for another upgrade, are replaced to the end.
///
/// `joining` are the members that were given their configs and have not reported a failure: they may join etcd at any time.
pub fn roll_back(
    cluster: &Cluster,
    groups: &[NodeGroup],
    joining: &BTreeSet<MemberName>,
    now: Timestamp,
) -> Result<RollChange, Refusal> {
    check_not_deleting(cluster)?;
    check_not_restoring(cluster)?;
    let masters = groups.iter().find(|group| group.role == GroupRole::Master);
    let origin = in_progress(cluster)?.origin.as_deref();
    let (Some(origin), Some(masters)) = (origin, masters) else {
        return busy(format!(
            "the control plane of cluster {} is not part of the upgrade any more, so nothing can be rolled back",
            cluster.name
        ));
    };
    let has_begun = !in_progress(cluster)?.waiting.contains_key(&masters.id);
    let new = masters.refs().filter(|it| has_begun && !masters.outdated.contains(&it.number));
    for member in new {
        if cluster.nodes.contains(&member) {
            return busy(format!(
                "{member} has joined the control plane, so the upgrade cannot be rolled back"
            ));
        }
        if joining.contains(&member) {
            return busy(format!(
                "{member} may be joining the control plane now; the upgrade can be rolled back if it fails to"
            ));
        }
    }
    let mut back = without_unjoined(masters, &cluster.nodes).unwrap_or_else(|| masters.clone());
    back.outdated.clear();
    let back = back.with_parameters(origin.masters.clone());
    let mut workers = groups.iter().filter(|group| group.role != GroupRole::Master);
    let rest = Roll {
        kubernetes: cluster.kubernetes,
        waiting: BTreeMap::new(),
        origin: None,
        waits_for: None,
        ..in_progress(cluster)?.clone()
    };
    let cluster = Cluster {
        template: origin.template,
        blueprint: origin.blueprint.clone(),
        labels_compared: origin.labels_compared.clone(),
        roll: workers.any(NodeGroup::is_rolling).then_some(rest),
        asked_at: now,
        ..cluster.clone()
    };
    Ok(RollChange { cluster, groups: vec![back] })
}

#[cfg(test)]
mod tests;
