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
    if own > now || !now.admits_kubelet(own) {
        let why = format!(
            "{own} does not go with {now}, the version of the control plane: a worker may be two minor versions older, and not newer"
        );
        return Err(Refusal::Field { field: "labels/kube_tag", why });
    }
    Ok(Some(own))
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
    match raw.iter().find(|(key, value)| !is_label(key, value)) {
        None => Ok(raw),
        Some((key, _)) => {
            let key: String = key.chars().take(64).collect();
            let why = format!("{key:?} is not a valid Kubernetes label");
            Err(Refusal::Field { field: "node_labels", why })
        }
    }
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
        let taint = |key: &str, effect| NodeTaint::new(key.to_owned(), String::new(), effect);
        refuses(
            taint("a", "Sometimes"),
            "node_taints: effect must be NoSchedule, PreferNoSchedule or NoExecute",
        );
        refuses(taint("a b", "NoSchedule"), "node_taints: \"a b\" is not a valid Kubernetes taint");
    }
}
