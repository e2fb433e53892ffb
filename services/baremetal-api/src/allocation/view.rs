//! Serializes an allocation for clients, field by field.

use baremetal_core::Allocation;
use openstack_api::{Links, Origin, Time};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::Field;
use crate::field::{FieldRow, FieldSet};

/// An allocation in the form that clients see.
pub(crate) struct View<'a> {
    pub(crate) allocation: &'a Allocation,
    pub(crate) shown: FieldSet<Field>,
    /// The origin under which the client reached the API.
    pub(crate) origin: &'a Origin,
}

impl Serialize for View<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(None)?;
        for row in self.shown.rows() {
            object.serialize_key(row.name)?;
            self.value(&mut object, row)?;
        }
        object.end()
    }
}

impl View<'_> {
    fn value<M: SerializeMap>(
        &self,
        object: &mut M,
        row: &FieldRow<Field>,
    ) -> Result<(), M::Error> {
        let it = self.allocation;
        match row.field {
            Field::Uuid => object.serialize_value(&it.id),
            Field::Name => object.serialize_value(&it.name),
            Field::NodeUuid => object.serialize_value(&it.node),
            Field::State => object.serialize_value(it.state.as_str()),
            Field::LastError => object.serialize_value(&it.last_error),
            Field::ResourceClass => object.serialize_value(&it.resource_class),
            Field::Traits => object.serialize_value(&it.traits),
            Field::CandidateNodes => object.serialize_value(&it.candidate_nodes),
            Field::Extra => object.serialize_value(&it.extra),
            Field::Owner => object.serialize_value(&it.owner),
            Field::CreatedAt => object.serialize_value(&Time(it.created_at)),
            Field::UpdatedAt => object.serialize_value(&Time::some(it.updated_at)),
            Field::Links => {
                let origin = self.origin;
                let links = Links { origin, collection: "allocations", id: it.id, part: "" };
                object.serialize_value(&links)
            }
        }
    }
}
