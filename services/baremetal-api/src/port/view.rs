//! Serializes a port for clients, field by field.

use baremetal_core::Port;
use openstack_api::{Links, Origin, Time};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::Map;

use super::Field;
use crate::field::{FieldRow, FieldSet};

/// A port in the form that clients see.
pub(crate) struct View<'a> {
    pub(crate) port: &'a Port,
    pub(crate) shown: FieldSet<Field>,
    /// The origin under which the client reached the API.
    pub(crate) origin: &'a Origin,
}

const NULL: Option<()> = None;

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
        let port = self.port;
        match row.field {
            Field::Uuid => object.serialize_value(&port.id),
            Field::CreatedAt => object.serialize_value(&Time(port.created_at)),
            Field::UpdatedAt => object.serialize_value(&Time::some(port.updated_at)),
            Field::Address => object.serialize_value(&port.address),
            Field::NodeUuid => object.serialize_value(&port.node),
            Field::Extra => object.serialize_value(&port.extra),
            Field::InternalInfo => object.serialize_value(&Map::new()),
            Field::LocalLinkConnection => object.serialize_value(&port.local_link_connection),
            Field::PxeEnabled => object.serialize_value(&port.pxe_enabled),
            Field::PortgroupUuid => object.serialize_value(&port.portgroup),
            Field::PhysicalNetwork => object.serialize_value(&port.physical_network),
            Field::IsSmartnic => object.serialize_value(&port.is_smartnic),
            Field::Name => object.serialize_value(&port.name),
            Field::Description => object.serialize_value(&port.description),
            Field::Vendor | Field::Category => object.serialize_value(&NULL),
            Field::AvailableForDynamicPortgroup => object.serialize_value(&true),
            Field::Links => {
                let links =
                    Links { origin: self.origin, collection: "ports", id: port.id, part: "" };
                object.serialize_value(&links)
            }
        }
    }
}
