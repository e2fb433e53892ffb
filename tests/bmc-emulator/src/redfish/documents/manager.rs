//! The management controller, its network port, virtual drives and event log.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::events::Event;
use crate::profile::{MediaChange, MediaPlace};
use crate::redfish::RedfishFace;
use crate::redfish::resource::Resource;

impl RedfishFace {
    pub(super) fn manager(&self) -> Value {
        let mut manager = json!({
            "@odata.type": "#Manager.v1_12_0.Manager",
            "Id": self.profile.ids.manager,
            "Name": "Manager",
            "ManagerType": "BMC",
            "Model": self.profile.product,
            "FirmwareVersion": self.profile.bmc_firmware,
            "UUID": self.machine.spec().uuid,
            "DateTime": Timestamp::now().to_string(),
            "DateTimeLocalOffset": "+00:00",
            "PowerState": "On",
            "Status": super::healthy_status(),
        });
        self.add_links(
            &mut manager,
            &[("EthernetInterfaces", Resource::ManagerNics), ("LogServices", Resource::Logs)],
        );
        if self.profile.media.is_some() && !self.media_is_under_system() {
            manager["VirtualMedia"] = self.link(Resource::MediaDrives);
        }
        self.add_relations(
            &mut manager,
            &[("ManagerForServers", Resource::System), ("ManagerForChassis", Resource::Chassis)],
        );
        manager
    }

    pub(super) fn media_is_under_system(&self) -> bool {
        self.profile.media.as_ref().is_some_and(|media| media.under == MediaPlace::System)
    }

    pub(super) fn manager_nic(&self) -> Value {
        json!({
            "@odata.type": "#EthernetInterface.v1_8_0.EthernetInterface",
            "Id": "1",
            "Name": "Manager Ethernet Interface",
            "InterfaceEnabled": true,
            "LinkStatus": "LinkUp",
            "SpeedMbps": 1000,
            "IPv4Addresses": [{"Address": self.machine.spec().bmc.address.ip(), "AddressOrigin": "Static"}],
            "Status": super::healthy_status(),
        })
    }

    pub(super) fn media_drive(&self, index: usize) -> Option<Value> {
        let rules = self.profile.media.as_ref()?;
        let drive = rules.drives.get(index)?;
        let image = self.machine.media_in(drive);
        let name = image
            .as_ref()
            .and_then(|url| url.path_segments())
            .and_then(|mut segments| segments.next_back());
        let mut document = json!({
            "@odata.type": "#VirtualMedia.v1_4_0.VirtualMedia",
            "Id": drive.id,
            "Name": "Virtual Removable Media",
            "MediaTypes": drive.types,
            "Image": image,
            "ImageName": name,
            "Inserted": image.is_some(),
            "ConnectedVia": if image.is_some() { "URI" } else { "NotConnected" },
            "WriteProtected": true,
        });
        if rules.changed_by == MediaChange::Actions {
            document["Actions"] = json!({
                "#VirtualMedia.InsertMedia": {"target": Resource::InsertMedia(index).path(self.profile)},
                "#VirtualMedia.EjectMedia": {"target": Resource::EjectMedia(index).path(self.profile)},
            });
        }
        Some(document)
    }

    pub(super) fn log_service(&self) -> Value {
        json!({
            "@odata.type": "#LogService.v1_3_0.LogService",
            "Id": self.profile.ids.log,
            "Name": "System Event Log",
            "LogEntryType": "SEL",
            "OverWritePolicy": "WrapsWhenFull",
            "ServiceEnabled": true,
            "DateTime": Timestamp::now().to_string(),
            "Entries": self.link(Resource::LogEntries),
            "Actions": {"#LogService.ClearLog": {"target": Resource::ClearLog.path(self.profile)}},
            "Status": super::healthy_status(),
        })
    }

    /// The only collection that contains its members in full, as the LogEntryCollection schema demands.
    pub(super) fn log_entries(&self) -> Value {
        let entries: Vec<Value> =
            self.machine.chassis().events.all().map(|event| self.describe(event)).collect();
        json!({
            "@odata.type": "#LogEntryCollection.LogEntryCollection",
            "Name": "Log Entries",
            "Members@odata.count": entries.len(),
            "Members": entries,
        })
    }

    pub(super) fn log_entry(&self, id: u16) -> Option<Value> {
        self.machine
            .chassis()
            .events
            .all()
            .find(|event| event.id == id)
            .map(|event| self.describe(event))
    }

    fn describe(&self, event: &Event) -> Value {
        json!({
            "@odata.id": Resource::LogEntry(event.id).path(self.profile),
            "@odata.type": "#LogEntry.v1_11_0.LogEntry",
            "Id": event.id.to_string(),
            "Name": format!("Log Entry {}", event.id),
            "EntryType": "SEL",
            "Created": event.at.to_string(),
            "Severity": "OK",
            "Message": event.kind.sentence(),
        })
    }
}
