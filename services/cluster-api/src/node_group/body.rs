//! The bodies of requests about node groups.

use std::collections::BTreeMap;

use cluster_core::{
    Cluster, GroupRole, Labels, LabelsCompared, NodeGroup, NodeGroupUuid, NodeTaint, TaintEffect,
    check_group,
};
use jiff::Timestamp;
use newtype_uuid::GenericUuid;
use openstack_api::{ApiError, Caller, Microversion, Op, Operation};
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::app::App;
use crate::error::Error;
use crate::lenient::{count, flag, labels, text};
use crate::microversion as since;

/// The body of a request for a node group. A field that is null or missing has the cluster's value.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewGroup {
    name: String,
    #[serde(default, deserialize_with = "count")]
    node_count: Option<u32>,
    #[serde(default, deserialize_with = "count")]
    min_node_count: Option<u32>,
    #[serde(default, deserialize_with = "count")]
    max_node_count: Option<u32>,
    /// `worker` or any other word except `master`.
    #[serde(default, deserialize_with = "text")]
    role: Option<String>,
    #[serde(default, deserialize_with = "text")]
    image_id: Option<String>,
    #[serde(default, deserialize_with = "text")]
    flavor_id: Option<String>,
    #[serde(default, deserialize_with = "labels")]
    labels: Option<BTreeMap<String, String>>,
    #[serde(default, deserialize_with = "flag")]
    merge_labels: Option<bool>,
    /// The size in GiB.
    #[serde(default, deserialize_with = "count")]
    docker_volume_size: Option<u32>,
    /// Labels of the Kubernetes nodes.
    #[serde(default, deserialize_with = "labels")]
    node_labels: Option<BTreeMap<String, String>>,
    /// Taints of the Kubernetes nodes.
    #[serde(default)]
    #[schema(inline)]
    node_taints: Option<Vec<Taint>>,
}

#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Taint {
    key: String,
    #[serde(default)]
    value: String,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    effect: String,
}

impl NewGroup {
    /// Replaces the image by its id, and refuses an image that the caller may not use.
    pub(crate) async fn borrowed(
        self,
        app: &App,
        caller: &Caller,
        cluster: &Cluster,
    ) -> Result<Self, Error> {
        let image_id = match self.image_id {
            Some(given) => Some(app.resolve_image(caller, cluster, given).await?),
            None => None,
        };
        Ok(NewGroup { image_id, ..self })
    }

    /// Checks the request and makes the node group.
    pub(crate) fn group(
        &self,
        cluster: &Cluster,
        id: Uuid,
        now: Timestamp,
        asked: Microversion,
    ) -> Result<NodeGroup, Error> {
        let machines = self.node_count.unwrap_or(1);
        since::check_zero(machines, asked)?;
        if self.node_labels.is_some() || self.node_taints.is_some() {
            asked.need(since::NODE_LABELS, "node_labels and node_taints")?;
        }
        let base = &cluster.blueprint.labels;
        let labels = match (&self.labels, self.merge_labels) {
            (None, _) => base.clone(),
            (Some(own), Some(true)) => base.merged(&Labels::try_from(own.clone())?)?,
            (Some(own), Some(false) | None) => Labels::try_from(own.clone())?,
        };
        let taints = self.node_taints.clone().unwrap_or_default();
        let named = (self.name.parse()?, role(self.role.as_deref())?);
        let asked =
            NodeGroup::new(NodeGroupUuid::from_untyped_uuid(id), cluster, named, machines, now);
        let group = NodeGroup {
            flavor: self.flavor_id.clone().or(asked.flavor),
            image: self.image_id.clone().unwrap_or(asked.image),
            docker_volume_size: self.docker_volume_size.or(asked.docker_volume_size),
            min_node_count: self.min_node_count.unwrap_or(0),
            max_node_count: self.max_node_count,
            labels_compared: LabelsCompared::new(base, &labels),
            labels,
            node_labels: node_labels(self.node_labels.clone().unwrap_or_default())?,
            node_taints: taints.into_iter().map(taint).collect::<Result<_, _>>()?,
            ..asked
        };
        check_group(&group)?;
        Ok(group)
    }
}

fn role(raw: Option<&str>) -> Result<GroupRole, ApiError> {
    match raw {
        None => Ok(GroupRole::Worker("worker".to_owned())),
        Some("master") => Err(ApiError::bad_field("role", "a cluster has only one control plane")),
        Some(word) if is_name(word, 63) => Ok(GroupRole::Worker(word.to_owned())),
        Some(_) => Err(ApiError::bad_field(
            "role",
            "must be a word of at most 63 letters, digits, `-`, `_` and `.`",
        )),
    }
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

/// Whether `text` may be the key of a label in Kubernetes: a name, optionally after a domain and `/`.
fn is_key(text: &str) -> bool {
    match text.split_once('/') {
        None => is_name(text, 63),
        Some((domain, name)) => is_name(domain, 253) && is_name(name, 63),
    }
}

fn node_labels(raw: BTreeMap<String, String>) -> Result<BTreeMap<String, String>, ApiError> {
    let bad =
        raw.iter().find(|(key, value)| !is_key(key) || !(value.is_empty() || is_name(value, 63)));
    match bad {
        None => Ok(raw),
        Some((key, _)) => {
            let key: String = key.chars().take(64).collect();
            Err(ApiError::bad_field(
                "node_labels",
                format!("{key:?} is not a valid Kubernetes label"),
            ))
        }
    }
}

fn taint(raw: Taint) -> Result<NodeTaint, ApiError> {
    let effect = match raw.effect.as_str() {
        "NoSchedule" => TaintEffect::NoSchedule,
        "PreferNoSchedule" => TaintEffect::PreferNoSchedule,
        "NoExecute" => TaintEffect::NoExecute,
        _ => {
            let why = "effect must be NoSchedule, PreferNoSchedule or NoExecute";
            return Err(ApiError::bad_field("node_taints", why));
        }
    };
    if !is_key(&raw.key) || !(raw.value.is_empty() || is_name(&raw.value, 63)) {
        let key: String = raw.key.chars().take(64).collect();
        return Err(ApiError::bad_field(
            "node_taints",
            format!("{key:?} is not a valid Kubernetes taint"),
        ));
    }
    Ok(NodeTaint { key: raw.key, value: raw.value, effect })
}

/// Returns `group` with the bounds that `patch` sets.
pub(crate) fn patched(group: &NodeGroup, patch: Vec<Operation>) -> Result<NodeGroup, Error> {
    #[derive(Deserialize)]
    struct Bound {
        #[serde(deserialize_with = "count")]
        bound: Option<u32>,
    }
    let mut patched = group.clone();
    for operation in patch {
        let path: String = operation.path.chars().take(64).collect();
        operation.field()?;
        let value = match operation.op {
            Op::Remove => Value::Null,
            Op::Add | Op::Replace => operation
                .value
                .ok_or_else(|| ApiError::bad_field(&path, "the operation has no value"))?,
        };
        let read: Bound =
            serde_json::from_value(Value::Object(Map::from_iter([("bound".to_owned(), value)])))
                .map_err(|why| ApiError::bad_field(&path, why))?;
        match operation.path.as_str() {
            "/min_node_count" => patched.min_node_count = read.bound.unwrap_or(0),
            "/max_node_count" => patched.max_node_count = read.bound,
            _ => {
                let why = "cannot be changed; /min_node_count and /max_node_count can";
                return Err(ApiError::bad_field(&path, why).into());
            }
        }
    }
    Ok(patched)
}
