//! A request for a node group: the group that it means for a cluster.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::{
    Cluster, GroupRole, KubernetesVersion, Labels, LabelsCompared, LabelsRequest, Name, NodeGroup,
    NodeGroupUuid, NodeTaint, Refusal, TaintEffect, check_another_group, check_group,
    check_not_deleting,
};

/// A request for a node group. A value that the caller left out comes from the cluster.
#[derive(Clone, Debug)]
pub struct GroupRequest {
    pub name: String,
    pub role: GroupRole,
    pub node_count: u32,
    pub min_node_count: u32,
    pub max_node_count: Option<u32>,
    pub image: Option<String>,
    pub flavor: Option<String>,
    /// In GiB.
    pub docker_volume_size: Option<u32>,
    pub labels: LabelsRequest,
    pub node_labels: BTreeMap<String, String>,
    pub node_taints: Vec<NodeTaint>,
}

impl Default for GroupRequest {
    fn default() -> Self {
        GroupRequest {
            name: String::new(),
            role: GroupRole::default(),
            node_count: 1,
            min_node_count: 0,
            max_node_count: None,
            image: None,
            flavor: None,
            docker_volume_size: None,
            labels: LabelsRequest::default(),
            node_labels: BTreeMap::new(),
            node_taints: Vec::new(),
        }
    }
}

impl GroupRequest {
    /// Returns the new group of `cluster`, whose node groups are `groups`.
    pub fn group(
        &self,
        cluster: &Cluster,
        groups: &[NodeGroup],
        id: NodeGroupUuid,
        now: Timestamp,
    ) -> Result<NodeGroup, Refusal> {
        check_not_deleting(cluster)?;
        let base = &cluster.blueprint.labels;
        let labels = self.labels.on(base)?;
        let kubernetes = own_version(cluster, &labels)?;
        let named = (self.name.parse::<Name>()?, self.role.clone());
        let new = NodeGroup::new(id, cluster, named, self.node_count, now);
        let group = NodeGroup {
            flavor: self.flavor.clone().or(new.flavor),
            has_own_flavor: self.flavor.is_some(),
            has_own_image: self.image.is_some(),
            image: self.image.clone().unwrap_or(new.image),
            kubernetes,
            docker_volume_size: self.docker_volume_size.or(new.docker_volume_size),
            min_node_count: self.min_node_count,
            max_node_count: self.max_node_count,
            labels_compared: LabelsCompared::new(base, &labels),
            labels,
            node_labels: self.node_labels.clone(),
            node_taints: self.node_taints.clone(),
            ..new
        };
        check_group(&group)?;
        if groups.iter().any(|other| other.name == group.name) {
            let (name, cluster) = (&group.name, &cluster.name);
            let why =
                format!("A node group with name {name} already exists in the cluster {cluster}.");
            return Err(Refusal::Busy { why });
        }
        check_another_group(groups)?;
        Ok(group)
    }
}

/// Returns the version of Kubernetes that the labels of a group ask for, if it is another one than that of the control plane.
fn own_version(cluster: &Cluster, labels: &Labels) -> Result<Option<KubernetesVersion>, Refusal> {
    // The version of a group without a label of its own follows the control plane, also while the control plane is upgraded.
    let is_own = labels.raw().get("kube_tag") != cluster.blueprint.labels.raw().get("kube_tag");
    let own = labels.settings().kubernetes.filter(|_| is_own);
    let Some(own) = own.filter(|own| *own != cluster.kubernetes) else { return Ok(None) };
    let now = cluster.kubernetes;
    let goal = cluster.roll.as_ref().map_or(now, |roll| roll.kubernetes);
    let refuses = |api: &KubernetesVersion| own > *api || !api.admits_kubelet(own);
    if let Some(api) = [now, goal].into_iter().find(refuses) {
        let why = format!(
            "{own} does not go with {api}, the version of the control plane: a worker may be two minor versions older, from v1.28 on three, \
             and not newer"
        );
        return Err(Refusal::Field { field: "labels/kube_tag", why });
    }
    Ok(Some(own))
}

/// The most labels and taints that requests may remove from a group: each turn looks for them on the nodes.
const MOST_REMOVED: usize = 100;

/// Returns the group after a request changed `before` to `after`, with the labels and taints that its nodes have to lose.
pub fn changed_group(
    before: &NodeGroup,
    mut after: NodeGroup,
    now: Timestamp,
) -> Result<NodeGroup, Refusal> {
    let refuse = |field, why: String| Err(Refusal::Field { field, why });
    if after.role == GroupRole::Master {
        let why = || "a control plane cannot have any: its nodes have those of kubeadm".to_owned();
        if !after.node_labels.is_empty() {
            return refuse("node_labels", why());
        }
        if !after.node_taints.is_empty() {
            return refuse("node_taints", why());
        }
    }
    after.removed_labels.extend(before.node_labels.keys().cloned());
    after.removed_labels.retain(|key| !after.node_labels.contains_key(key));
    for taint in &before.node_taints {
        if !after.removed_taints.iter().any(|it| it.is_in_place_of(taint)) {
            after.removed_taints.push(taint.clone());
        }
    }
    let wanted = &after.node_taints;
    after.removed_taints.retain(|it| !wanted.iter().any(|wanted| wanted.is_in_place_of(it)));
    let full = |field| {
        let why = format!(
            "requests have removed {MOST_REMOVED} from this group, which is the limit: make another group"
        );
        refuse(field, why)
    };
    if after.removed_labels.len() > MOST_REMOVED {
        return full("node_labels");
    }
    if after.removed_taints.len() > MOST_REMOVED {
        return full("node_taints");
    }
    check_group(&after)?;
    after.updated_at = Some(now);
    Ok(after)
}

/// Returns the changes of the labels of a Kubernetes node that its group asks for; `None` removes a label.
pub fn label_changes(
    group: &NodeGroup,
    has: &BTreeMap<String, String>,
) -> BTreeMap<String, Option<String>> {
    let wanted = group.node_labels.iter().filter(|(key, value)| has.get(*key) != Some(*value));
    let wanted = wanted.map(|(key, value)| (key.clone(), Some(value.clone())));
    let gone = group.removed_labels.iter().filter(|key| has.contains_key(*key));
    wanted.chain(gone.map(|key| (key.clone(), None))).collect()
}

impl GroupRole {
    /// The role of a group of workers.
    pub fn worker(word: &str) -> Result<GroupRole, Refusal> {
        let refuse = |why: &str| Err(Refusal::Field { field: "role", why: why.to_owned() });
        match word {
            "master" => refuse("a cluster has only one control plane"),
            word if is_name(word, 63) => Ok(GroupRole::Worker(word.to_owned())),
            _ => refuse("must be a word of at most 63 letters, digits, `-`, `_` and `.`"),
        }
    }
}

impl NodeTaint {
    /// Makes a taint that Kubernetes accepts.
    pub fn new(key: String, value: String, effect: &str) -> Result<NodeTaint, Refusal> {
        let refuse = |why: String| Err(Refusal::Field { field: "node_taints", why });
        let Some(effect) = TaintEffect::find(effect) else {
            return refuse("effect must be NoSchedule, PreferNoSchedule or NoExecute".to_owned());
        };
        if !is_label(&key, &value) {
            let key: String = key.chars().take(64).collect();
            return refuse(format!("{key:?} is not a valid Kubernetes taint"));
        }
        Ok(NodeTaint { key, value, effect })
    }
}

/// Checks labels of Kubernetes nodes.
pub fn node_labels(raw: BTreeMap<String, String>) -> Result<BTreeMap<String, String>, Refusal> {
    let why = |(key, value): (&String, &String)| {
        if !is_label(key, value) {
            let key: String = key.chars().take(64).collect();
            return Some(format!("{key:?} is not a valid Kubernetes label"));
        }
        is_reserved(key).then(|| format!("{key:?} is reserved for Kubernetes"))
    };
    match raw.iter().find_map(why) {
        None => Ok(raw),
        Some(why) => Err(Refusal::Field { field: "node_labels", why }),
    }
}

/// Whether a kubelet may not set this label on its own node: the label has a domain of Kubernetes, and is none of those that describe a node.
///
/// Source: kubernetes.io/docs/reference/access-authn-authz/admission-controllers, "NodeRestriction", and Magnum's check of `node_labels`.
fn is_reserved(key: &str) -> bool {
    const OPEN: [&str; 2] = ["kubelet.kubernetes.io", "node.kubernetes.io"];
    const DESCRIBING: [&str; 10] = [
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/instance-type",
        "beta.kubernetes.io/os",
        "failure-domain.beta.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "kubernetes.io/arch",
        "kubernetes.io/hostname",
        "kubernetes.io/os",
        "topology.kubernetes.io/region",
        "topology.kubernetes.io/zone",
    ];
    let Some((domain, _)) = key.split_once('/') else { return false };
    let is_in = |of: &str| {
        domain.strip_suffix(of).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    (is_in("kubernetes.io") || is_in("k8s.io"))
        && !OPEN.contains(&domain)
        && !DESCRIBING.contains(&key)
}

/// Whether Kubernetes accepts this key and value of a label or a taint: the key is a name, optionally after a domain and `/`, and the value
/// is empty or a name.
fn is_label(key: &str, value: &str) -> bool {
    let is_key = match key.split_once('/') {
        None => is_name(key, 63),
        Some((domain, name)) => is_name(domain, 253) && is_name(name, 63),
    };
    is_key && (value.is_empty() || is_name(value, 63))
}

/// Whether `text` may be the name or the value of a label in Kubernetes.
fn is_name(text: &str, longest: usize) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let ends = |c: char| c.is_ascii_alphanumeric();
    text.len() <= longest
        && text.chars().all(inner)
        && text.starts_with(ends)
        && text.ends_with(ends)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DesiredState;
    use crate::sample::{Sample, at};

    fn request() -> GroupRequest {
        GroupRequest { name: "gpu".to_owned(), ..GroupRequest::default() }
    }

    fn group(request: &GroupRequest) -> Result<NodeGroup, Refusal> {
        let Sample { cluster, groups } = Sample::highly_available();
        request.group(&cluster, &groups, NodeGroupUuid::nil(), at(5))
    }

    #[track_caller]
    fn refuses<T: std::fmt::Debug>(result: Result<T, Refusal>, want: &str) {
        assert_eq!(result.unwrap_err().to_string(), want);
    }

    #[test]
    fn a_value_that_the_caller_leaves_out_comes_from_the_cluster() {
        let made = group(&request()).unwrap();
        assert_eq!((made.flavor.as_deref(), made.image.as_str()), (Some("m1.large"), "fcos"));
        assert_eq!((made.node_count(), made.role.as_str()), (1, "worker"));
        assert_eq!(made.labels, Sample::highly_available().cluster.blueprint.labels);
        let own = GroupRequest {
            flavor: Some("g1.large".to_owned()),
            node_count: 2,
            min_node_count: 1,
            max_node_count: Some(4),
            labels: LabelsRequest { own: Some(BTreeMap::new()), merge: false },
            ..request()
        };
        let made = group(&own).unwrap();
        assert_eq!((made.flavor.as_deref(), made.node_count()), (Some("g1.large"), 2));
        assert_eq!((made.min_node_count, made.max_node_count), (1, Some(4)));
        assert_eq!(made.labels_compared.skipped.len(), 1);
        assert!(made.labels.raw().is_empty());
    }

    #[test]
    fn a_group_may_be_some_versions_older_than_the_control_plane_also_after_its_upgrade() {
        let version = |minor| KubernetesVersion { minor, patch: 0 };
        let mut sample = Sample::highly_available();
        sample.cluster.kubernetes = version(34);
        let made = |sample: &Sample, tag: &str| {
            let tag = BTreeMap::from([("kube_tag".to_owned(), tag.to_owned())]);
            let labels = LabelsRequest { own: Some(tag), merge: true };
            let request = GroupRequest { labels, ..request() };
            let (cluster, groups) = (&sample.cluster, &sample.groups);
            let made = request.group(cluster, groups, NodeGroupUuid::nil(), at(5));
            made.map(|group| group.kubernetes)
        };
        let why = |own: &str, api: &str| {
            format!(
                "labels/kube_tag: {own} does not go with {api}, the version of the control plane: a worker may be two minor versions older, \
                 from v1.28 on three, and not newer"
            )
        };
        assert_eq!(made(&sample, "v1.34.0"), Ok(None));
        assert_eq!(made(&sample, "v1.31.0"), Ok(Some(version(31))));
        refuses(made(&sample, "v1.30.0"), &why("v1.30.0", "v1.34.0"));
        refuses(made(&sample, "v1.35.0"), &why("v1.35.0", "v1.34.0"));
        let upgrade = crate::Roll { kubernetes: version(35), ..sample.roll() };
        sample.cluster.roll = Some(upgrade);
        assert_eq!(made(&sample, "v1.32.0"), Ok(Some(version(32))));
        refuses(made(&sample, "v1.31.0"), &why("v1.31.0", "v1.35.0"));
    }

    #[test]
    fn every_value_of_the_caller_is_kept() {
        let taint = NodeTaint::new("gpu".to_owned(), String::new(), "NoSchedule").unwrap();
        let labels = BTreeMap::from([("pool".to_owned(), "gpu".to_owned())]);
        let own = GroupRequest {
            image: Some("debian".to_owned()),
            docker_volume_size: Some(30),
            node_labels: labels.clone(),
            node_taints: vec![taint.clone()],
            ..request()
        };
        let made = group(&own).unwrap();
        assert_eq!((made.image.as_str(), made.docker_volume_size), ("debian", Some(30)));
        assert_eq!((made.node_labels, made.node_taints), (labels, vec![taint]));
    }

    #[test]
    fn an_impossible_group_is_refused() {
        let named = |name: &str| GroupRequest { name: name.to_owned(), ..request() };
        let twice = "A node group with name default-worker already exists in the cluster blue.";
        refuses(group(&named("default-worker")), twice);
        let few = GroupRequest { node_count: 3, max_node_count: Some(2), ..request() };
        refuses(group(&few), "node_count: is more than max_node_count, 2");
        let mut sample = Sample::highly_available();
        sample.cluster.desire = DesiredState::Gone;
        let made = request().group(&sample.cluster, &sample.groups, NodeGroupUuid::nil(), at(5));
        refuses(made, "cluster blue is being deleted");
    }

    #[test]
    fn a_group_remembers_the_labels_and_taints_that_its_nodes_have_to_lose() {
        let pairs = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let taint = |key: &str, value: &str, effect: &str| {
            NodeTaint::new(key.to_owned(), value.to_owned(), effect).unwrap()
        };
        let before = NodeGroup {
            node_labels: pairs(&[("a", "1"), ("b", "1")]),
            node_taints: vec![taint("t", "1", "NoSchedule"), taint("t", "1", "NoExecute")],
            ..Sample::highly_available().groups.remove(1)
        };
        let after = NodeGroup {
            node_labels: pairs(&[("b", "2"), ("c", "1")]),
            node_taints: vec![taint("t", "2", "NoSchedule")],
            ..before.clone()
        };
        let changed = changed_group(&before, after, at(7)).unwrap();
        assert_eq!(Vec::from_iter(&changed.removed_labels), ["a"]);
        assert_eq!(changed.removed_taints, [taint("t", "1", "NoExecute")]);
        assert_eq!(changed.updated_at, Some(at(7)));
        let has = pairs(&[("a", "1"), ("b", "1"), ("other", "1")]);
        let changes = label_changes(&changed, &has);
        let want = [("a", None), ("b", Some("2")), ("c", Some("1"))];
        let want = want.map(|(key, value)| (key.to_owned(), value.map(str::to_owned)));
        assert_eq!(changes, BTreeMap::from(want));
        // A label or taint that is wanted again is not removed any more.
        let again = changed_group(
            &changed,
            NodeGroup { removed_taints: changed.removed_taints.clone(), ..before.clone() },
            at(8),
        )
        .unwrap();
        assert_eq!((again.removed_labels.len(), again.removed_taints.len()), (1, 0));
        assert!(again.removed_labels.contains("c"));
        assert!(label_changes(&again, &pairs(&[("a", "1"), ("b", "1")])).is_empty());
    }

    #[test]
    fn a_control_plane_has_no_labels_and_taints_of_requests() {
        let before = Sample::highly_available().groups.remove(0);
        let labels = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
        let labelled = NodeGroup { node_labels: labels, ..before.clone() };
        let why = "node_labels: a control plane cannot have any: its nodes have those of kubeadm";
        refuses(changed_group(&before, labelled, at(7)), why);
        let labels = (0..101).map(|number| (format!("k{number}"), String::new())).collect();
        let workers = Sample::highly_available().groups.remove(1);
        let many = NodeGroup { node_labels: labels, ..workers.clone() };
        let why = "node_labels: requests have removed 100 from this group, which is the limit: make another group";
        refuses(changed_group(&many, workers, at(7)), why);
    }

    #[test]
    fn a_role_is_a_word_of_workers() {
        assert_eq!(GroupRole::worker("gpu.a-1").unwrap().as_str(), "gpu.a-1");
        refuses(GroupRole::worker("master"), "role: a cluster has only one control plane");
        let why = "role: must be a word of at most 63 letters, digits, `-`, `_` and `.`";
        for bad in ["", "a b", "-a", "a/b", &"a".repeat(64)] {
            refuses(GroupRole::worker(bad), why);
        }
    }

    #[test]
    fn kubernetes_accepts_the_labels_and_taints() {
        let good = [("a", ""), ("example.com/gpu", "a100"), ("a.b_c-d", "x.y")];
        for (key, value) in good {
            assert!(is_label(key, value), "{key}={value}");
            assert!(NodeTaint::new(key.to_owned(), value.to_owned(), "NoExecute").is_ok());
        }
        let bad = [("", "a"), ("a b", "c"), ("a/b/c", ""), ("/a", ""), ("a", "-"), ("a", "b c")];
        for (key, value) in bad {
            assert!(!is_label(key, value), "{key}={value}");
        }
        let labels = BTreeMap::from([("a b".to_owned(), "c".to_owned())]);
        refuses(node_labels(labels), "node_labels: \"a b\" is not a valid Kubernetes label");
        let labels = |key: &str| node_labels(BTreeMap::from([(key.to_owned(), "x".to_owned())]));
        for key in ["node.kubernetes.io/pool", "topology.kubernetes.io/zone", "mykubernetes.io/a"] {
            assert!(labels(key).is_ok(), "{key}");
        }
        for key in ["node-role.kubernetes.io/master", "kubernetes.io/a", "x.k8s.io/a"] {
            refuses(labels(key), &format!("node_labels: {key:?} is reserved for Kubernetes"));
        }
        let taint = |key: &str, effect| NodeTaint::new(key.to_owned(), String::new(), effect);
        refuses(
            taint("a", "Sometimes"),
            "node_taints: effect must be NoSchedule, PreferNoSchedule or NoExecute",
        );
        refuses(taint("a b", "NoSchedule"), "node_taints: \"a b\" is not a valid Kubernetes taint");
    }
}
