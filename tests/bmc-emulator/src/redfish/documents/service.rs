//! The service itself: root, sessions, accounts, tasks, updates.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::profile::Part;
use crate::redfish::RedfishFace;
use crate::redfish::resource::{FIRMWARE, Resource};

/// The OData metadata document, which names the schemas' namespaces (DSP0266 §8.4.2).
pub(crate) const METADATA: &str = include_str!("metadata.xml");

impl RedfishFace {
    pub(super) fn root(&self) -> Value {
        let profile = self.profile;
        let mut root = json!({
            "@odata.type": "#ServiceRoot.v1_9_0.ServiceRoot",
            "Id": "RootService",
            "Name": "Root Service",
            "RedfishVersion": profile.redfish_version,
            "Product": profile.product,
            "UUID": self.machine.spec().uuid,
            "ProtocolFeaturesSupported": {
                "ExpandQuery": {"ExpandAll": false, "Levels": false, "Links": false, "NoLinks": false},
                "FilterQuery": false,
                "OnlyMemberQuery": false,
                "SelectQuery": false,
            },
        });
        if let Some(vendor) = &profile.vendor {
            root["Vendor"] = json!(vendor);
        }
        self.add_links(
            &mut root,
            &[
                ("Systems", Resource::Systems),
                ("Chassis", Resource::AllChassis),
                ("Managers", Resource::Managers),
                ("Tasks", Resource::TaskService),
                ("SessionService", Resource::SessionService),
                ("AccountService", Resource::AccountService),
                ("UpdateService", Resource::UpdateService),
            ],
        );
        if profile.has(Part::Sessions) {
            root["Links"] = json!({"Sessions": self.link(Resource::Sessions)});
        }
        root
    }

    /// The OData service document (DSP0266 §8.4.3).
    pub(super) fn odata(&self) -> Value {
        let services = [
            ("Service", Resource::Root),
            ("Systems", Resource::Systems),
            ("Managers", Resource::Managers),
        ];
        let value: Vec<Value> = services
            .iter()
            .map(|(name, to)| json!({"name": name, "kind": "Singleton", "url": to.path(self.profile)}))
            .collect();
        json!({"@odata.context": "/redfish/v1/$metadata", "value": value})
    }

    pub(super) fn session_service(&self) -> Value {
        json!({
            "@odata.type": "#SessionService.v1_1_8.SessionService",
            "Id": "SessionService",
            "Name": "Session Service",
            "Status": super::healthy_status(),
            "ServiceEnabled": true,
            "SessionTimeout": self.sessions().timeout.as_secs(),
            "Sessions": self.link(Resource::Sessions),
        })
    }

    pub(super) fn session(&self, id: u32) -> Option<Value> {
        self.sessions().ids().any(|open| open == id).then(|| {
            json!({
                "@odata.type": "#Session.v1_3_0.Session",
                "Id": id.to_string(),
                "Name": "Session",
                "UserName": self.machine.spec().bmc.username,
            })
        })
    }

    pub(super) fn account_service(&self) -> Value {
        json!({
            "@odata.type": "#AccountService.v1_9_0.AccountService",
            "Id": "AccountService",
            "Name": "Account Service",
            "Status": super::healthy_status(),
            "ServiceEnabled": true,
            "Accounts": self.link(Resource::Accounts),
            "Roles": self.link(Resource::Roles),
        })
    }

    pub(super) fn account(&self) -> Value {
        json!({
            "@odata.type": "#ManagerAccount.v1_8_0.ManagerAccount",
            "Id": "1",
            "Name": "User Account",
            "UserName": self.machine.spec().bmc.username,
            "Password": null,
            "RoleId": "Administrator",
            "Enabled": true,
            "Locked": false,
            "AccountTypes": ["Redfish"],
            "Links": {"Role": self.link(Resource::Role)},
        })
    }

    pub(super) fn role(&self) -> Value {
        json!({
            "@odata.type": "#Role.v1_3_1.Role",
            "Id": "Administrator",
            "Name": "User Role",
            "RoleId": "Administrator",
            "IsPredefined": true,
            "AssignedPrivileges": ["Login", "ConfigureManager", "ConfigureUsers", "ConfigureSelf", "ConfigureComponents"],
        })
    }

    pub(super) fn task_service(&self) -> Value {
        json!({
            "@odata.type": "#TaskService.v1_2_0.TaskService",
            "Id": "TaskService",
            "Name": "Task Service",
            "Status": super::healthy_status(),
            "ServiceEnabled": true,
            "DateTime": Timestamp::now().to_string(),
            "CompletedTaskOverWritePolicy": "Oldest",
            "Tasks": self.link(Resource::Tasks),
        })
    }

    pub(super) fn update_service(&self) -> Value {
        json!({
            "@odata.type": "#UpdateService.v1_8_0.UpdateService",
            "Id": "UpdateService",
            "Name": "Update Service",
            "Status": super::healthy_status(),
            "ServiceEnabled": false,
            "FirmwareInventory": self.link(Resource::FirmwareInventory),
        })
    }

    pub(super) fn firmware(&self, index: usize) -> Option<Value> {
        let name = FIRMWARE.get(index)?;
        let version =
            if *name == "BMC" { &self.profile.bmc_firmware } else { &self.profile.bios_version };
        Some(json!({
            "@odata.type": "#SoftwareInventory.v1_3_0.SoftwareInventory",
            "Id": name,
            "Name": format!("{name} Firmware"),
            "Status": super::healthy_status(),
            "Version": version,
            "Updateable": false,
        }))
    }
}
