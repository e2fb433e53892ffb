//! The shape of JSON in the OpenAPI document. A shape is declared next to the code that writes the JSON.

use newtype_uuid::{TypedUuid, TypedUuidKind};
use utoipa::openapi::schema::{
    AdditionalProperties, AnyOfBuilder, ArrayBuilder, ObjectBuilder, SchemaType, Type,
};
use utoipa::openapi::{Ref, RefOr, Schema};
use uuid::Uuid;

use crate::Time;

/// The shape of a JSON value.
#[derive(Clone)]
pub struct JsonShape(RefOr<Schema>);

impl JsonShape {
    /// A string with any content.
    pub fn text() -> JsonShape {
        JsonShape::of(Type::String)
    }

    /// A string out of these words.
    pub fn enumeration<const N: usize>(words: [&str; N]) -> JsonShape {
        ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words)).into()
    }

    /// An integer.
    pub fn integer() -> JsonShape {
        JsonShape::of(Type::Integer)
    }

    /// A number.
    pub fn number() -> JsonShape {
        JsonShape::of(Type::Number)
    }

    /// A boolean.
    pub fn boolean() -> JsonShape {
        JsonShape::of(Type::Boolean)
    }

    /// The value `null`.
    pub fn null() -> JsonShape {
        JsonShape::of(Type::Null)
    }

    /// Any value, because the content belongs to a client or to another service.
    pub fn anything() -> JsonShape {
        ObjectBuilder::new().schema_type(SchemaType::AnyValue).into()
    }

    /// An object with any content.
    pub fn any_object() -> JsonShape {
        JsonShape::of(Type::Object)
    }

    /// A list of elements of this shape.
    pub fn list(of: JsonShape) -> JsonShape {
        JsonShape(Schema::from(ArrayBuilder::new().items(of.0).build()).into())
    }

    /// An object with any keys, and values of this shape.
    pub fn map(of: JsonShape) -> JsonShape {
        let each = AdditionalProperties::RefOr(of.0);
        ObjectBuilder::new().schema_type(Type::Object).additional_properties(Some(each)).into()
    }

    /// An object with exactly these fields.
    pub fn object<const N: usize>(fields: [(&str, JsonShape); N]) -> JsonShape {
        let closed = AdditionalProperties::<Schema>::FreeForm(false);
        let empty = ObjectBuilder::new().schema_type(Type::Object);
        JsonShape::from(empty.additional_properties(Some(closed))).and(fields)
    }

    /// A value of one of two shapes.
    pub fn either(one: JsonShape, other: JsonShape) -> JsonShape {
        JsonShape(Schema::from(AnyOfBuilder::new().item(one.0).item(other.0).build()).into())
    }

    /// The two links that [`crate::Links`] writes.
    pub fn links() -> JsonShape {
        JsonShape::list(JsonShape::object([
            ("href", JsonShape::text()),
            ("rel", JsonShape::text()),
        ]))
    }

    /// An object with a list under this name, and the link to the next page if there is one.
    pub fn page(name: &str, of: JsonShape) -> JsonShape {
        JsonShape::object([(name, JsonShape::list(of))]).maybe([("next", JsonShape::text())])
    }

    /// Adds required fields to an object.
    pub fn and<const N: usize>(mut self, fields: [(&str, JsonShape); N]) -> JsonShape {
        for (name, shape) in fields {
            self = self.with(name, shape);
            if let RefOr::T(Schema::Object(object)) = &mut self.0 {
                object.required.push(name.to_owned());
            }
        }
        self
    }

    /// Adds optional fields to an object.
    pub fn maybe<const N: usize>(self, fields: [(&str, JsonShape); N]) -> JsonShape {
        fields.into_iter().fold(self, |object, (name, shape)| object.with(name, shape))
    }

    /// Also permits `null`.
    pub fn or_null(self) -> JsonShape {
        let nullable = |kind: SchemaType| match kind {
            SchemaType::Type(one) => SchemaType::Array(vec![one, Type::Null]),
            more @ (SchemaType::Array(_) | SchemaType::AnyValue) => more,
        };
        match self.0 {
            RefOr::T(Schema::Object(mut object)) if object.enum_values.is_none() => {
                object.schema_type = nullable(object.schema_type);
                JsonShape(Schema::Object(object).into())
            }
            RefOr::T(Schema::Array(mut list)) => {
                list.schema_type = nullable(list.schema_type);
                JsonShape(Schema::Array(list).into())
            }
            other @ (RefOr::Ref(_) | RefOr::T(_)) => {
                JsonShape::either(JsonShape(other), JsonShape::null())
            }
        }
    }

    fn of(kind: Type) -> JsonShape {
        ObjectBuilder::new().schema_type(kind).into()
    }

    fn with(mut self, name: &str, shape: JsonShape) -> JsonShape {
        if let RefOr::T(Schema::Object(object)) = &mut self.0 {
            object.properties.insert(name.to_owned(), shape.0);
        }
        self
    }

    /// A reference to the schema of this name in the document.
    pub(crate) fn called(name: &str) -> JsonShape {
        JsonShape(Ref::from_schema_name(name).into())
    }
}

impl From<ObjectBuilder> for JsonShape {
    fn from(object: ObjectBuilder) -> JsonShape {
        JsonShape(Schema::from(object.build()).into())
    }
}

impl From<JsonShape> for RefOr<Schema> {
    fn from(shape: JsonShape) -> RefOr<Schema> {
        shape.0
    }
}

/// A type whose JSON has a known shape.
pub trait Shaped {
    fn shape() -> JsonShape;
}

/// Implements [`Shaped`] for types that have the same shape.
macro_rules! shapes {
    ($($shape:ident: $($type:ty),*;)*) => {
        $($(impl Shaped for $type {
            fn shape() -> JsonShape {
                JsonShape::$shape()
            }
        })*)*
    };
}

shapes! {
    text: str, String, Uuid, Time;
    boolean: bool;
    integer: u32, u64, usize, i64;
}

impl<K: TypedUuidKind> Shaped for TypedUuid<K> {
    fn shape() -> JsonShape {
        JsonShape::text()
    }
}

impl<T: Shaped + ?Sized> Shaped for &T {
    fn shape() -> JsonShape {
        T::shape()
    }
}

impl<T: Shaped> Shaped for Option<T> {
    fn shape() -> JsonShape {
        T::shape().or_null()
    }
}

impl<T: Shaped> Shaped for [T] {
    fn shape() -> JsonShape {
        JsonShape::list(T::shape())
    }
}

impl<T: Shaped> Shaped for Vec<T> {
    fn shape() -> JsonShape {
        JsonShape::list(T::shape())
    }
}

/// Declares a struct that an answer contains, together with the shape of its JSON. The type of a field implies its shape, unless `= SHAPE`
/// follows the type.
#[macro_export]
macro_rules! shaped {
    (@shape $type:ty) => { <$type as $crate::Shaped>::shape() };
    (@shape $type:ty, $shape:expr) => { $shape };
    ($(#[$meta:meta])* $vis:vis struct $name:ident $(<$life:lifetime>)? {
        $($(#[$about:meta])* $seen:vis $field:ident: $type:ty $(= $shape:expr)?,)*
    }) => {
        $(#[$meta])*
        $vis struct $name $(<$life>)? {
            $($(#[$about])* $seen $field: $type,)*
        }

        impl $(<$life>)? $crate::Shaped for $name $(<$life>)? {
            fn shape() -> $crate::JsonShape {
                $crate::JsonShape::object([
                    $((stringify!($field), $crate::shaped!(@shape $type $(, $shape)?)),)*
                ])
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn check(shape: JsonShape, want: Value) {
        assert_eq!(serde_json::to_value(shape.0).unwrap(), want);
    }

    #[test]
    fn shapes_become_json_schema() {
        check(JsonShape::text().or_null(), json!({"type": ["string", "null"]}));
        check(JsonShape::enumeration(["a", "b"]), json!({"type": "string", "enum": ["a", "b"]}));
        check(JsonShape::anything().or_null(), json!({}));
        check(
            JsonShape::object([("a", JsonShape::integer())])
                .maybe([("b", JsonShape::list(JsonShape::boolean()))]),
            json!({
                "type": "object",
                "additionalProperties": false,
                "required": ["a"],
                "properties": {
                    "a": {"type": "integer"},
                    "b": {"type": "array", "items": {"type": "boolean"}},
                },
            }),
        );
        check(
            JsonShape::map(JsonShape::called("Cat")),
            json!({"type": "object", "additionalProperties": {"$ref": "#/components/schemas/Cat"}}),
        );
        check(
            JsonShape::enumeration(["a"]).or_null(),
            json!({"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]}),
        );
    }

    shaped! {
        #[derive(serde::Serialize)]
        struct Cat<'a> {
            name: &'a str,
            mood: &'a str = JsonShape::enumeration(["calm"]),
            ages: Option<Vec<u32>>,
        }
    }

    #[test]
    fn the_types_of_fields_imply_their_shapes() {
        let cat = serde_json::to_value(Cat { name: "Tom", mood: "calm", ages: None }).unwrap();
        assert_eq!(cat, json!({"name": "Tom", "mood": "calm", "ages": null}));
        check(
            Cat::shape(),
            json!({
                "type": "object",
                "additionalProperties": false,
                "required": ["name", "mood", "ages"],
                "properties": {
                    "name": {"type": "string"},
                    "mood": {"type": "string", "enum": ["calm"]},
                    "ages": {"type": ["array", "null"], "items": {"type": "integer"}},
                },
            }),
        );
    }
}
