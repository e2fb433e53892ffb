//! Writes the values that clients send into a resource, as the table of fields declares. Creation and patches share the rows.

use openstack_api::{ApiError, Microversion, Op, Operation, apply_patch};
use serde_json::{Map, Value};

use crate::field::{Access, Field, RequestPart, Resource, Set};
use crate::secret::restore_masked;
use crate::value::object;

pub(crate) fn put<T, E>(place: &mut T, parsed: Result<T, E>) -> Result<(), E> {
    *place = parsed?;
    Ok(())
}

/// Sets the fields of a new resource from the `body` of the request.
pub(crate) fn create<R: Resource>(
    it: &mut R,
    body: Map<String, Value>,
    asked: Microversion,
) -> Result<(), ApiError> {
    for name in body.keys() {
        let field = Field::<R>::known(name)?;
        field.need(RequestPart::Creation, asked)?;
        if field.access.set().is_none() || field.is_set_later {
            let problem = format!("cannot be set when {} is created", R::NAME);
            return Err(ApiError::bad_field(field.name, problem));
        }
    }
    let mut required = R::FIELDS.iter().filter(|field| field.is_required);
    if let Some(missing) = required.find(|field| !body.contains_key(field.name)) {
        return Err(ApiError::bad_field(missing.name, "is required"));
    }
    set_all(it, body)
}

/// Returns the resource `before` with `patch` applied.
pub(crate) fn patched<R: Resource>(
    before: &R,
    patch: Vec<Operation>,
    asked: Microversion,
) -> Result<R, ApiError> {
    let mut after = before.clone();
    let mut document = Map::new();
    for operation in &patch {
        let field = Field::<R>::known(operation.field()?)?;
        let Access::Change(_, set) = &field.access else {
            return Err(ApiError::bad_field(field.name, "cannot be changed"));
        };
        // As in Ironic, clients of every version can remove most values, unless earlier versions do not know the field at all.
        if operation.op != Op::Remove || R::HIDES_LATER_FIELDS {
            field.need(RequestPart::Patch, asked)?;
        } else if let Some(since) = field.removed_since {
            asked.need(since, field.name)?;
        }
        if !document.contains_key(field.name) {
            document.insert(field.name.to_owned(), present(&mut after, set));
        }
    }
    apply_patch(&mut document, patch)?;
    set_all(&mut after, document)?;
    Ok(after)
}

/// The present value of a field, secrets included. Only objects and some lists can be patched in part, so the value of every other field is
/// returned as null.
fn present<R: 'static>(it: &mut R, set: &Set<R>) -> Value {
    match set {
        Set::Object(place) | Set::Secrets(place) => Value::Object(place(it).clone()),
        Set::List(present, _) => present(it),
        Set::Value(_) | Set::Core(_) => Value::Null,
    }
}

/// Sets the `wanted` fields in the order of the table.
fn set_all<R: Resource>(it: &mut R, mut wanted: Map<String, Value>) -> Result<(), ApiError> {
    for field in R::FIELDS {
        let Some(set) = field.access.set() else { continue };
        let Some(value) = wanted.remove(field.name) else { continue };
        write_value(it, field.name, set, value)?;
    }
    Ok(())
}

fn write_value<R: 'static>(
    it: &mut R,
    name: &'static str,
    set: &Set<R>,
    value: Value,
) -> Result<(), ApiError> {
    match set {
        Set::Value(write) | Set::List(_, write) => write(it, name, value)?,
        Set::Core(attribute) => {
            attribute.store(it, value).map_err(|why| ApiError::bad_field(name, why))?;
        }
        Set::Object(place) => *place(it) = object(name, value)?,
        Set::Secrets(place) => {
            let mut wanted = object(name, value)?;
            restore_masked(name, place(it), &mut wanted)?;
            *place(it) = wanted;
        }
    }
    Ok(())
}

/// Sets the fields of a resource that another service had before, times and states included. The error names every mistake, because each
/// is a reason not to move the resource.
pub(crate) fn import<R: Resource>(
    it: &mut R,
    mut body: Map<String, Value>,
) -> Result<(), ApiError> {
    let mut mistakes = Vec::new();
    for field in R::FIELDS {
        let Some(value) = body.remove(field.name) else {
            if field.is_required {
                mistakes.push(ApiError::bad_field(field.name, "is required"));
            }
            continue;
        };
        let written = match (field.import, field.access.set()) {
            (Some(write), _) => write(it, field.name, value),
            (None, Some(set)) => write_value(it, field.name, set, value),
            (None, None) => Err(ApiError::bad_field(field.name, "cannot be imported")),
        };
        mistakes.extend(written.err());
    }
    mistakes.extend(body.keys().filter_map(|name| Field::<R>::known(name).err()));
    match mistakes.is_empty() {
        true => Ok(()),
        false => Err(all_of(&mistakes)),
    }
}

/// One refusal for several mistakes.
fn all_of(mistakes: &[ApiError]) -> ApiError {
    let sentences: Vec<&str> = mistakes.iter().map(|why| why.message.as_str()).collect();
    ApiError::bad_request(sentences.join("; "))
}
