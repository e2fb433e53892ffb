//! The fields of a port, and the version each came with.

use openstack_api::{ApiError, Microversion};

/// A field of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    Uuid,
    CreatedAt,
    UpdatedAt,
    Address,
    NodeUuid,
    Extra,
    InternalInfo,
    LocalLinkConnection,
    PxeEnabled,
    PortgroupUuid,
    PhysicalNetwork,
    IsSmartnic,
    Name,
    Description,
    Vendor,
    Category,
    AvailableForDynamicPortgroup,
    Links,
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
    /// Clients, when they create the port.
    Create,
    /// Clients, at any time the node's state allows.
    Write,
}

use Access::{Create, Read, Write};

const fn row(field: Field, name: &'static str, minor: u16, access: Access) -> Row {
    Row { field, name, since: Microversion::new(minor), access }
}

/// Every field, in the order it is shown.
#[rustfmt::skip]
pub(crate) const FIELDS: &[Row] = &[
    row(Field::Uuid,                         "uuid",                            1,   Create),
    row(Field::CreatedAt,                    "created_at",                      1,   Read),
    row(Field::UpdatedAt,                    "updated_at",                      1,   Read),
    row(Field::Address,                      "address",                         1,   Write),
    row(Field::NodeUuid,                     "node_uuid",                       1,   Create),
    row(Field::Extra,                        "extra",                           1,   Write),
    row(Field::InternalInfo,                 "internal_info",                   18,  Read),
    row(Field::LocalLinkConnection,          "local_link_connection",           19,  Write),
    row(Field::PxeEnabled,                   "pxe_enabled",                     19,  Write),
    row(Field::PortgroupUuid,                "portgroup_uuid",                  24,  Write),
    row(Field::PhysicalNetwork,              "physical_network",                34,  Write),
    row(Field::IsSmartnic,                   "is_smartnic",                     53,  Write),
    row(Field::Name,                         "name",                            88,  Write),
    row(Field::Description,                  "description",                     97,  Write),
    row(Field::Vendor,                       "vendor",                          100, Read),
    row(Field::Category,                     "category",                        101, Read),
    row(Field::AvailableForDynamicPortgroup, "available_for_dynamic_portgroup", 111, Read),
    row(Field::Links,                        "links",                           1,   Read),
];

/// Which fields to show: one bit for each row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shown(u32);

impl Shown {
    /// All that a client that asked for this version knows.
    pub(crate) fn all(asked: Microversion) -> Self {
        Shown::these(|row| asked.has(row.since))
    }

    /// What a list shows of each port unless it is asked for more.
    pub(crate) fn brief() -> Self {
        Shown::these(|row| matches!(row.field, Field::Uuid | Field::Address | Field::Links))
    }

    /// The fields that `raw` names, separated by commas; the links always.
    pub(crate) fn named(raw: &str, asked: Microversion) -> Result<Self, ApiError> {
        let mut shown = Shown::these(|row| row.field == Field::Links);
        for name in raw.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let (at, row) = find(name).ok_or_else(|| {
                let name: String = name.chars().take(64).collect();
                ApiError::bad_field("fields", format!("a port has no field {name:?}"))
            })?;
            asked.need(row.since, row.name)?;
            shown.0 |= 1 << at;
        }
        Ok(shown)
    }

    fn these(fits: impl Fn(&Row) -> bool) -> Self {
        let bits = FIELDS.iter().enumerate().filter(|(_, row)| fits(row)).map(|(at, _)| 1 << at);
        Shown(bits.fold(0, |all, bit: u32| all | bit))
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
