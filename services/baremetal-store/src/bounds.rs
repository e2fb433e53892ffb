//! How large the documents may be that callers store: which fields of each record count, and where the bound is checked.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroUsize};

use baremetal_core::{Allocation, Node, NodeIdent, Order, Port, Profile};
use database::{Bound, Sizes, StoreError};
use serde_json::{Map, Value};

use crate::Store;

/// The key of `instance_info` that is counted for itself.
const DRIVE: &str = "configdrive";
/// A config drive may be so many times as large as any other document: it holds what a machine is told at its first boot.
const DOCUMENTS_A_DRIVE: usize = 16;

impl Store {
    /// The same store for what callers write: no document of theirs grows beyond `bytes` of JSON, and a config drive not beyond 16 times
    /// as many; a project has `allocations_each` at most. What the service itself writes of a record, such as its work, is not counted.
    pub fn for_callers(mut self, bytes: NonZeroUsize, allocations_each: NonZeroU32) -> Store {
        self.bound = Bound::of(bytes);
        self.allocations_each = Some(allocations_each);
        self
    }

    pub(crate) async fn admit_node(&self, node: &Node) -> Result<(), StoreError> {
        let stored = async || self.find_node(&NodeIdent::Id(node.id)).await;
        let small = async || Ok(stored().await?.as_ref().map(of_node));
        self.bound.admit(|| of_node(node), small).await?;
        let drive = |node: &Node| of_drive(&node.instance_info);
        let stored_drive = async || Ok(stored().await?.as_ref().map(drive));
        self.bound.times(DOCUMENTS_A_DRIVE).admit(|| drive(node), stored_drive).await
    }

    pub(crate) async fn admit_order(&self, order: &Order) -> Result<(), StoreError> {
        let info = &order.instance_info;
        let small = || Sizes::default().and("instance_info", &without_drive(info));
        self.bound.admit(small, nothing).await?;
        self.bound.times(DOCUMENTS_A_DRIVE).admit(|| of_drive(info), nothing).await
    }

    pub(crate) async fn admit_port(&self, port: &Port) -> Result<(), StoreError> {
        let stored = async || Ok(self.find_port(port.id).await?.as_ref().map(of_port));
        self.bound.admit(|| of_port(port), stored).await
    }

    pub(crate) async fn admit_allocation(&self, it: &Allocation) -> Result<(), StoreError> {
        let stored = async || Ok(self.find_allocation(it.id).await?.as_ref().map(of_allocation));
        self.bound.admit(|| of_allocation(it), stored).await
    }

    pub(crate) async fn admit_rack(&self, name: &str, rack: &Value) -> Result<(), StoreError> {
        let found = async || self.find_rack(name).await;
        let small = async || Ok(found().await?.map(|(rack, _)| of_rack(&rack)));
        self.bound.admit(|| of_rack(rack), small).await?;
        let drive = |rack: &Value| goal(rack).map(of_drive).unwrap_or_default();
        let stored_drive = async || Ok(found().await?.map(|(rack, _)| drive(&rack)));
        self.bound.times(DOCUMENTS_A_DRIVE).admit(|| drive(rack), stored_drive).await
    }

    pub(crate) async fn admit_profile(&self, it: &Profile) -> Result<(), StoreError> {
        let stored = async || {
            let found = self.find_profile(it.name.as_str()).await?;
            Ok(found.map(|row| of_profile(&row.profile)))
        };
        self.bound.admit(|| of_profile(it), stored).await
    }
}

/// There is no such document yet.
async fn nothing() -> Result<Option<Sizes>, StoreError> {
    Ok(None)
}

fn of_node(node: &Node) -> Sizes {
    Sizes::default()
        .and("driver_info", &node.driver_info)
        .and("instance_info", &without_drive(&node.instance_info))
        .and("properties", &node.properties)
        .and("extra", &node.extra)
        .and("description", &node.description)
        .and("traits", &node.traits)
}

fn of_drive(instance_info: &Map<String, Value>) -> Sizes {
    Sizes::default().and("instance_info/configdrive", &instance_info.get(DRIVE))
}

fn of_port(port: &Port) -> Sizes {
    Sizes::default()
        .and("local_link_connection", &port.local_link_connection)
        .and("extra", &port.extra)
        .and("description", &port.description)
}

fn of_allocation(allocation: &Allocation) -> Sizes {
    Sizes::default()
        .and("candidate_nodes", &allocation.candidate_nodes)
        .and("traits", &allocation.traits)
        .and("extra", &allocation.extra)
}

fn of_rack(rack: &Value) -> Sizes {
    let info = goal(rack).map(without_drive);
    Sizes::default().and("description", &rack["description"]).and("instance_info", &info)
}

fn of_profile(profile: &Profile) -> Sizes {
    Sizes::default()
        .and("description", &profile.description)
        .and("instance_info", &profile.instance_info)
        .and("settings", &profile.settings)
        .and("placement", &profile.placement)
}

/// The `instance_info` of a rack's goal.
fn goal(rack: &Value) -> Option<&Map<String, Value>> {
    rack.get("goal")?.get("instance_info")?.as_object()
}

fn without_drive(info: &Map<String, Value>) -> BTreeMap<&String, &Value> {
    info.iter().filter(|(key, _)| *key != DRIVE).collect()
}
