//! A node group in a response.

use cluster_core::{Cluster, NodeGroup, NodeTaint, TaintEffect, status, status_reason};
use jiff::Timestamp;
use openstack_api::{JsonShape, Links, Microversion, Origin, Time};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::microversion as since;

/// A node group with all fields.
pub(crate) struct View<'a> {
    pub(crate) group: &'a NodeGroup,
    pub(crate) cluster: &'a Cluster,
    pub(crate) origin: &'a Origin,
    pub(crate) asked: Microversion,
    pub(crate) now: Timestamp,
}

/// A node group with its main fields, in a list.
pub(crate) struct Brief<'a> {
    pub(crate) view: View<'a>,
}

const NULL: Option<()> = None;

/// The response schema of a node group in a list.
pub(crate) fn brief() -> JsonShape {
    JsonShape::object([
        ("uuid", JsonShape::text()),
        ("name", JsonShape::text()),
        ("flavor_id", JsonShape::text().or_null()),
        ("image_id", JsonShape::text().or_null()),
        ("node_count", JsonShape::integer()),
        ("role", JsonShape::text()),
        ("is_default", JsonShape::boolean()),
        ("status", JsonShape::text()),
        ("stack_id", JsonShape::null()),
    ])
}

/// The response schema of a node group with all fields.
pub(crate) fn shape() -> JsonShape {
    let texts = || JsonShape::map(JsonShape::text());
    let taint = JsonShape::object([
        ("key", JsonShape::text()),
        ("value", JsonShape::text()),
        ("effect", JsonShape::enumeration(["NoSchedule", "PreferNoSchedule", "NoExecute"])),
    ]);
    let shape = brief().and([
        ("cluster_id", JsonShape::text()),
        ("project_id", JsonShape::text()),
        ("docker_volume_size", JsonShape::integer().or_null()),
        ("min_node_count", JsonShape::integer().or_null()),
        ("max_node_count", JsonShape::integer().or_null()),
        ("labels", texts()),
        ("labels_overridden", texts()),
        ("labels_added", texts()),
        ("labels_skipped", texts()),
        ("status_reason", JsonShape::text().or_null()),
        ("version", JsonShape::text()),
        ("node_addresses", JsonShape::list(JsonShape::text())),
        ("created_at", JsonShape::text()),
        ("updated_at", JsonShape::text().or_null()),
        ("links", JsonShape::links()),
    ]);
    shape.maybe([("node_labels", texts()), ("node_taints", JsonShape::list(taint))])
}

#[derive(Serialize)]
struct Taint<'a> {
    key: &'a str,
    value: &'a str,
    effect: &'static str,
}

fn taint(taint: &NodeTaint) -> Taint<'_> {
    let effect = match taint.effect {
        TaintEffect::NoSchedule => "NoSchedule",
        TaintEffect::PreferNoSchedule => "PreferNoSchedule",
        TaintEffect::NoExecute => "NoExecute",
    };
    Taint { key: &taint.key, value: &taint.value, effect }
}

impl View<'_> {
    /// Writes the fields that a list shows.
    fn brief<M: SerializeMap>(&self, object: &mut M) -> Result<(), M::Error> {
        let group = self.group;
        object.serialize_entry("uuid", &group.id)?;
        object.serialize_entry("name", &group.name)?;
        object.serialize_entry("flavor_id", &group.flavor)?;
        object.serialize_entry("image_id", &group.image)?;
        object.serialize_entry("node_count", &group.node_count())?;
        object.serialize_entry("role", group.role.as_str())?;
        object.serialize_entry("is_default", &group.is_default)?;
        object.serialize_entry("status", status(self.cluster, self.now).as_str())?;
        object.serialize_entry("stack_id", &NULL)
    }
}

impl Serialize for Brief<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(None)?;
        self.view.brief(&mut object)?;
        object.end()
    }
}

impl Serialize for View<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (group, cluster) = (self.group, self.cluster);
        let mut object = serializer.serialize_map(None)?;
        self.brief(&mut object)?;
        object.serialize_entry("cluster_id", &group.cluster)?;
        object.serialize_entry("project_id", &cluster.project)?;
        object.serialize_entry("docker_volume_size", &group.docker_volume_size)?;
        object.serialize_entry("min_node_count", &group.min_node_count)?;
        object.serialize_entry("max_node_count", &group.max_node_count)?;
        object.serialize_entry("labels", group.labels.raw())?;
        object.serialize_entry("labels_overridden", &group.labels_compared.overridden)?;
        object.serialize_entry("labels_added", &group.labels_compared.added)?;
        object.serialize_entry("labels_skipped", &group.labels_compared.skipped)?;
        object.serialize_entry("status_reason", &status_reason(cluster))?;
        object.serialize_entry("version", &cluster.kubernetes.to_string())?;
        let address = |machine| cluster.machine_addresses.get(&machine).map(ToString::to_string);
        object.serialize_entry(
            "node_addresses",
            &group.refs().filter_map(address).collect::<Vec<_>>(),
        )?;
        if self.asked.has(since::NODE_LABELS) {
            object.serialize_entry("node_labels", &group.node_labels)?;
            object.serialize_entry(
                "node_taints",
                &group.node_taints.iter().map(taint).collect::<Vec<_>>(),
            )?;
        }
        object.serialize_entry("created_at", &Time(group.created_at))?;
        object.serialize_entry("updated_at", &Time::some(group.updated_at))?;
        let part = format!("/nodegroups/{}", group.id);
        let links =
            Links { origin: self.origin, collection: "clusters", id: group.cluster, part: &part };
        object.serialize_entry("links", &links)?;
        object.end()
    }
}
