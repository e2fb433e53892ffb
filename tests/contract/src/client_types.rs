//! Compares the types of `api-client` with the answers of a service, and with the OpenAPI document that describes the answers.
//!
//! A type is compared with the document by deserialising it from the schema itself: once from the fullest answer that the schema permits,
//! and once from the sparsest.

use api_client::Listed;
use serde::de::value::{Error, MapDeserializer, SeqDeserializer};
use serde::de::{DeserializeOwned, Deserializer, Error as _, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::Value;

/// A type of the client, and the route whose answer it reads.
#[derive(Clone, Copy, Debug)]
pub struct ClientType {
    /// The method in upper case.
    pub method: &'static str,
    /// The path as the document writes it.
    pub path: &'static str,
    name: fn() -> &'static str,
    /// The list in the answer whose elements have the type; `None` if the whole answer has the type.
    list: Option<&'static str>,
    read: fn(&Value) -> Result<(), String>,
    compare: fn(SchemaAnswer<'_>) -> Result<(), Error>,
}

impl ClientType {
    /// The type of a whole answer.
    pub const fn answer<T: DeserializeOwned>(method: &'static str, path: &'static str) -> Self {
        ClientType {
            method,
            path,
            name: std::any::type_name::<T>,
            list: None,
            read: |answer| T::deserialize(answer).map(drop).map_err(|why| why.to_string()),
            compare: |answer| T::deserialize(answer).map(drop),
        }
    }

    /// The type of the elements of a list.
    pub const fn element<T: Listed>(path: &'static str) -> Self {
        ClientType::part::<T>(path, T::LIST)
    }

    /// The type of the elements of the list with this name.
    pub const fn part<T: DeserializeOwned>(path: &'static str, list: &'static str) -> Self {
        ClientType { list: Some(list), ..ClientType::answer::<T>("GET", path) }
    }

    /// Fails unless the type can be read from this answer of the service.
    #[track_caller]
    pub(crate) fn check_answer(&self, answer: &Value) {
        let read = |one: &Value| {
            if let Err(why) = (self.read)(one) {
                panic!("{} cannot be read: {why}: {one}", (self.name)());
            }
        };
        match self.list {
            None => read(answer),
            Some(list) => answer[list].as_array().expect("a list").iter().for_each(read),
        }
    }

    fn differences(&self, document: &Value) -> Vec<String> {
        let (method, name) = (self.method.to_lowercase(), (self.name)());
        let answers = document["paths"][self.path][&method]["responses"].as_object();
        let mut answers =
            answers.into_iter().flatten().filter(|(status, _)| status.starts_with('2'));
        let schema =
            answers.find_map(|(_, answer)| answer.pointer("/content/application~1json/schema"));
        let Some(schema) = schema else {
            return vec![format!("{name}: {} {} answers without JSON", self.method, self.path)];
        };
        let schema = match self.list {
            None => schema,
            Some(list) => &schema["properties"][list]["items"],
        };
        let tried = [Extent::Full, Extent::Sparse].map(|extent| {
            let answer = SchemaAnswer::new(document, schema, extent, String::new());
            (self.compare)(answer)
                .err()
                .map(|why| format!("{name} from {extent:?} {}: {why}", self.path))
        });
        tried.into_iter().flatten().collect()
    }
}

/// Fails unless each type has only fields that the document describes, with their types, and reads answers without the optional fields.
///
/// # Panics
///
/// Panics with all differences.
#[track_caller]
pub fn check_client_types(document: &Value, types: &[ClientType]) {
    let differences: Vec<String> = types.iter().flat_map(|one| one.differences(document)).collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// The extent of the answer that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    Full,
    /// With the required fields, and with `null` where it is permitted.
    Sparse,
}

/// An answer that a schema permits.
#[derive(Clone)]
struct SchemaAnswer<'a> {
    document: &'a Value,
    /// The schema without references and without `null`.
    schema: &'a Value,
    may_be_null: bool,
    extent: Extent,
    /// The fields that lead to this part of the answer.
    at: String,
}

impl<'a> SchemaAnswer<'a> {
    fn new(document: &'a Value, schema: &'a Value, extent: Extent, at: String) -> Self {
        if let Some(reference) = schema["$ref"].as_str() {
            let pointer = reference.trim_start_matches('#');
            let schema = document.pointer(pointer).expect("a reference resolves");
            return SchemaAnswer::new(document, schema, extent, at);
        }
        if let Some(any) = schema["anyOf"].as_array() {
            let is_null = |one: &&Value| one["type"] == "null";
            let may_be_null = any.iter().any(|one| is_null(&one));
            let first = any.iter().find(|one| !is_null(one)).expect("a schema besides null");
            let first = SchemaAnswer::new(document, first, extent, at);
            return SchemaAnswer { may_be_null: may_be_null || first.may_be_null, ..first };
        }
        let kinds = schema["type"].as_array();
        let may_be_null = kinds.is_some_and(|kinds| kinds.contains(&"null".into()));
        SchemaAnswer { document, schema, may_be_null, extent, at }
    }

    /// The JSON type besides `null`; `None` for anything.
    fn kind(&self) -> Option<&'a str> {
        let kind = &self.schema["type"];
        let of_several = kind.as_array().into_iter().flatten().filter_map(Value::as_str);
        kind.as_str().or_else(|| of_several.into_iter().find(|kind| *kind != "null"))
    }

    /// Fails unless the answer always has one of these JSON types.
    fn is(&self, kinds: &[&str]) -> Result<(), Error> {
        let kind = self.kind();
        if self.may_be_null {
            return Err(Error::custom(format!("{} may be null", self.at)));
        }
        if !kind.is_some_and(|kind| kinds.contains(&kind)) {
            return Err(Error::custom(format!("{} is {kind:?} and not {kinds:?}", self.at)));
        }
        Ok(())
    }

    fn words(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str)
    }

    /// A text that the schema permits. Texts that are times are not told apart in schemas.
    fn text(&self) -> &'a str {
        self.words().next().unwrap_or("2026-01-02T03:04:05Z")
    }

    /// Whether this extent of the answer has the field.
    fn has(&self, field: &str) -> bool {
        let required = self.schema["required"].as_array();
        self.extent == Extent::Full
            || required.is_some_and(|required| required.iter().any(|name| name == field))
    }

    fn part(&self, schema: &'a Value, name: &str) -> SchemaAnswer<'a> {
        let at = format!("{}.{name}", self.at);
        SchemaAnswer::new(self.document, schema, self.extent, at)
    }

    /// A list with one element.
    fn items(&self) -> [SchemaAnswer<'a>; 1] {
        [self.part(&self.schema["items"], "[]")]
    }

    /// The entries of an object whose fields the type does not name.
    fn entries(&self) -> Vec<(String, SchemaAnswer<'a>)> {
        let named = self.schema["properties"].as_object().into_iter().flatten();
        let named = named.filter(|(name, _)| self.has(name));
        let named = named.map(|(name, schema)| (name.clone(), self.part(schema, name)));
        let other = &self.schema["additionalProperties"];
        let other = (other.is_object() && self.extent == Extent::Full)
            .then(|| ("key".to_owned(), self.part(other, "key")));
        named.chain(other).collect()
    }
}

impl<'de> IntoDeserializer<'de, Error> for SchemaAnswer<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// Reads a value of a kind that is always present.
macro_rules! read_kinds {
    ($($method:ident $visit:ident $value:expr, $kinds:expr;)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            self.is(&$kinds)?;
            visitor.$visit($value)
        })*
    };
}

impl<'de> Deserializer<'de> for SchemaAnswer<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.may_be_null && self.extent == Extent::Sparse {
            return visitor.visit_unit();
        }
        match self.kind() {
            Some("string") => visitor.visit_str(self.text()),
            Some("integer") => visitor.visit_u64(1),
            Some("number") => visitor.visit_f64(1.0),
            Some("boolean") => visitor.visit_bool(true),
            Some("array") => visitor.visit_seq(SeqDeserializer::new(self.items().into_iter())),
            Some("object") => visitor.visit_map(MapDeserializer::new(self.entries().into_iter())),
            Some(_) | None => visitor.visit_unit(),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.may_be_null && self.extent == Extent::Sparse {
            return visitor.visit_none();
        }
        visitor.visit_some(SchemaAnswer { may_be_null: false, ..self })
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.is(&["string"])?;
        visitor.visit_str(self.text())
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    read_kinds! {
        deserialize_bool visit_bool true, ["boolean"];
        deserialize_i8 visit_i64 1, ["integer"];
        deserialize_i16 visit_i64 1, ["integer"];
        deserialize_i32 visit_i64 1, ["integer"];
        deserialize_i64 visit_i64 1, ["integer"];
        deserialize_u8 visit_u64 1, ["integer"];
        deserialize_u16 visit_u64 1, ["integer"];
        deserialize_u32 visit_u64 1, ["integer"];
        deserialize_u64 visit_u64 1, ["integer"];
        deserialize_f32 visit_f64 1.0, ["number", "integer"];
        deserialize_f64 visit_f64 1.0, ["number", "integer"];
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.is(&["array"])?;
        visitor.visit_seq(SeqDeserializer::new(self.items().into_iter()))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.is(&["object"])?;
        visitor.visit_map(MapDeserializer::new(self.entries().into_iter()))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.is(&["object"])?;
        let mut entries = Vec::new();
        for field in fields {
            let Some(schema) = self.schema["properties"].get(field) else {
                return Err(Error::custom(format!("{} has no field {field}", self.at)));
            };
            if self.has(field) {
                entries.push((*field, self.part(schema, field)));
            }
        }
        visitor.visit_map(MapDeserializer::new(entries.into_iter()))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.is(&["string"])?;
        if let Some(unknown) = self.words().find(|word| !variants.contains(word)) {
            return Err(Error::custom(format!("{} may be {unknown:?}", self.at)));
        }
        let word = variants.first().copied().unwrap_or_default();
        visitor.visit_enum(IntoDeserializer::<Error>::into_deserializer(word))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! { char bytes byte_buf unit unit_struct tuple tuple_struct identifier }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    fn document() -> Value {
        let node = json!({
            "type": "object", "required": ["id", "size"], "additionalProperties": false,
            "properties": {
                "id": {"type": "string"}, "size": {"type": ["integer", "null"]}, "note": {"type": "string"},
            },
        });
        let answer = json!({"200": {"content": {"application/json": {"schema": node}}}});
        json!({"paths": {"/node": {"get": {"responses": answer}}}})
    }

    #[track_caller]
    fn check<T: DeserializeOwned>(want: &[&str]) {
        let found = ClientType::answer::<T>("GET", "/node").differences(&document());
        let whys: Vec<&str> = found.iter().filter_map(|it| it.split(": ").nth(1)).collect();
        assert_eq!(whys, want);
    }

    #[test]
    fn a_type_that_fits_every_answer_has_no_differences() {
        #[derive(Deserialize)]
        #[expect(dead_code, reason = "the fields are only deserialised")]
        struct Fitting {
            id: String,
            size: Option<u64>,
            #[serde(default)]
            note: String,
        }
        check::<Fitting>(&[]);
    }

    #[test]
    fn unknown_fields_other_types_and_absent_values_are_differences() {
        #[derive(Deserialize)]
        #[expect(dead_code, reason = "the fields are only deserialised")]
        struct Misspelt {
            idd: String,
        }
        check::<Misspelt>(&[" has no field idd"; 2]);
        #[derive(Deserialize)]
        #[expect(dead_code, reason = "the fields are only deserialised")]
        struct OtherType {
            id: u64,
        }
        check::<OtherType>(&[r#".id is Some("string") and not ["integer"]"#; 2]);
        #[derive(Deserialize)]
        #[expect(dead_code, reason = "the fields are only deserialised")]
        struct NeverNull {
            size: u64,
        }
        check::<NeverNull>(&[".size may be null"; 2]);
        #[derive(Deserialize)]
        #[expect(dead_code, reason = "the fields are only deserialised")]
        struct AlwaysThere {
            note: String,
        }
        check::<AlwaysThere>(&["missing field `note`"]);
    }
}
