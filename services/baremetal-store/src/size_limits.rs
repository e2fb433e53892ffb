//! Size limits of the documents that callers store: which fields of each record count, and where the limit is checked.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroUsize};

use baremetal_core::{Allocation, Node, NodeIdent, Port, Profile, ReservationRequest, WantedSteps};
use database::{FieldSizes, Result, SizeLimit};
use serde_json::{Map, Value};

use crate::Store;

/// The key of `instance_info` whose value is measured separately.
const DRIVE: &str = "configdrive";
/// The limit of a config drive as a multiple of the limit of other documents, because a config drive holds everything that a machine reads
/// at its first boot.
const DRIVE_FACTOR: usize = 16;

impl Store {
    /// Returns the same store with limits for what callers write: no document grows beyond `bytes` of JSON, no config drive beyond 16 times
    /// as many, and no project has more than `allocations_each` allocations. Fields that only the service writes, such as the tasks of
    /// its work, are not measured.
    pub fn for_callers(mut self, bytes: NonZeroUsize, allocations_each: NonZeroU32) -> Store {
        self.bound = SizeLimit::of(bytes);
        self.allocations_each = Some(allocations_each);
        self
    }

    pub(crate) async fn admit_node(&self, node: &Node) -> Result<()> {
        let stored = async || self.find_node(&NodeIdent::Id(node.id)).await;
        let small = async || Ok(stored().await?.as_ref().map(of_node));
        self.bound.admit(|| of_node(node), small).await?;
        let drive = |node: &Node| of_drive(&node.instance_info);
        let stored_drive = async || Ok(stored().await?.as_ref().map(drive));
        self.bound.times(DRIVE_FACTOR).admit(|| drive(node), stored_drive).await
    }

    pub(crate) async fn admit_order(&self, order: &ReservationRequest) -> Result<()> {
        let info = &order.instance_info;
        let small = || FieldSizes::default().and("instance_info", &without_drive(info));
        self.bound.admit(small, nothing).await?;
        self.bound.times(DRIVE_FACTOR).admit(|| of_drive(info), nothing).await
    }

    pub(crate) async fn admit_port(&self, port: &Port) -> Result<()> {
        let stored = async || Ok(self.find_port(port.id).await?.as_ref().map(of_port));
        self.bound.admit(|| of_port(port), stored).await
    }

    pub(crate) async fn admit_allocation(&self, it: &Allocation) -> Result<()> {
        let stored = async || Ok(self.find_allocation(it.id).await?.as_ref().map(of_allocation));
        self.bound.admit(|| of_allocation(it), stored).await
    }

    pub(crate) async fn admit_rack(&self, name: &str, rack: &Value) -> Result<()> {
        let found = async || self.find_rack(name).await;
        let small = async || Ok(found().await?.map(|(rack, _)| of_rack(&rack)));
        self.bound.admit(|| of_rack(rack), small).await?;
        let drive = |rack: &Value| goal(rack).map(of_drive).unwrap_or_default();
        let stored_drive = async || Ok(found().await?.map(|(rack, _)| drive(&rack)));
        self.bound.times(DRIVE_FACTOR).admit(|| drive(rack), stored_drive).await
    }

    pub(crate) async fn admit_profile(&self, it: &Profile) -> Result<()> {
        let stored = async || {
            let found = self.find_profile(it.name.as_str()).await?;
            Ok(found.map(|row| of_profile(&row.profile)))
        };
        self.bound.admit(|| of_profile(it), stored).await
    }
}

/// The stored sizes of a document that does not exist yet.
async fn nothing() -> Result<Option<FieldSizes>> {
    Ok(None)
}

fn of_node(node: &Node) -> FieldSizes {
    let sizes = FieldSizes::default()
        .and("driver_info", &node.driver_info)
        .and("instance_info", &without_drive(&node.instance_info))
        .and("properties", &node.properties)
        .and("extra", &node.extra)
        .and("description", &node.description)
        .and("traits", &node.traits)
        .and("maintenance_reason", &node.maintenance.as_ref().map(|it| &it.reason));
    let filled =
        [("network_data", &node.network_data), ("target_raid_config", &node.target_raid_config)];
    let filled = filled.into_iter().filter(|(_, document)| !document.is_empty());
    let sizes = filled.fold(sizes, |sizes, (name, document)| sizes.and(name, document));
    let waiting = node.leaving.as_ref().and_then(|leaving| leaving.steps.as_ref());
    match node.work.as_ref().map(|work| &work.steps).or(waiting) {
        Some(WantedSteps::Requested(steps)) => sizes.and("clean_steps", steps),
        Some(WantedSteps::Service(steps)) => sizes.and("service_steps", steps),
        Some(WantedSteps::Deployment(steps)) if !steps.is_empty() => {
            sizes.and("deploy_steps", steps)
        }
        Some(WantedSteps::Deployment(_) | WantedSteps::Automated { .. }) | None => sizes,
    }
}

fn of_drive(instance_info: &Map<String, Value>) -> FieldSizes {
    FieldSizes::default().and("instance_info/configdrive", &instance_info.get(DRIVE))
}

fn of_port(port: &Port) -> FieldSizes {
    FieldSizes::default()
        .and("local_link_connection", &port.local_link_connection)
        .and("extra", &port.extra)
        .and("description", &port.description)
}

fn of_allocation(allocation: &Allocation) -> FieldSizes {
    FieldSizes::default()
        .and("candidate_nodes", &allocation.candidate_nodes)
        .and("traits", &allocation.traits)
        .and("extra", &allocation.extra)
}

fn of_rack(rack: &Value) -> FieldSizes {
    let info = goal(rack).map(without_drive);
    FieldSizes::default().and("description", &rack["description"]).and("instance_info", &info)
}

fn of_profile(profile: &Profile) -> FieldSizes {
    FieldSizes::default()
        .and("description", &profile.description)
        .and("instance_info", &profile.instance_info)
        .and("settings", &profile.settings)
        .and("placement", &profile.placement)
}

/// Returns the `instance_info` of a rack's goal.
fn goal(rack: &Value) -> Option<&Map<String, Value>> {
    rack.get("goal")?.get("instance_info")?.as_object()
}

fn without_drive(info: &Map<String, Value>) -> BTreeMap<&String, &Value> {
    info.iter().filter(|(key, _)| *key != DRIVE).collect()
}
