//! The notifications about ports, allocations and the resources that are stored as one document.

use cloud_event::{EventLevel, Notification};
use serde_json::{Map, Value, json};

use super::{PayloadVersion, fields, maybe_time, time, versioned};
use crate::{
    Allocation, Chassis, Content, DeployTemplate, InspectionRule, Port, PortGroup, Runbook, Stored,
    VolumeConnector, VolumeTarget,
};

/// A change of a record, by the words of Ironic's notifications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordChange {
    Create,
    Update,
    Delete,
}

impl RecordChange {
    const fn as_str(self) -> &'static str {
        match self {
            RecordChange::Create => "create",
            RecordChange::Update => "update",
            RecordChange::Delete => "delete",
        }
    }
}

/// A resource whose changes are notified.
pub trait Notified: Content {
    /// The object in the type of the event: `chassis`.
    const OBJECT: &'static str;
    const PAYLOAD: PayloadVersion;

    /// The fields of the payload, without the id and the times.
    fn payload(&self) -> Value;
}

/// Returns the notification about a resource.
pub fn resource_notification<C: Notified>(change: RecordChange, it: &Stored<C>) -> Notification {
    let mut data = fields(it.content.payload());
    data.insert("uuid".to_owned(), it.id.to_string().into());
    data.insert("created_at".to_owned(), time(it.created_at));
    data.insert("updated_at".to_owned(), maybe_time(it.updated_at));
    ended(C::OBJECT, change, it.id.to_string(), C::PAYLOAD, data)
}

/// Returns the notification about a port; none if an update changed nothing that the payload shows.
pub fn port_notification(before: Option<&Port>, after: Option<&Port>) -> Option<Notification> {
    const PAYLOAD: PayloadVersion = PayloadVersion { name: "PortCRUDPayload", version: "1.8" };
    let (change, port) = match (before, after) {
        (None, Some(new)) => (RecordChange::Create, new),
        (Some(gone), None) => (RecordChange::Delete, gone),
        (Some(before), Some(after)) if port_fields(before) != port_fields(after) => {
            (RecordChange::Update, after)
        }
        (Some(_), Some(_)) | (None, None) => return None,
    };
    let mut data = port_fields(port);
    data.insert("updated_at".to_owned(), maybe_time(port.updated_at));
    Some(ended("port", change, port.id.to_string(), PAYLOAD, data))
}

fn port_fields(port: &Port) -> Map<String, Value> {
    fields(json!({
        "uuid": port.id.to_string(),
        "node_uuid": port.node.to_string(),
        "portgroup_uuid": port.portgroup,
        "address": port.address.to_string(),
        "name": port.name,
        "description": port.description,
        "pxe_enabled": port.pxe_enabled,
        "physical_network": port.physical_network,
        "local_link_connection": port.local_link_connection,
        "is_smartnic": port.is_smartnic,
        "available_for_dynamic_portgroup": port.available_for_dynamic_portgroup,
        "vendor": port.vendor,
        "category": port.category,
        "extra": port.extra,
        "created_at": time(port.created_at),
    }))
}

/// Returns the notification about an allocation.
pub fn allocation_notification(change: RecordChange, it: &Allocation) -> Notification {
    const PAYLOAD: PayloadVersion =
        PayloadVersion { name: "AllocationCRUDPayload", version: "1.1" };
    let candidates: Vec<String> = it.candidate_nodes.iter().map(ToString::to_string).collect();
    let data = fields(json!({
        "uuid": it.id.to_string(),
        "name": it.name.as_ref().map(|name| name.as_str()),
        "node_uuid": it.node.map(|node| node.to_string()),
        "state": it.state.as_str(),
        "last_error": it.last_error,
        "owner": it.owner,
        "resource_class": it.resource_class,
        "traits": it.traits,
        "candidate_nodes": candidates,
        "extra": it.extra,
        "created_at": time(it.created_at),
        "updated_at": maybe_time(it.updated_at),
    }));
    ended("allocation", change, it.id.to_string(), PAYLOAD, data)
}

fn ended(
    object: &str,
    change: RecordChange,
    id: String,
    payload: PayloadVersion,
    data: Map<String, Value>,
) -> Notification {
    let kind = format!("baremetal.{object}.{}.end", change.as_str());
    versioned(kind, EventLevel::Info, id, payload, data)
}

impl Notified for Chassis {
    const OBJECT: &'static str = "chassis";
    const PAYLOAD: PayloadVersion = PayloadVersion { name: "ChassisCRUDPayload", version: "1.0" };

    fn payload(&self) -> Value {
        json!({"description": self.description, "extra": self.extra})
    }
}

impl Notified for PortGroup {
    const OBJECT: &'static str = "portgroup";
    const PAYLOAD: PayloadVersion = PayloadVersion { name: "PortgroupCRUDPayload", version: "1.3" };

    fn payload(&self) -> Value {
        json!({
            "node_uuid": self.node.to_string(),
            "address": self.address.map(|address| address.to_string()),
            "category": self.category,
            "extra": self.extra,
            "mode": self.mode,
            "name": self.name,
            "properties": self.properties,
            "physical_network": self.physical_network,
            "standalone_ports_supported": self.standalone_ports,
            "dynamic_portgroup": false,
        })
    }
}

impl Notified for VolumeConnector {
    const OBJECT: &'static str = "volumeconnector";
    const PAYLOAD: PayloadVersion =
        PayloadVersion { name: "VolumeConnectorCRUDPayload", version: "1.0" };

    fn payload(&self) -> Value {
        json!({
            "node_uuid": self.node.to_string(),
            "type": self.kind,
            "connector_id": self.connector_id,
            "extra": self.extra,
        })
    }
}

impl Notified for VolumeTarget {
    const OBJECT: &'static str = "volumetarget";
    const PAYLOAD: PayloadVersion =
        PayloadVersion { name: "VolumeTargetCRUDPayload", version: "1.0" };

    fn payload(&self) -> Value {
        json!({
            "node_uuid": self.node.to_string(),
            "boot_index": self.boot_index,
            "volume_id": self.volume_id,
            "volume_type": self.volume_type,
            "properties": self.properties,
            "extra": self.extra,
        })
    }
}

impl Notified for DeployTemplate {
    const OBJECT: &'static str = "deploytemplate";
    const PAYLOAD: PayloadVersion =
        PayloadVersion { name: "DeployTemplateCRUDPayload", version: "1.0" };

    fn payload(&self) -> Value {
        json!({"name": self.name, "steps": self.steps, "extra": self.extra})
    }
}

impl Notified for Runbook {
    const OBJECT: &'static str = "runbook";
    const PAYLOAD: PayloadVersion = PayloadVersion { name: "RunbookCRUDPayload", version: "1.1" };

    fn payload(&self) -> Value {
        json!({
            "name": self.name,
            "description": self.description,
            "disable_ramdisk": self.disable_ramdisk,
            "owner": self.owner,
            "public": self.is_public,
            "steps": self.steps,
            "traits": self.traits,
            "extra": self.extra,
        })
    }
}

impl Notified for InspectionRule {
    const OBJECT: &'static str = "inspectionrule";
    const PAYLOAD: PayloadVersion =
        PayloadVersion { name: "InspectionRuleCRUDPayload", version: "1.0" };

    /// A sensitive rule shows neither conditions nor actions, as in the API.
    fn payload(&self) -> Value {
        let (conditions, actions) = match self.sensitive {
            true => (json!([]), json!([])),
            false => (json!(self.conditions), json!(self.actions)),
        };
        json!({
            "description": self.description,
            "phase": "main",
            "priority": self.priority,
            "scope": null,
            "sensitive": self.sensitive,
            "conditions": conditions,
            "actions": actions,
        })
    }
}
