//! The shape of JSON in the OpenAPI document. A shape is declared next to the code that writes the JSON.

use utoipa::openapi::schema::{
    AdditionalProperties, AnyOfBuilder, ArrayBuilder, ObjectBuilder, SchemaType, Type,
};
use utoipa::openapi::{Ref, RefOr, Schema};

/// The shape of a JSON value.
#[derive(Clone)]
pub struct Shape(RefOr<Schema>);

impl Shape {
    /// A string with any content.
    pub fn text() -> Shape {
        Shape::of(Type::String)
    }

    /// A string out of these words.
    pub fn word<const N: usize>(words: [&str; N]) -> Shape {
        ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words)).into()
    }

    /// An integer.
    pub fn whole() -> Shape {
        Shape::of(Type::Integer)
    }

    /// A number.
    pub fn number() -> Shape {
        Shape::of(Type::Number)
    }

    /// A boolean.
    pub fn flag() -> Shape {
        Shape::of(Type::Boolean)
    }

    /// The value `null`.
    pub fn null() -> Shape {
        Shape::of(Type::Null)
    }

    /// Any value, because the content belongs to a client or to another service.
    pub fn anything() -> Shape {
        ObjectBuilder::new().schema_type(SchemaType::AnyValue).into()
    }

    /// An object with any content.
    pub fn open() -> Shape {
        Shape::of(Type::Object)
    }

    /// A list of elements of this shape.
    pub fn list(of: Shape) -> Shape {
        Shape(Schema::from(ArrayBuilder::new().items(of.0).build()).into())
    }

    /// An object with any keys, and values of this shape.
    pub fn map(of: Shape) -> Shape {
        let each = AdditionalProperties::RefOr(of.0);
        ObjectBuilder::new().schema_type(Type::Object).additional_properties(Some(each)).into()
    }

    /// An object with exactly these fields.
    pub fn object<const N: usize>(fields: [(&str, Shape); N]) -> Shape {
        let closed = AdditionalProperties::<Schema>::FreeForm(false);
        let empty = ObjectBuilder::new().schema_type(Type::Object);
        Shape::from(empty.additional_properties(Some(closed))).and(fields)
    }

    /// A value of one of two shapes.
    pub fn either(one: Shape, other: Shape) -> Shape {
        Shape(Schema::from(AnyOfBuilder::new().item(one.0).item(other.0).build()).into())
    }

    /// The two links that [`crate::Links`] writes.
    pub fn links() -> Shape {
        Shape::list(Shape::object([("href", Shape::text()), ("rel", Shape::text())]))
    }

    /// An object with a list under this name, and the link to the next page if there is one.
    pub fn page(name: &str, of: Shape) -> Shape {
        Shape::object([(name, Shape::list(of))]).maybe([("next", Shape::text())])
    }

    /// Adds required fields to an object.
    pub fn and<const N: usize>(mut self, fields: [(&str, Shape); N]) -> Shape {
        for (name, shape) in fields {
            self = self.with(name, shape);
            if let RefOr::T(Schema::Object(object)) = &mut self.0 {
                object.required.push(name.to_owned());
            }
        }
        self
    }

    /// Adds optional fields to an object.
    pub fn maybe<const N: usize>(self, fields: [(&str, Shape); N]) -> Shape {
        fields.into_iter().fold(self, |object, (name, shape)| object.with(name, shape))
    }

    /// Also permits `null`.
    pub fn or_null(self) -> Shape {
        let nullable = |kind: SchemaType| match kind {
            SchemaType::Type(one) => SchemaType::Array(vec![one, Type::Null]),
            more @ (SchemaType::Array(_) | SchemaType::AnyValue) => more,
        };
        match self.0 {
            RefOr::T(Schema::Object(mut object)) if object.enum_values.is_none() => {
                object.schema_type = nullable(object.schema_type);
                Shape(Schema::Object(object).into())
            }
            RefOr::T(Schema::Array(mut list)) => {
                list.schema_type = nullable(list.schema_type);
                Shape(Schema::Array(list).into())
            }
            other @ (RefOr::Ref(_) | RefOr::T(_)) => Shape::either(Shape(other), Shape::null()),
        }
    }

    fn of(kind: Type) -> Shape {
        ObjectBuilder::new().schema_type(kind).into()
    }

    fn with(mut self, name: &str, shape: Shape) -> Shape {
        if let RefOr::T(Schema::Object(object)) = &mut self.0 {
            object.properties.insert(name.to_owned(), shape.0);
        }
        self
    }

    /// A reference to the schema of this name in the document.
    pub(crate) fn called(name: &str) -> Shape {
        Shape(Ref::from_schema_name(name).into())
    }
}

impl From<ObjectBuilder> for Shape {
    fn from(object: ObjectBuilder) -> Shape {
        Shape(Schema::from(object.build()).into())
    }
}

impl From<Shape> for RefOr<Schema> {
    fn from(shape: Shape) -> RefOr<Schema> {
        shape.0
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn check(shape: Shape, want: Value) {
        assert_eq!(serde_json::to_value(shape.0).unwrap(), want);
    }

    #[test]
    fn shapes_become_json_schema() {
        check(Shape::text().or_null(), json!({"type": ["string", "null"]}));
        check(Shape::word(["a", "b"]), json!({"type": "string", "enum": ["a", "b"]}));
        check(Shape::anything().or_null(), json!({}));
        check(
            Shape::object([("a", Shape::whole())]).maybe([("b", Shape::list(Shape::flag()))]),
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
            Shape::map(Shape::called("Cat")),
            json!({"type": "object", "additionalProperties": {"$ref": "#/components/schemas/Cat"}}),
        );
        check(
            Shape::word(["a"]).or_null(),
            json!({"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]}),
        );
    }
}
