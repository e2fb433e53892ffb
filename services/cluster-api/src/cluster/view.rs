//! A cluster in a response.

use std::collections::BTreeMap;

use cluster_core::{Cluster, GroupRole, NodeGroup, health, status, status_reason};
use jiff::Timestamp;
use openstack_api::{JsonShape, Links, Microversion, Origin, Time};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::microversion as since;

/// A cluster with all fields.
pub(crate) struct View<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) groups: &'a [NodeGroup],
    pub(crate) origin: &'a Origin,
    pub(crate) asked: Microversion,
    pub(crate) now: Timestamp,
}

/// A cluster with its main fields, in a list.
pub(crate) struct Brief<'a> {
    pub(crate) view: View<'a>,
}

const NULL: Option<()> = None;

/// The response schema of a cluster in a list.
pub(crate) fn brief() -> JsonShape {
    let maybe = || JsonShape::text().or_null();
    let shape = JsonShape::object([
        ("uuid", JsonShape::text()),
        ("name", JsonShape::text()),
        ("cluster_template_id", JsonShape::text()),
        ("keypair", maybe()),
        ("docker_volume_size", JsonShape::integer().or_null()),
        ("labels", JsonShape::map(JsonShape::text())),
        ("node_count", JsonShape::integer()),
        ("master_count", JsonShape::integer()),
        ("flavor_id", maybe()),
        ("master_flavor_id", maybe()),
        ("create_timeout", JsonShape::integer()),
        ("status", JsonShape::text()),
        ("health_status", JsonShape::text()),
        ("stack_id", JsonShape::null()),
        ("links", JsonShape::links()),
    ]);
    shape.maybe([("cluster_id", JsonShape::text())])
}

/// The response schema of a cluster with all fields.
pub(crate) fn shape() -> JsonShape {
    let maybe = || JsonShape::text().or_null();
    let texts = || JsonShape::map(JsonShape::text());
    let shape = brief().and([
        ("status_reason", maybe()),
        ("health_status_reason", texts()),
        ("api_address", maybe()),
        ("coe_version", JsonShape::text()),
        ("container_version", JsonShape::null()),
        ("discovery_url", JsonShape::null()),
        ("node_addresses", JsonShape::list(JsonShape::text())),
        ("master_addresses", JsonShape::list(JsonShape::text())),
        ("faults", texts()),
        ("labels_overridden", texts()),
        ("labels_added", texts()),
        ("labels_skipped", texts()),
    ]);
    shape.and([
        ("fixed_network", maybe()),
        ("fixed_subnet", maybe()),
        ("floating_ip_enabled", JsonShape::boolean()),
        ("master_lb_enabled", JsonShape::boolean()),
        ("project_id", JsonShape::text()),
        ("user_id", JsonShape::text()),
        ("created_at", JsonShape::text()),
        ("updated_at", maybe()),
    ])
}

impl View<'_> {
    /// The number of members in the node groups of a role.
    fn count(&self, masters: bool) -> u32 {
        let of_role =
            self.groups.iter().filter(|group| (group.role == GroupRole::Master) == masters);
        of_role.map(NodeGroup::node_count).sum()
    }

    /// The addresses of the members of a role, as far as the conductor knows them.
    fn addresses(&self, masters: bool) -> Vec<String> {
        let of_role =
            self.groups.iter().filter(|group| (group.role == GroupRole::Master) == masters);
        let machines = of_role.flat_map(NodeGroup::refs);
        let address =
            |machine| self.cluster.machine_addresses.get(&machine).map(ToString::to_string);
        machines.filter_map(address).collect()
    }

    /// Writes the fields that a list shows.
    fn brief<M: SerializeMap>(&self, object: &mut M) -> Result<(), M::Error> {
        let Cluster { id, name, template, blueprint, create_timeout, .. } = self.cluster;
        object.serialize_entry("uuid", id)?;
        object.serialize_entry("name", name)?;
        object.serialize_entry("cluster_template_id", template)?;
        object.serialize_entry("keypair", &blueprint.keypair)?;
        object.serialize_entry("docker_volume_size", &blueprint.docker_volume_size)?;
        object.serialize_entry("labels", blueprint.labels.raw())?;
        object.serialize_entry("node_count", &self.count(false))?;
        object.serialize_entry("master_count", &self.count(true))?;
        object.serialize_entry("flavor_id", &blueprint.flavor)?;
        object.serialize_entry("master_flavor_id", &blueprint.master_flavor)?;
        object.serialize_entry("create_timeout", &create_timeout.unwrap_or(0))?;
        object.serialize_entry("status", status(self.cluster, self.now).as_str())?;
        object.serialize_entry("health_status", health(self.cluster).as_str())?;
        object.serialize_entry("stack_id", &NULL)?;
        if self.asked.has(since::CLUSTER_ID) {
            object.serialize_entry("cluster_id", id)?;
        }
        let links = Links { origin: self.origin, collection: "clusters", id: *id, part: "" };
        object.serialize_entry("links", &links)
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
        let cluster = self.cluster;
        let blueprint = &cluster.blueprint;
        let mut object = serializer.serialize_map(None)?;
        self.brief(&mut object)?;
        object.serialize_entry("status_reason", &status_reason(cluster))?;
        let said =
            cluster.conditions.iter().map(|it| (it.kind.as_str(), format!("{:?}", it.status)));
        object.serialize_entry("health_status_reason", &said.collect::<BTreeMap<_, _>>())?;
        object.serialize_entry("api_address", &cluster.api_address)?;
        object.serialize_entry("coe_version", &cluster.kubernetes.to_string())?;
        object.serialize_entry("container_version", &NULL)?;
        object.serialize_entry("discovery_url", &NULL)?;
        object.serialize_entry("node_addresses", &self.addresses(false))?;
        object.serialize_entry("master_addresses", &self.addresses(true))?;
        let faults: BTreeMap<&str, &str> = cluster
            .conditions
            .iter()
            .filter(|it| it.is_final)
            .map(|it| (it.kind.as_str(), it.message.as_str()))
            .collect();
        object.serialize_entry("faults", &faults)?;
        object.serialize_entry("labels_overridden", &cluster.labels_compared.overridden)?;
        object.serialize_entry("labels_added", &cluster.labels_compared.added)?;
        object.serialize_entry("labels_skipped", &cluster.labels_compared.skipped)?;
        object.serialize_entry("fixed_network", &blueprint.fixed_network)?;
        object.serialize_entry("fixed_subnet", &blueprint.fixed_subnet)?;
        object.serialize_entry("floating_ip_enabled", &blueprint.floating_ip_enabled)?;
        object.serialize_entry("master_lb_enabled", &blueprint.master_lb_enabled)?;
        object.serialize_entry("project_id", &cluster.project)?;
        object.serialize_entry("user_id", &cluster.user)?;
        object.serialize_entry("created_at", &Time(cluster.created_at))?;
        object.serialize_entry("updated_at", &Time::some(cluster.updated_at))?;
        object.end()
    }
}
