//! Applies the values that clients send to an allocation. Creation and patches share one function for each field.

use std::collections::BTreeSet;

use baremetal_core::{Allocation, AllocationUuid, NodeName, Trait};
use newtype_uuid::GenericUuid;
use openstack_api::{ApiError, Microversion, Operation, apply_patch};
use serde_json::{Map, Value};

use super::Field;
use crate::field::{FieldRow, Fields};
use crate::traits::MOST;
use crate::value::{list, object, text, uuid};

/// The fields to set, with their new values; null selects the default.
type FieldValues = Map<String, Value>;

/// The most candidate nodes that a request may name.
const MOST_CANDIDATES: usize = 1000;

/// Sets the fields of a new allocation from `body`, from which `node` was already removed. Returns the candidate nodes as the client named
/// them.
pub(crate) fn create(
    allocation: &mut Allocation,
    mut body: FieldValues,
    asked: Microversion,
) -> Result<Vec<String>, ApiError> {
    for name in body.keys() {
        Field::creatable(name, asked)?;
    }
    let name = "candidate_nodes";
    let candidates = list(name, body.remove(name).unwrap_or(Value::Null), MOST_CANDIDATES)?;
    set_all(allocation, body)?;
    let candidates = candidates.into_iter().map(|node| {
        text(name, node, 255)?.ok_or_else(|| ApiError::bad_field(name, "one of them has no name"))
    });
    candidates.collect()
}

/// Returns the allocation `before` with `patch` applied.
pub(crate) fn patched(
    before: &Allocation,
    patch: Vec<Operation>,
    asked: Microversion,
) -> Result<Allocation, ApiError> {
    let mut document = FieldValues::new();
    for operation in &patch {
        let row = Field::changeable(operation.field()?, asked)?;
        if !document.contains_key(row.name) {
            let present = match row.field == Field::Extra {
                true => Value::Object(before.extra.clone()),
                false => Value::Null,
            };
            document.insert(row.name.to_owned(), present);
        }
    }
    apply_patch(&mut document, patch)?;
    let mut after = before.clone();
    set_all(&mut after, document)?;
    Ok(after)
}

fn set_all(allocation: &mut Allocation, mut wanted: FieldValues) -> Result<(), ApiError> {
    for row in Field::TABLE {
        if let Some(value) = wanted.remove(row.name) {
            set(allocation, row, value)?;
        }
    }
    Ok(())
}

fn set(allocation: &mut Allocation, row: &FieldRow<Field>, value: Value) -> Result<(), ApiError> {
    let name = row.name;
    match row.field {
        Field::Uuid => {
            let given = uuid(name, value)?.map(AllocationUuid::from_untyped_uuid);
            allocation.id = given.unwrap_or(allocation.id);
        }
        Field::Name => {
            let given = text(name, value, 255)?.map(NodeName::try_from).transpose();
            allocation.name = given.map_err(|why| ApiError::bad_field(name, why))?;
        }
        Field::ResourceClass => {
            let given = text(name, value, 80)?;
            allocation.resource_class = given.or(allocation.resource_class.take());
        }
        Field::Traits => allocation.traits = traits(name, value)?,
        Field::Extra => allocation.extra = object(name, value)?,
        Field::Owner => allocation.owner = text(name, value, 255)?,
        Field::NodeUuid
        | Field::State
        | Field::LastError
        | Field::CandidateNodes
        | Field::CreatedAt
        | Field::UpdatedAt
        | Field::Links => return Err(ApiError::bad_field(name, "cannot be changed")),
    }
    Ok(())
}

/// Parses the traits that the node must have.
pub(crate) fn traits(name: &str, value: Value) -> Result<BTreeSet<String>, ApiError> {
    let given = list(name, value, MOST)?.into_iter().map(|one| {
        let one = text(name, one, 255)?.unwrap_or_default();
        Trait::try_from(one).map(String::from).map_err(|why| ApiError::bad_field(name, why))
    });
    given.collect()
}
