//! The JSON document of a node: every field except `id`, `version`, `updated_at` and `power_state`, which are columns.
//!
//! All other columns repeat fields of the document, so that nodes can be searched and sorted by them.

use std::collections::BTreeSet;

use baremetal_core::{
    AllocationUuid, BootSettingRequest, DrainRequest, Driver, Failure, FirmwareComponent,
    Hypervisor, Interfaces, Maintenance, NetworkChanges, Node, NodeLease, NodeName, NodeUuid,
    PasswordRotation, PowerRequest, RackLocation, State, Work,
};
use hardware::{BootMode, Health, PowerState};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use spans::TraceContext;
use uuid::Uuid;

/// How serde writes and reads a [`Node`] as a document. A missing row does not compile.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Node")]
struct Fields {
    #[serde(skip, default = "NodeUuid::nil")]
    id: NodeUuid,
    #[serde(skip)]
    version: i64,
    created_at: Timestamp,
    #[serde(skip)]
    updated_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<NodeName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    driver: Driver,
    driver_info: Map<String, Value>,
    interfaces: Interfaces,
    properties: Map<String, Value>,
    extra: Map<String, Value>,
    instance_info: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    instance_uuid: Option<Uuid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    instance_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    allocation: Option<AllocationUuid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resource_class: Option<String>,
    traits: BTreeSet<String>,
    conductor_group: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lessee: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lending: Option<NodeLease>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shard: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent_node: Option<NodeUuid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    chassis: Option<Uuid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    automated_clean: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    protected: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retired: Option<String>,
    disable_power_off: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    maintenance: Option<Maintenance>,
    // The disabled console is left out of the document, because most nodes have no console enabled.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    console_enabled: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    place: Option<RackLocation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hypervisor: Option<Hypervisor>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    leaving: Option<DrainRequest>,

    #[serde(with = "state_name")]
    provision_state: State,
    #[serde(default, with = "state_name::optional", skip_serializing_if = "Option::is_none")]
    target_provision_state: Option<State>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    provision_updated_at: Option<Timestamp>,
    #[serde(skip)]
    power_state: Option<PowerState>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    power_request: Option<PowerRequest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    boot_setting_request: Option<BootSettingRequest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    password_rotation: Option<PasswordRotation>,
    #[serde(default, skip_serializing_if = "NetworkChanges::are_done")]
    network_changes: NetworkChanges,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    work: Option<Work>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trace: Option<TraceContext>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failure: Option<Failure>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    boot_mode: Option<BootMode>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    secure_boot: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    health: Option<Health>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    firmware: Vec<FirmwareComponent>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    network_data: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    target_raid_config: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    raid_config: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    inspection_started_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    inspection_finished_at: Option<Timestamp>,
}

pub(super) fn write(node: &Node) -> Result<String, serde_json::Error> {
    #[derive(Serialize)]
    struct Document<'a>(#[serde(with = "Fields")] &'a Node);
    serde_json::to_string(&Document(node))
}

/// The part of a stored document that this program knows.
pub(super) fn known(stored: &str) -> Result<Value, serde_json::Error> {
    let Document(node) = serde_json::from_str(stored)?;
    serde_json::from_str(&write(&node)?)
}

/// The node in a document, without the fields that only columns hold.
#[derive(Deserialize)]
pub(super) struct Document(#[serde(with = "Fields")] pub(super) Node);

/// A provision state, stored as its name.
mod state_name {
    use std::borrow::Cow;

    use baremetal_core::State;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    pub(super) fn serialize<S: Serializer>(state: &State, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(state.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<State, D::Error> {
        Cow::<'de, str>::deserialize(from)?.parse().map_err(D::Error::custom)
    }

    pub(super) mod optional {
        use super::{Deserialize, Deserializer, Error, Serializer, State};

        #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
        pub(in super::super) fn serialize<S: Serializer>(
            state: &Option<State>,
            to: S,
        ) -> Result<S::Ok, S::Error> {
            match state {
                Some(state) => to.serialize_str(state.as_str()),
                None => to.serialize_none(),
            }
        }

        pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
            from: D,
        ) -> Result<Option<State>, D::Error> {
            let word = Option::<String>::deserialize(from)?;
            word.map(|word| word.parse()).transpose().map_err(D::Error::custom)
        }
    }
}
