//! The JSON document of a node: every field except `id`, `version`, `updated_at` and `power_state`, which are columns.
//!
//! All other columns repeat fields of the document, so that nodes can be searched and sorted by them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use baremetal_core::{
    AllocationUuid, DrainRequest, Driver, Failure, Hypervisor, Interface, Maintenance, Node,
    NodeLease, NodeName, NodeUuid, PowerRequest, RackLocation, State, Work,
};
use hardware::BootMode;
use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Value};
use uuid::Uuid;

/// The document, which borrows from the node when written and owns its values when read.
#[derive(Serialize, Deserialize)]
pub(super) struct Document<'a> {
    created_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<Cow<'a, NodeName>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<Cow<'a, str>>,
    driver: Driver,
    driver_info: Cow<'a, Map<String, Value>>,
    interfaces: Cow<'a, BTreeMap<Interface, String>>,
    properties: Cow<'a, Map<String, Value>>,
    extra: Cow<'a, Map<String, Value>>,
    instance_info: Cow<'a, Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instance_uuid: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instance_name: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    allocation: Option<AllocationUuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_class: Option<Cow<'a, str>>,
    traits: Cow<'a, BTreeSet<String>>,
    conductor_group: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lessee: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lending: Option<Cow<'a, NodeLease>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shard: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_node: Option<NodeUuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chassis: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    automated_clean: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    protected: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retired: Option<Cow<'a, str>>,
    disable_power_off: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    maintenance: Option<Cow<'a, Maintenance>>,
    #[serde(default, skip_serializing_if = "is_off")]
    console_enabled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<Cow<'a, RackLocation>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hypervisor: Option<Cow<'a, Hypervisor>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    leaving: Option<Cow<'a, DrainRequest>>,

    provision_state: StateName,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_provision_state: Option<StateName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provision_updated_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    power_request: Option<Cow<'a, PowerRequest>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    work: Option<Cow<'a, Work>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<Cow<'a, Failure>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    boot_mode: Option<BootMode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inspection_started_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inspection_finished_at: Option<Timestamp>,
}

/// The disabled console is left out of the document, because most nodes have no console enabled.
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls skip_serializing_if with a reference"
)]
fn is_off(enabled: &bool) -> bool {
    !enabled
}

/// A provision state, stored as its name.
struct StateName(State);

impl Serialize for StateName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.as_str())
    }
}

impl<'de> Deserialize<'de> for StateName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = Cow::<'de, str>::deserialize(deserializer)?;
        word.parse().map(StateName).map_err(de::Error::custom)
    }
}

impl<'a> Document<'a> {
    pub(super) fn of(node: &'a Node) -> Document<'a> {
        let text = |text: &'a Option<String>| text.as_deref().map(Cow::Borrowed);
        Document {
            created_at: node.created_at,
            name: node.name.as_ref().map(Cow::Borrowed),
            description: text(&node.description),
            driver: node.driver,
            driver_info: Cow::Borrowed(&node.driver_info),
            interfaces: Cow::Borrowed(&node.interfaces),
            properties: Cow::Borrowed(&node.properties),
            extra: Cow::Borrowed(&node.extra),
            instance_info: Cow::Borrowed(&node.instance_info),
            instance_uuid: node.instance_uuid,
            instance_name: text(&node.instance_name),
            allocation: node.allocation,
            resource_class: text(&node.resource_class),
            traits: Cow::Borrowed(&node.traits),
            conductor_group: Cow::Borrowed(&node.conductor_group),
            owner: text(&node.owner),
            lessee: text(&node.lessee),
            lending: node.lending.as_ref().map(Cow::Borrowed),
            shard: text(&node.shard),
            parent_node: node.parent_node,
            chassis: node.chassis,
            automated_clean: node.automated_clean,
            protected: text(&node.protected),
            retired: text(&node.retired),
            disable_power_off: node.disable_power_off,
            maintenance: node.maintenance.as_ref().map(Cow::Borrowed),
            console_enabled: node.console_enabled,
            place: node.place.as_ref().map(Cow::Borrowed),
            hypervisor: node.hypervisor.as_ref().map(Cow::Borrowed),
            leaving: node.leaving.as_ref().map(Cow::Borrowed),
            provision_state: StateName(node.provision_state),
            target_provision_state: node.target_provision_state.map(StateName),
            provision_updated_at: node.provision_updated_at,
            power_request: node.power_request.as_ref().map(Cow::Borrowed),
            work: node.work.as_ref().map(Cow::Borrowed),
            failure: node.failure.as_ref().map(Cow::Borrowed),
            boot_mode: node.boot_mode,
            inspection_started_at: node.inspection_started_at,
            inspection_finished_at: node.inspection_finished_at,
        }
    }

    /// Returns the node with all fields except those that only columns hold.
    pub(super) fn into_node(self, id: NodeUuid) -> Node {
        let text = |text: Option<Cow<'_, str>>| text.map(Cow::into_owned);
        Node {
            id,
            version: 0,
            created_at: self.created_at,
            updated_at: None,
            name: self.name.map(Cow::into_owned),
            description: text(self.description),
            driver: self.driver,
            driver_info: self.driver_info.into_owned(),
            interfaces: self.interfaces.into_owned(),
            properties: self.properties.into_owned(),
            extra: self.extra.into_owned(),
            instance_info: self.instance_info.into_owned(),
            instance_uuid: self.instance_uuid,
            instance_name: text(self.instance_name),
            allocation: self.allocation,
            resource_class: text(self.resource_class),
            traits: self.traits.into_owned(),
            conductor_group: self.conductor_group.into_owned(),
            owner: text(self.owner),
            lessee: text(self.lessee),
            lending: self.lending.map(Cow::into_owned),
            shard: text(self.shard),
            parent_node: self.parent_node,
            chassis: self.chassis,
            automated_clean: self.automated_clean,
            protected: text(self.protected),
            retired: text(self.retired),
            disable_power_off: self.disable_power_off,
            maintenance: self.maintenance.map(Cow::into_owned),
            console_enabled: self.console_enabled,
            place: self.place.map(Cow::into_owned),
            hypervisor: self.hypervisor.map(Cow::into_owned),
            leaving: self.leaving.map(Cow::into_owned),
            provision_state: self.provision_state.0,
            target_provision_state: self.target_provision_state.map(|StateName(state)| state),
            provision_updated_at: self.provision_updated_at,
            power_state: None,
            power_request: self.power_request.map(Cow::into_owned),
            work: self.work.map(Cow::into_owned),
            failure: self.failure.map(Cow::into_owned),
            boot_mode: self.boot_mode,
            inspection_started_at: self.inspection_started_at,
            inspection_finished_at: self.inspection_finished_at,
        }
    }
}
