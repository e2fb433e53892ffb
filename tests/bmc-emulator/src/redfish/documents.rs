//! The document of each resource, made anew for each request.

mod chassis;
mod inventory;
mod manager;
mod service;
mod system;

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Map, Value, json};

use crate::profile::{IfMatch, Part};
use crate::redfish::RedfishFace;
use crate::redfish::resource::{FIRMWARE, Resource};
use crate::sensors::SENSORS;

pub(crate) use service::METADATA;

impl RedfishFace {
    /// The document of `resource`. `None` if the resource is gone or is an action.
    pub(crate) fn document(&self, resource: &Resource) -> Option<Value> {
        let mut document = match *resource {
            Resource::Versions => return Some(json!({"v1": "/redfish/v1/"})),
            Resource::Root => self.root(),
            Resource::OData => return Some(self.odata()),
            Resource::SessionService => self.session_service(),
            Resource::Sessions => {
                let ids: Vec<u32> = self.sessions().ids().collect();
                self.collection(
                    resource,
                    "SessionCollection",
                    ids.into_iter().map(Resource::Session),
                )
            }
            Resource::Session(id) => self.session(id)?,
            Resource::AccountService => self.account_service(),
            Resource::Accounts => {
                self.collection(resource, "ManagerAccountCollection", [Resource::Account])
            }
            Resource::Account => self.account(),
            Resource::Roles => self.collection(resource, "RoleCollection", [Resource::Role]),
            Resource::Role => self.role(),
            Resource::Systems => {
                self.collection(resource, "ComputerSystemCollection", [Resource::System])
            }
            Resource::System => self.system(),
            Resource::SystemSettings => self.system_settings(),
            Resource::ResetActionInfo => self.reset_action_info(),
            Resource::Processors => self.collection(
                resource,
                "ProcessorCollection",
                (0..self.processor_count()).map(Resource::Processor),
            ),
            Resource::Processor(index) => self.processor(index),
            Resource::Dimms => self.collection(
                resource,
                "MemoryCollection",
                (0..self.dimm_count()).map(Resource::Dimm),
            ),
            Resource::Dimm(index) => self.dimm(index),
            Resource::StorageUnits => {
                self.collection(resource, "StorageCollection", [Resource::Storage])
            }
            Resource::Storage => self.storage(),
            Resource::Drive(index) => self.drive(index)?,
            Resource::Volumes => self.collection(resource, "VolumeCollection", []),
            Resource::Nics => {
                let nics = (0..self.machine.spec().nics.len()).map(Resource::Nic);
                self.collection(resource, "EthernetInterfaceCollection", nics)
            }
            Resource::Nic(index) => self.nic(index)?,
            Resource::Managers => {
                self.collection(resource, "ManagerCollection", [Resource::Manager])
            }
            Resource::Manager => self.manager(),
            Resource::ManagerNics => {
                self.collection(resource, "EthernetInterfaceCollection", [Resource::ManagerNic])
            }
            Resource::ManagerNic => self.manager_nic(),
            Resource::MediaDrives => {
                let drives = self.profile.media.as_ref().map_or(0, |media| media.drives.len());
                self.collection(
                    resource,
                    "VirtualMediaCollection",
                    (0..drives).map(Resource::MediaDrive),
                )
            }
            Resource::MediaDrive(index) => self.media_drive(index)?,
            Resource::Logs => self.collection(resource, "LogServiceCollection", [Resource::Log]),
            Resource::Log => self.log_service(),
            Resource::LogEntries => self.log_entries(),
            Resource::LogEntry(id) => self.log_entry(id)?,
            Resource::AllChassis => {
                self.collection(resource, "ChassisCollection", [Resource::Chassis])
            }
            Resource::Chassis => self.chassis(),
            Resource::Thermal => self.thermal(),
            Resource::Power => self.power(),
            Resource::Sensors => self.collection(
                resource,
                "SensorCollection",
                (0..SENSORS.len()).map(Resource::Sensor),
            ),
            Resource::Sensor(index) => self.sensor(index)?,
            Resource::UpdateService => self.update_service(),
            Resource::FirmwareInventory => {
                let items = (0..FIRMWARE.len()).map(Resource::Firmware);
                self.collection(resource, "SoftwareInventoryCollection", items)
            }
            Resource::Firmware(index) => self.firmware(index)?,
            Resource::TaskService => self.task_service(),
            Resource::Tasks => {
                let ids: Vec<u32> = self.tasks().ids().collect();
                self.collection(resource, "TaskCollection", ids.into_iter().map(Resource::Task))
            }
            Resource::Task(id) => self.task(id)?,
            Resource::Metadata
            | Resource::TaskMonitor(_)
            | Resource::Reset
            | Resource::InsertMedia(_)
            | Resource::EjectMedia(_)
            | Resource::ClearLog => return None,
        };
        document["@odata.id"] = json!(resource.path(self.profile));
        if let Some(tag) = self.entity_tag(resource, &document) {
            document["@odata.etag"] = json!(tag);
        }
        Some(document)
    }

    /// The entity tag of a document that can be changed. `None` if the profile has no tags (DSP0266 §6.5).
    pub(crate) fn entity_tag(&self, resource: &Resource, document: &Value) -> Option<String> {
        if self.profile.if_match == IfMatch::Ignored || !resource.methods(self).contains(&"PATCH") {
            return None;
        }
        if let Some(tag) = document.get("@odata.etag").and_then(Value::as_str) {
            return Some(tag.to_owned());
        }
        let mut hasher = DefaultHasher::new();
        document.to_string().hash(&mut hasher);
        Some(format!("\"{:016x}\"", hasher.finish()))
    }

    fn collection(
        &self,
        of: &Resource,
        kind: &str,
        members: impl IntoIterator<Item = Resource>,
    ) -> Value {
        let members: Vec<Value> = members.into_iter().map(|member| self.link(member)).collect();
        json!({
            "@odata.id": of.path(self.profile),
            "@odata.type": format!("#{kind}.{kind}"),
            "Name": kind,
            "Members@odata.count": members.len(),
            "Members": members,
        })
    }

    fn link(&self, to: Resource) -> Value {
        json!({"@odata.id": to.path(self.profile)})
    }

    /// Adds links to the parts that the profile has.
    fn add_links(&self, document: &mut Value, links: &[(&str, Resource)]) {
        for (name, resource) in links {
            if resource.exists(self) {
                document[*name] = self.link(*resource);
            }
        }
    }

    /// Adds the `Links` object if the profile has one.
    fn add_relations(&self, document: &mut Value, relations: &[(&str, Resource)]) {
        if !self.profile.has(Part::Links) {
            return;
        }
        let existing = relations.iter().filter(|(_, resource)| resource.exists(self));
        let links: Map<String, Value> = existing
            .map(|(name, resource)| ((*name).to_owned(), json!([self.link(*resource)])))
            .collect();
        document["Links"] = Value::Object(links);
    }
}

/// The `Status` of a part that works.
fn healthy_status() -> Value {
    json!({"State": "Enabled", "Health": "OK"})
}
