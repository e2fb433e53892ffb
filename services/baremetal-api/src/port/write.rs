//! Applies the values that clients send to a port. Creation and patches share one function for each field.

use baremetal_core::{Port, PortUuid};
use hardware::MacAddress;
use newtype_uuid::GenericUuid;
use openstack_api::{ApiError, Microversion, Operation, apply_patch};
use serde_json::{Map, Value};

use super::Field;
use crate::field::{FieldRow, Fields};
use crate::value::{boolean, object, text, uuid};

/// The fields to set, with their new values; null selects the default.
type FieldValues = Map<String, Value>;

/// Sets the fields of a new port from `body`, from which the node was already removed.
pub(crate) fn create(
    port: &mut Port,
    body: FieldValues,
    asked: Microversion,
) -> Result<(), ApiError> {
    for name in body.keys() {
        Field::creatable(name, asked)?;
    }
    if !body.contains_key("address") {
        return Err(ApiError::bad_field("address", "is required"));
    }
    set_all(port, body)
}

/// Returns the port `before` with `patch` applied.
pub(crate) fn patched(
    before: &Port,
    patch: Vec<Operation>,
    asked: Microversion,
) -> Result<Port, ApiError> {
    let mut document = FieldValues::new();
    for operation in &patch {
        let row = Field::changeable(operation.field()?, asked)?;
        if !document.contains_key(row.name) {
            let objects = [
                (Field::Extra, &before.extra),
                (Field::LocalLinkConnection, &before.local_link_connection),
            ];
            let present = objects.into_iter().find(|(field, _)| *field == row.field);
            let value = present.map_or(Value::Null, |(_, object)| Value::Object(object.clone()));
            document.insert(row.name.to_owned(), value);
        }
    }
    apply_patch(&mut document, patch)?;
    let mut after = before.clone();
    set_all(&mut after, document)?;
    Ok(after)
}

fn set_all(port: &mut Port, mut wanted: FieldValues) -> Result<(), ApiError> {
    for row in Field::TABLE {
        if let Some(value) = wanted.remove(row.name) {
            set(port, row, value)?;
        }
    }
    Ok(())
}

fn set(port: &mut Port, row: &FieldRow<Field>, value: Value) -> Result<(), ApiError> {
    let name = row.name;
    match row.field {
        Field::Uuid => {
            port.id = uuid(name, value)?.map_or(port.id, PortUuid::from_untyped_uuid);
        }
        Field::Address => port.address = address(value)?,
        Field::Extra => port.extra = object(name, value)?,
        Field::LocalLinkConnection => port.local_link_connection = object(name, value)?,
        Field::PxeEnabled => port.pxe_enabled = boolean(name, value)?.unwrap_or(true),
        Field::PortgroupUuid => {
            if uuid(name, value)?.is_some() {
                return Err(ApiError::bad_field(name, "port group not found"));
            }
        }
        Field::PhysicalNetwork => port.physical_network = text(name, value, 64)?,
        Field::IsSmartnic => port.is_smartnic = boolean(name, value)?.unwrap_or(false),
        Field::Name => port.name = text(name, value, 255)?,
        Field::Description => port.description = text(name, value, 255)?,
        Field::CreatedAt
        | Field::UpdatedAt
        | Field::NodeUuid
        | Field::InternalInfo
        | Field::Vendor
        | Field::Category
        | Field::AvailableForDynamicPortgroup
        | Field::Links => return Err(ApiError::bad_field(name, "cannot be changed")),
    }
    Ok(())
}

/// Parses the MAC address of a port.
pub(crate) fn address(value: Value) -> Result<MacAddress, ApiError> {
    let required = || ApiError::bad_field("address", "is required");
    let raw = text("address", value, 64)?.ok_or_else(required)?;
    let address: MacAddress = raw.parse().map_err(|why| ApiError::bad_field("address", why))?;
    if address.is_multicast() {
        let problem = format!("{address} is a multicast address, which cannot belong to a machine");
        return Err(ApiError::bad_field("address", problem));
    }
    Ok(address)
}
