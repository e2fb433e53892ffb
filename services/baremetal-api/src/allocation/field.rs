//! The fields of an allocation, and the microversion that introduced each.

use crate::field::{Access, FieldRow, Fields, row};

/// A field of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    Uuid,
    Name,
    NodeUuid,
    State,
    LastError,
    ResourceClass,
    Traits,
    CandidateNodes,
    Extra,
    Owner,
    CreatedAt,
    UpdatedAt,
    Links,
}

use Access::{Create, Read, Write};

impl Fields for Field {
    const RESOURCE: &'static str = "an allocation";
    // Lists show every field, as in Ironic.
    const DEFAULT_FIELDS: &'static [Field] = &[];
    const LINKS: Field = Field::Links;
    const TABLE: &'static [FieldRow<Field>] = TABLE;
}

#[rustfmt::skip]
const TABLE: &[FieldRow<Field>] = &[
    row(Field::Uuid,           "uuid",            52, Create),
    row(Field::Name,           "name",            52, Write),
    row(Field::NodeUuid,       "node_uuid",       52, Read),
    row(Field::State,          "state",           52, Read),
    row(Field::LastError,      "last_error",      52, Read),
    row(Field::ResourceClass,  "resource_class",  52, Create),
    row(Field::Traits,         "traits",          52, Create),
    row(Field::CandidateNodes, "candidate_nodes", 52, Create),
    row(Field::Extra,          "extra",           52, Write),
    row(Field::Owner,          "owner",           60, Create),
    row(Field::CreatedAt,      "created_at",      52, Read),
    row(Field::UpdatedAt,      "updated_at",      52, Read),
    row(Field::Links,          "links",           52, Read),
];
