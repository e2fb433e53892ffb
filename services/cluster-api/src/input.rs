//! The JSON types of fields in requests, and the functions that write their values.

use std::collections::BTreeMap;

use cluster_core::Refusal;
use serde::de::{Deserialize, Deserializer};
use serde_json::Value;
use utoipa::openapi::schema::{
    AdditionalProperties, ArrayBuilder, KnownFormat, ObjectBuilder, SchemaFormat, SchemaType, Type,
};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::lenient;

/// Writes the value that a client sent for the field of this name. `None` selects the default.
pub(crate) type Write<W, T> = fn(&mut W, &'static str, T) -> Result<(), Refusal>;

/// The JSON type of a field in requests, with the function that writes its value into a `W`. Every type but `Base` and `Word` may be null.
pub(crate) enum Input<W> {
    /// The id or name of the resource from which the new one is made: it is looked up before any field is written.
    Base,
    /// Text that cannot be null.
    Word(Write<W, String>),
    Text(Write<W, Option<String>>),
    Count(Write<W, Option<u32>>),
    Flag(Write<W, Option<bool>>),
    TextMap(Write<W, Option<BTreeMap<String, String>>>),
    Taints(Write<W, Option<Vec<Taint>>>),
}

#[derive(Debug, serde::Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Taint {
    pub(crate) key: String,
    #[serde(default)]
    pub(crate) value: String,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub(crate) effect: String,
}

/// A value of the right type, which is yet to be written.
pub(crate) enum Sent<W> {
    /// The value of [`Input::Base`].
    Base(String),
    Value(WriteOnce<W>),
}

pub(crate) type WriteOnce<W> = Box<dyn FnOnce(&mut W) -> Result<(), Refusal> + Send>;

impl<W> Clone for Input<W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for Input<W> {}

impl<W: 'static> Input<W> {
    /// Whether a new resource cannot be without the field, and the value cannot be null.
    pub(crate) fn is_never_null(&self) -> bool {
        matches!(self, Input::Base | Input::Word(_))
    }

    /// Reads the value of the field `name`.
    pub(crate) fn read<'de, D: Deserializer<'de>>(
        &self,
        name: &'static str,
        from: D,
    ) -> Result<Sent<W>, D::Error> {
        Ok(match *self {
            Input::Base => Sent::Base(String::deserialize(from)?),
            Input::Word(write) => {
                let value = String::deserialize(from)?;
                Sent::Value(Box::new(move |it| write(it, name, value)))
            }
            Input::Text(write) => sent(write, name, lenient::text(from)?),
            Input::Count(write) => sent(write, name, lenient::count(from)?),
            Input::Flag(write) => sent(write, name, lenient::flag(from)?),
            Input::TextMap(write) => sent(write, name, lenient::labels(from)?),
            Input::Taints(write) => sent(write, name, Option::deserialize(from)?),
        })
    }

    /// The schema of the field in the body of a request.
    pub(crate) fn schema(&self, about: Option<&str>, default: Option<Value>) -> RefOr<Schema> {
        let object = |kind| {
            ObjectBuilder::new().schema_type(kind).description(about).default(default.clone())
        };
        let or_null = |kind| SchemaType::Array(vec![kind, Type::Null]);
        let text = || Schema::from(ObjectBuilder::new().schema_type(Type::String).build());
        let schema = match self {
            Input::Base | Input::Word(_) => object(Type::String.into()),
            Input::Text(_) => object(or_null(Type::String)),
            Input::Flag(_) => object(or_null(Type::Boolean)),
            Input::Count(_) => object(or_null(Type::Integer))
                .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int32)))
                .minimum(Some(0)),
            Input::TextMap(_) => object(or_null(Type::Object))
                .property_names(Some(text()))
                .additional_properties(Some(AdditionalProperties::RefOr(text().into()))),
            Input::Taints(_) => {
                let taints = ArrayBuilder::new().schema_type(or_null(Type::Array));
                let taints = taints.items(Taint::schema()).description(about);
                return Schema::from(taints.build()).into();
            }
        };
        Schema::from(schema.build()).into()
    }
}

fn sent<W: 'static, T: Send + 'static>(
    write: Write<W, Option<T>>,
    name: &'static str,
    value: Option<T>,
) -> Sent<W> {
    Sent::Value(Box::new(move |it| write(it, name, value)))
}
