//! The bodies of requests for new resources and of patches, as the table of fields declares them.

use std::fmt;
use std::marker::PhantomData;

use openstack_api::{ApiError, JsonShape, Op, Operation, apply_patch};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::{Map, Value};
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};

use crate::error::Result;
use crate::field::{DetailLevel, Field, Resource};
use crate::input::{Input, Sent};
use crate::shown::Context;

/// The body of a request for a new resource. Every value has the type of its field.
pub(crate) struct Body<R: Resource> {
    /// The id or name of the resource from which the new one is made.
    pub(crate) base: String,
    /// The other values, in the order of the table.
    sent: Vec<(usize, Sent<R::New>)>,
}

impl<R: Resource> Body<R> {
    /// Writes the values to `new`, in the order of the table.
    pub(crate) fn write(self, new: &mut R::New) -> Result<()> {
        let mut sent = self.sent;
        let mut required = R::FIELDS.iter().enumerate().filter(|(_, field)| field.is_required);
        if let Some((_, missing)) = required.find(|(at, _)| sent.iter().all(|(row, _)| row != at)) {
            return Err(ApiError::bad_field(missing.name, "is required").into());
        }
        sent.sort_by_key(|(row, _)| *row);
        for (_, value) in sent {
            match value {
                Sent::Base(_) => {}
                Sent::Value(write) => write(new)?,
            }
        }
        Ok(())
    }
}

impl<'de, R: Resource> Deserialize<'de> for Body<R> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(BodyVisitor(PhantomData))
    }
}

struct BodyVisitor<R>(PhantomData<R>);

impl<'de, R: Resource> Visitor<'de> for BodyVisitor<R> {
    type Value = Body<R>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Body<R>, A::Error> {
        let mut body = Body { base: String::new(), sent: Vec::new() };
        while let Some((row, input)) = map.next_key_seed(KeySeed::<R>(PhantomData))? {
            let sent = map.next_value_seed(ValueSeed { name: R::FIELDS[row].name, input })?;
            if let Sent::Base(base) = &sent {
                body.base.clone_from(base);
            }
            body.sent.push((row, sent));
        }
        let never_null = |field: &Field<R>| field.create.is_some_and(|it| it.is_never_null());
        let missing = R::FIELDS
            .iter()
            .enumerate()
            .find(|(at, field)| never_null(field) && body.sent.iter().all(|(row, _)| row != at));
        missing.map_or(Ok(body), |(_, field)| Err(A::Error::missing_field(field.name)))
    }
}

/// Reads the name of a field, and returns its row.
struct KeySeed<R>(PhantomData<R>);

impl<'de, R: Resource> DeserializeSeed<'de> for KeySeed<R> {
    type Value = (usize, Input<R::New>);

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_identifier(self)
    }
}

impl<R: Resource> Visitor<'_> for KeySeed<R> {
    type Value = (usize, Input<R::New>);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Self::Value, E> {
        let row = R::FIELDS.iter().position(|field| field.name == name);
        let found = row.and_then(|row| Some((row, R::FIELDS[row].create?)));
        found.ok_or_else(|| {
            let known = R::FIELDS.iter().filter(|field| field.create.is_some());
            let known: Vec<String> = known.map(|field| format!("`{}`", field.name)).collect();
            E::custom(format_args!("unknown field `{name}`, expected one of {}", known.join(", ")))
        })
    }
}

/// Reads the value of a field.
struct ValueSeed<W> {
    name: &'static str,
    input: Input<W>,
}

impl<'de, W: 'static> DeserializeSeed<'de> for ValueSeed<W> {
    type Value = Sent<W>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Sent<W>, D::Error> {
        self.input.read(self.name, from)
    }
}

/// The schema of the body of a request for a new resource.
pub(crate) fn schema<R: Resource>() -> RefOr<Schema> {
    let default = R::MISSING_IS_NULL.then_some(Value::Null);
    let mut body = ObjectBuilder::new()
        .schema_type(Type::Object)
        .description(Some(R::BODY))
        .additional_properties(Some(AdditionalProperties::FreeForm(false)));
    for field in R::FIELDS {
        let Some(input) = field.create else { continue };
        body = body.property(field.name, input.schema(field.about, default.clone()));
        if input.is_never_null() {
            body = body.required(field.name);
        }
    }
    Schema::from(body.build()).into()
}

/// The response schema of a resource at this level of detail. A field that not every microversion has is optional.
pub(crate) fn shape<R: Resource>(level: DetailLevel) -> JsonShape {
    let mut shape = JsonShape::object([]);
    let (oldest, newest) = (crate::microversion::MINIMUM, crate::microversion::MAXIMUM);
    for field in R::FIELDS {
        let Some(answer) = &field.answer else { continue };
        let described = [(field.name, answer.kind.shape())];
        shape = match (field.is_shown(level, oldest), field.is_shown(level, newest)) {
            (true, true) => shape.and(described),
            (false, false) => shape,
            (true, false) | (false, true) => shape.maybe(described),
        };
    }
    shape
}

/// Writes the fields that `patch` changes to `change`. A part of an object may be changed; a removed field becomes null.
pub(crate) fn write_patch<'a, R: Resource>(
    patch: Vec<Operation>,
    before: R::Record<'a>,
    look: &'a Context,
    change: &mut R::Change,
) -> Result<()> {
    let mut document = Map::new();
    for operation in &patch {
        let name = operation.field()?;
        let field = Field::<R>::find(name).filter(|field| field.change.is_some());
        let field = field.ok_or_else(|| {
            let name: String = name.chars().take(64).collect();
            ApiError::bad_field(&name, "cannot be changed")
        })?;
        if !document.contains_key(name) {
            document.insert(name.to_owned(), present(field, before, look)?);
        }
    }
    apply_patch(&mut document, patch)?;
    for field in R::FIELDS {
        let Some(input) = field.change else { continue };
        let Some(value) = document.remove(field.name) else { continue };
        let sent = input.read(field.name, value);
        write_one(sent.map_err(|why| ApiError::bad_field(field.name, why))?, change)?;
    }
    Ok(())
}

fn present<'a, R: Resource>(
    field: &Field<R>,
    before: R::Record<'a>,
    look: &'a Context,
) -> Result<Value, ApiError> {
    let Some(answer) = &field.answer else { return Ok(Value::Null) };
    serde_json::to_value((answer.read)(before, look))
        .map_err(|why| ApiError::broken(format!("cannot read {}: {why}", field.name)))
}

/// Writes the fields that `patch` sets as a whole to `change`. `unchangeable` is the refusal of every other path.
pub(crate) fn write_flat_patch<R: Resource>(
    patch: Vec<Operation>,
    unchangeable: &str,
    change: &mut R::Change,
) -> Result<()> {
    for operation in patch {
        operation.field()?;
        let Operation { op, path, value } = operation;
        let shown: String = path.chars().take(64).collect();
        let field = path.strip_prefix('/').and_then(Field::<R>::find);
        let changeable = field.and_then(|field| Some((field.name, field.change?)));
        let (name, input) = changeable.ok_or_else(|| ApiError::bad_field(&shown, unchangeable))?;
        let value = match op {
            Op::Remove => Value::Null,
            Op::Add | Op::Replace => value.unwrap_or(Value::Null),
        };
        let sent = input.read(name, value).map_err(|why| ApiError::bad_field(name, why))?;
        write_one(sent, change)?;
    }
    Ok(())
}

fn write_one<W>(sent: Sent<W>, change: &mut W) -> Result<()> {
    match sent {
        Sent::Base(_) => Ok(()),
        Sent::Value(write) => Ok(write(change)?),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use cluster_core::{Cluster, NodeGroup, Template};

    use super::*;

    #[track_caller]
    fn refuses<R: Resource>(body: &str, want: &str) {
        let why = serde_json::from_str::<Body<R>>(body).err().unwrap().to_string();
        assert_eq!(why.split_once(" at line ").map(|(why, _)| why), Some(want));
    }

    #[test]
    fn a_value_of_the_wrong_type_is_refused() {
        let count = "must be a whole number that is not negative";
        refuses::<Cluster>(r#"{"cluster_template_id": "t", "node_count": -1}"#, count);
        let text = "invalid type: integer `5`, expected a string";
        refuses::<Cluster>(r#"{"cluster_template_id": 5}"#, text);
        refuses::<Cluster>("{}", "missing field `cluster_template_id`");
        refuses::<Cluster>("[]", "invalid type: sequence, expected an object");
        let known = "`name`, `flavor_id`, `image_id`, `node_count`, `role`, `docker_volume_size`, `min_node_count`, \
                     `max_node_count`, `labels`, `merge_labels`, `node_labels`, `node_taints`";
        let unknown = format!("unknown field `status`, expected one of {known}");
        refuses::<NodeGroup>(r#"{"name": "g", "status": "x"}"#, &unknown);
    }

    #[test]
    fn every_field_has_a_name_of_its_own() {
        fn check<R: Resource>() {
            let mut seen = BTreeSet::new();
            assert!(
                R::FIELDS.iter().all(|field| seen.insert(field.name)),
                "two fields of one name"
            );
        }
        check::<Cluster>();
        check::<Template>();
        check::<NodeGroup>();
    }
}
