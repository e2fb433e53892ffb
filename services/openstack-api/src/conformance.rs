//! Checks that answers conform to the OpenAPI document. The tests of an API pass every answer through this check.
//!
//! Supports only the parts of JSON Schema that [`crate::JsonShape`] produces, and panics at any other.
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "it is a part of tests, where to end is to tell"
)]

mod document;
mod lists;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method, StatusCode};
use serde_json::Value;

pub use document::{check_answers, check_references, check_routes, check_rows};
pub use lists::{MemoryBound, check_list, lists};

/// The OpenAPI document of an API.
pub struct OpenApiDocument {
    document: Value,
}

impl OpenApiDocument {
    /// Parses the text of an OpenAPI document.
    pub fn by(document: &str) -> Self {
        OpenApiDocument { document: serde_json::from_str(document).unwrap() }
    }

    /// Checks that the document describes this answer to a request of `method` to `path`. Requests to paths that the document does not
    /// contain are not checked.
    ///
    /// # Panics
    ///
    /// Panics if the document describes no such answer.
    pub fn check(
        &self,
        method: &Method,
        path: &str,
        status: StatusCode,
        headers: &HeaderMap,
        body: &str,
    ) {
        let Some(operation) = self.operation(method, path) else { return };
        let what = format!("{method} {path}: {status}");
        let answer = resolve(&self.document, &operation["responses"][status.as_str()]);
        assert!(answer.is_object(), "{what} is not described: {body}");
        let Some(content) = answer["content"].as_object() else {
            assert!(body.is_empty(), "{what} is described as without a body: {body}");
            return;
        };
        let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("");
        let kind = kind.split(';').next().unwrap_or(kind);
        let Some(described) = content.get(kind) else {
            panic!("{what} is not described as {kind:?}: {body}");
        };
        if kind == "application/json" {
            let body: Value = serde_json::from_str(body).unwrap();
            if let Err(why) = self.fits(&described["schema"], &body, "") {
                panic!("{what} is not as described: {why}: {body}");
            }
        }
    }

    /// The path of the document that describes a request: of the matching paths, the one with the fewest parameters.
    pub fn route(&self, method: &Method, path: &str) -> Option<&str> {
        self.find(method, path).map(|(template, _)| template)
    }

    fn operation(&self, method: &Method, path: &str) -> Option<&Value> {
        self.find(method, path).map(|(_, operation)| operation)
    }

    fn find(&self, method: &Method, path: &str) -> Option<(&str, &Value)> {
        let path = if path.len() > 1 { path.trim_end_matches('/') } else { path };
        let asked: Vec<&str> = path.split('/').collect();
        let all = self.document["paths"].as_object().unwrap().iter();
        let fits = all.filter(|(template, _)| {
            let parts: Vec<&str> = template.split('/').collect();
            let same = |(part, asked): (&&str, &&str)| part.starts_with('{') || part == asked;
            parts.len() == asked.len() && parts.iter().zip(&asked).all(same)
        });
        let (template, item) = fits.min_by_key(|(template, _)| template.matches('{').count())?;
        Some((template.as_str(), item.get(method.as_str().to_lowercase())?))
    }

    fn fits(&self, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
        let schema = resolve(&self.document, schema);
        if let Some(any) = schema["anyOf"].as_array() {
            let tried: Vec<_> = any.iter().map(|one| self.fits(one, value, at)).collect();
            let why = tried.iter().filter_map(|tried| tried.clone().err()).collect::<Vec<_>>();
            return if why.len() < tried.len() { Ok(()) } else { Err(why.join(", nor ")) };
        }
        let Some(kind) = schema.get("type") else { return Ok(()) };
        let kinds = kind.as_array().cloned().unwrap_or_else(|| vec![kind.clone()]);
        if !kinds.iter().any(|kind| is(kind, value)) {
            return Err(format!("{at} is no {kinds:?}"));
        }
        if let Some(words) = schema["enum"].as_array()
            && !words.contains(value)
        {
            return Err(format!("{at} is none of {words:?}"));
        }
        for (number, item) in value.as_array().into_iter().flatten().enumerate() {
            self.fits(&schema["items"], item, &format!("{at}[{number}]"))?;
        }
        let Some(object) = value.as_object() else { return Ok(()) };
        for name in schema["required"].as_array().into_iter().flatten() {
            if !object.contains_key(name.as_str().unwrap()) {
                return Err(format!("{at} lacks {name}"));
            }
        }
        for (name, value) in object {
            let more = &schema["additionalProperties"];
            let described = schema["properties"].get(name).unwrap_or(more);
            if *described == Value::Bool(false) {
                return Err(format!("{at} has {name}"));
            }
            if described.is_object() {
                self.fits(described, value, &format!("{at}.{name}"))?;
            }
        }
        Ok(())
    }
}

/// The part of the document that `part` refers to, or `part` itself.
fn resolve<'a>(document: &'a Value, part: &'a Value) -> &'a Value {
    match part["$ref"].as_str() {
        Some(reference) => document.pointer(reference.strip_prefix('#').unwrap()).unwrap(),
        None => part,
    }
}

fn is(kind: &Value, value: &Value) -> bool {
    match kind.as_str() {
        Some("string") => value.is_string(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        Some("null") => value.is_null(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        other => panic!("{other:?} is no type of a shape"),
    }
}
