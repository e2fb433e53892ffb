//! The fields of a port, and the microversion that introduced each.

use crate::field::{Access, FieldRow, Fields, row};

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

use Access::{Create, Read, Write};

impl Fields for Field {
    const RESOURCE: &'static str = "a port";
    const DEFAULT_FIELDS: &'static [Field] = &[Field::Uuid, Field::Address, Field::Links];
    const LINKS: Field = Field::Links;
    const TABLE: &'static [FieldRow<Field>] = TABLE;
}

#[rustfmt::skip]
const TABLE: &[FieldRow<Field>] = &[
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
