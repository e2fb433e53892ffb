//! The fields of a node, and the version each came with.

use baremetal_core::Interface;
use openstack_api::{ApiError, Microversion};

/// A field of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    Uuid,
    Name,
    CreatedAt,
    UpdatedAt,
    Driver,
    DriverInfo,
    DriverInternalInfo,
    Properties,
    Extra,
    InstanceInfo,
    InstanceUuid,
    InstanceName,
    ChassisUuid,
    PowerState,
    TargetPowerState,
    ProvisionState,
    TargetProvisionState,
    ProvisionUpdatedAt,
    LastError,
    Maintenance,
    MaintenanceReason,
    ConsoleEnabled,
    Reservation,
    InspectionStartedAt,
    InspectionFinishedAt,
    CleanStep,
    DeployStep,
    ServiceStep,
    RaidConfig,
    TargetRaidConfig,
    ResourceClass,
    Traits,
    Fault,
    Health,
    ConductorGroup,
    Conductor,
    AutomatedClean,
    Protected,
    ProtectedReason,
    Owner,
    Lessee,
    Description,
    AllocationUuid,
    Retired,
    RetiredReason,
    NetworkData,
    BootMode,
    SecureBoot,
    Shard,
    ParentNode,
    DisablePowerOff,
    Interface(Interface),
    Links,
    Ports,
    States,
    Portgroups,
    Volume,
}

/// What is known of a field.
pub(crate) struct Row {
    /// Which field.
    pub(crate) field: Field,
    /// Its name.
    pub(crate) name: &'static str,
    /// The version that brought it.
    pub(crate) since: Microversion,
    /// Who may write it.
    pub(crate) access: Access,
}

/// Who may write a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Only we.
    Read,
    /// Clients, when they create the node.
    Create,
    /// Clients, at any time the node's state allows.
    Write,
}

use Access::{Create, Read, Write};

const fn row(field: Field, name: &'static str, minor: u16, access: Access) -> Row {
    Row { field, name, since: Microversion::new(minor), access }
}

const fn interface(interface: Interface, name: &'static str, minor: u16) -> Row {
    row(Field::Interface(interface), name, minor, Write)
}

/// Every field, in the order it is shown and written: one that another depends on comes first.
#[rustfmt::skip]
pub(crate) const FIELDS: &[Row] = &[
    row(Field::Uuid,                 "uuid",                   1,  Create),
    row(Field::Name,                 "name",                   5,  Write),
    row(Field::CreatedAt,            "created_at",             1,  Read),
    row(Field::UpdatedAt,            "updated_at",             1,  Read),
    row(Field::Driver,               "driver",                 1,  Write),
    row(Field::DriverInfo,           "driver_info",            1,  Write),
    row(Field::DriverInternalInfo,   "driver_internal_info",   3,  Read),
    row(Field::Properties,           "properties",             1,  Write),
    row(Field::Extra,                "extra",                  1,  Write),
    row(Field::InstanceInfo,         "instance_info",          1,  Write),
    row(Field::InstanceUuid,         "instance_uuid",          1,  Write),
    row(Field::InstanceName,         "instance_name",          104, Write),
    row(Field::ChassisUuid,          "chassis_uuid",           1,  Write),
    row(Field::PowerState,           "power_state",            1,  Read),
    row(Field::TargetPowerState,     "target_power_state",     1,  Read),
    row(Field::ProvisionState,       "provision_state",        1,  Read),
    row(Field::TargetProvisionState, "target_provision_state", 1,  Read),
    row(Field::ProvisionUpdatedAt,   "provision_updated_at",   1,  Read),
    row(Field::LastError,            "last_error",             1,  Read),
    row(Field::Maintenance,          "maintenance",            1,  Write),
    row(Field::MaintenanceReason,    "maintenance_reason",     1,  Read),
    row(Field::ConsoleEnabled,       "console_enabled",        1,  Read),
    row(Field::Reservation,          "reservation",            1,  Read),
    row(Field::InspectionStartedAt,  "inspection_started_at",  6,  Read),
    row(Field::InspectionFinishedAt, "inspection_finished_at", 6,  Read),
    row(Field::CleanStep,            "clean_step",             7,  Read),
    row(Field::DeployStep,           "deploy_step",            44, Read),
    row(Field::ServiceStep,          "service_step",           87, Read),
    row(Field::RaidConfig,           "raid_config",            12, Read),
    row(Field::TargetRaidConfig,     "target_raid_config",     12, Read),
    row(Field::ResourceClass,        "resource_class",         21, Write),
    row(Field::Traits,               "traits",                 37, Read),
    row(Field::Fault,                "fault",                  42, Read),
    row(Field::Health,               "health",                 109, Read),
    row(Field::ConductorGroup,       "conductor_group",        46, Write),
    row(Field::Conductor,            "conductor",              49, Read),
    row(Field::AutomatedClean,       "automated_clean",        47, Write),
    row(Field::Protected,            "protected",              48, Write),
    row(Field::ProtectedReason,      "protected_reason",       48, Write),
    row(Field::Owner,                "owner",                  50, Write),
    row(Field::Lessee,               "lessee",                 65, Write),
    row(Field::Description,          "description",            51, Write),
    row(Field::AllocationUuid,       "allocation_uuid",        52, Read),
    row(Field::Retired,              "retired",                61, Write),
    row(Field::RetiredReason,        "retired_reason",         61, Write),
    row(Field::NetworkData,          "network_data",           66, Write),
    row(Field::BootMode,             "boot_mode",              75, Read),
    row(Field::SecureBoot,           "secure_boot",            75, Read),
    row(Field::Shard,                "shard",                  82, Write),
    row(Field::ParentNode,           "parent_node",            83, Write),
    row(Field::DisablePowerOff,      "disable_power_off",      95, Write),
    interface(Interface::Bios,       "bios_interface",         40),
    interface(Interface::Boot,       "boot_interface",         31),
    interface(Interface::Console,    "console_interface",      31),
    interface(Interface::Deploy,     "deploy_interface",       31),
    interface(Interface::Firmware,   "firmware_interface",     86),
    interface(Interface::Inspect,    "inspect_interface",      31),
    interface(Interface::Management, "management_interface",   31),
    interface(Interface::Network,    "network_interface",      20),
    interface(Interface::Power,      "power_interface",        31),
    interface(Interface::Raid,       "raid_interface",         31),
    interface(Interface::Rescue,     "rescue_interface",       38),
    interface(Interface::Storage,    "storage_interface",      33),
    interface(Interface::Vendor,     "vendor_interface",       31),
    row(Field::Links,                "links",                  1,  Read),
    row(Field::Ports,                "ports",                  1,  Read),
    row(Field::States,               "states",                 14, Read),
    row(Field::Portgroups,           "portgroups",             24, Read),
    row(Field::Volume,               "volume",                 32, Read),
];

/// Which fields to show: one bit for each row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shown(u128);

impl Shown {
    /// All that a client that asked for this version knows.
    pub(crate) fn all(asked: Microversion) -> Self {
        Shown::these(|row| asked.has(row.since))
    }

    /// What a list shows of each node unless it is asked for more.
    pub(crate) fn brief(asked: Microversion) -> Self {
        Shown::these(|row| {
            asked.has(row.since)
                && matches!(
                    row.field,
                    Field::Uuid
                        | Field::Name
                        | Field::InstanceUuid
                        | Field::Maintenance
                        | Field::PowerState
                        | Field::ProvisionState
                        | Field::Links
                )
        })
    }

    /// The fields that `raw` names, separated by commas; the links always.
    pub(crate) fn named(raw: &str, asked: Microversion) -> Result<Self, ApiError> {
        let mut shown = Shown::these(|row| row.field == Field::Links);
        for name in raw.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let (at, row) = find(name).ok_or_else(|| {
                let name: String = name.chars().take(64).collect();
                ApiError::bad_field("fields", format!("a node has no field {name:?}"))
            })?;
            asked.need(row.since, row.name)?;
            shown.0 |= 1 << at;
        }
        Ok(shown)
    }

    fn these(fits: impl Fn(&Row) -> bool) -> Self {
        let bits = FIELDS.iter().enumerate().filter(|(_, row)| fits(row)).map(|(at, _)| 1 << at);
        Shown(bits.fold(0, |all, bit: u128| all | bit))
    }

    /// The rows to show.
    pub(crate) fn rows(self) -> impl Iterator<Item = &'static Row> {
        FIELDS.iter().enumerate().filter(move |(at, _)| self.0 >> at & 1 == 1).map(|(_, row)| row)
    }
}

/// The row of the field named `name`, and where it stands.
pub(crate) fn find(name: &str) -> Option<(usize, &'static Row)> {
    FIELDS.iter().enumerate().find(|(_, row)| row.name == name)
}
