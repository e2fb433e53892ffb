//! Malformed requests to every route: each one gets a refusal that names the mistake, never a 5xx.

use axum::body::Body;
use http::Request;
use http::request::Builder;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Map, Value, json};

use crate::InProcessApi;

/// An API, and the parts of the requests to it.
pub struct HostileRequests {
    pub api: InProcessApi,
    /// Every route that reads a body: its method, its path, and a body that it accepts.
    pub readers: Vec<(&'static str, String, Value)>,
    /// The largest body that the API reads, in bytes.
    pub largest_body: usize,
    /// The ends of the paths that accept unknown fields.
    pub ignore_unknown_fields: &'static [&'static str],
    /// The fields that accept a list of lists.
    pub any_type: &'static [&'static str],
    /// The names of query parameters, as alternatives of a regular expression.
    pub query_names: &'static str,
}

impl HostileRequests {
    fn request(&self, method: &str, path: &str) -> Builder {
        let format = self.api.format;
        Request::builder().method(method).uri(path).header(format.version_header, format.newest)
    }

    /// Every reader refuses a body that is not JSON, is nested too deep, is too large, or has another content type.
    pub async fn invalid_json(&self) {
        let huge = vec![b' '; self.largest_body + 1];
        for (method, path, body) in &self.readers {
            let deep = format!("{{{:?}: {}", first_field(body).0, "[".repeat(100_000));
            for body in [
                &b"{"[..],
                b"\xff\xfe",
                b"{\"a\": \"\xff\"}",
                b"nul",
                b"[[[[",
                deep.as_bytes(),
                &huge,
            ] {
                let request = self.request(method, path).header("content-type", "application/json");
                let answer = self.api.raw(request.body(Body::from(body.to_vec())).unwrap()).await;
                answer.is_refusal_of(&format!("{method} {path}"));
            }
            let request = self.request(method, path).header("content-type", "text/plain");
            self.api.raw(request.body(Body::from("{}")).unwrap()).await.has(415);
        }
    }

    /// Every reader refuses a body with the same key twice, and names the key.
    pub async fn duplicate_key(&self) {
        for (method, path, body) in &self.readers {
            let (key, value) = first_field(body);
            let text = body.to_string().replacen('{', &format!("{{{key:?}:{value},"), 1);
            let request = self.request(method, path).header("content-type", "application/json");
            let answer = self.api.raw(request.body(Body::from(text)).unwrap()).await.has(400);
            answer.is_refusal_of(&format!("{method} {path}"));
            let named = answer.text.contains(key) && answer.text.contains("duplicate key");
            assert!(named, "{method} {path}: {}", answer.text);
        }
    }

    /// Every reader refuses an unknown field, and names the field.
    pub async fn unknown_field(&self) {
        for (method, path, body) in &self.readers {
            if self.ignore_unknown_fields.iter().any(|end| path.ends_with(end)) {
                continue;
            }
            let mut body = body.clone();
            let part = if body.is_array() { &mut body[0] } else { &mut body };
            part["zebra"] = json!(1);
            let answer =
                self.api.send(method, path, self.api.format.newest, &body.to_string()).await;
            answer.is_refusal_of(path);
            assert!(answer.text.contains("zebra"), "{path}: {}", answer.text);
        }
    }

    /// Every reader refuses a field of another type, and names the field.
    pub async fn wrong_type(&self) {
        for (method, path, body) in &self.readers {
            let fields = body.get(0).unwrap_or(body).as_object().unwrap().keys();
            for field in fields.filter(|field| !self.any_type.contains(&field.as_str())) {
                let mut wrong = body.clone();
                let part = if wrong.is_array() { &mut wrong[0] } else { &mut wrong };
                part[field] = json!([[7]]);
                let answer =
                    self.api.send(method, path, self.api.format.newest, &wrong.to_string()).await;
                answer.is_refusal_of(&format!("{method} {path} {field}"));
                assert!(answer.text.contains(field.as_str()), "{path}: {field}: {}", answer.text);
            }
        }
    }

    /// No body causes a 5xx: neither any JSON, nor an accepted body with any JSON in one field.
    pub async fn any_body(&self) {
        let mut runner = TestRunner::new(Config::default());
        let whole = any_json().prop_map(|value| (None, value));
        let one_field =
            (any::<prop::sample::Index>(), any_json()).prop_map(|(at, value)| (Some(at), value));
        let strategy = (0..self.readers.len(), prop_oneof![whole, one_field]);
        for _ in 0..400 {
            let (reader, (at, value)) = strategy.new_tree(&mut runner).unwrap().current();
            let (method, path, good) = &self.readers[reader];
            let body = match (at, good) {
                (None, _) => value,
                (Some(at), Value::Array(list)) => {
                    let mut operation = list[0].clone();
                    let field = ["op", "path", "value"][at.index(3)];
                    operation[field] = value;
                    json!([operation])
                }
                (Some(at), good) => {
                    let mut changed = good.clone();
                    let object = changed.as_object_mut().unwrap();
                    let key = object.keys().nth(at.index(object.len())).unwrap().clone();
                    object.insert(key, value);
                    changed
                }
            };
            let answer =
                self.api.send(method, path, self.api.format.newest, &body.to_string()).await;
            let (status, text) = (answer.status, answer.text);
            assert!(!status.is_server_error(), "{method} {path} {body}: {status} {text}");
        }
    }

    /// No path and no query causes a 5xx.
    pub async fn any_path_and_query(&self) {
        let document = self.api.get("/openapi.json").await.json();
        let paths: Vec<String> = document["paths"].as_object().unwrap().keys().cloned().collect();
        let mut runner = TestRunner::new(Config::default());
        let query = proptest::collection::vec((self.query_names, "[a-z0-9%,.-]{0,10}"), 0..3);
        let strategy = (0..paths.len(), "[a-z0-9%.~-]{1,12}", query);
        for _ in 0..600 {
            let (path, segment, query) = strategy.new_tree(&mut runner).unwrap().current();
            let mut path = paths[path].clone();
            while let Some(begin) = path.find('{') {
                let end = path[begin..].find('}').unwrap() + begin;
                path.replace_range(begin..=end, &segment);
            }
            let query: Vec<String> =
                query.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let uri = format!("{path}?{}", query.join("&"));
            if uri.parse::<http::Uri>().is_err() {
                continue;
            }
            let answer = self.api.get(&uri).await;
            assert!(!answer.status.is_server_error(), "{uri}: {} {}", answer.status, answer.text);
        }
    }
}

fn first_field(body: &Value) -> (&String, &Value) {
    body.get(0).unwrap_or(body).as_object().unwrap().iter().next().unwrap()
}

/// Any JSON of moderate size.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((".{0,8}", inner), 0..4)
                .prop_map(|pairs| Value::Object(Map::from_iter(pairs))),
        ]
    })
}

/// Makes one test of each kind of malformed request. `$check` runs a test of [`HostileRequests`] on an API.
#[macro_export]
macro_rules! hostile_tests {
    ($check:ident) => {
        $crate::hostile_tests! { $check:
            invalid_json_is_refused_everywhere: invalid_json,
            a_duplicate_key_is_refused_everywhere: duplicate_key,
            an_unknown_field_is_named_everywhere: unknown_field,
            a_wrong_type_is_named_everywhere: wrong_type,
            no_body_causes_a_5xx: any_body,
            no_path_or_query_causes_a_5xx: any_path_and_query,
        }
    };
    ($check:ident: $($name:ident: $test:ident,)*) => {$(
        #[tokio::test]
        async fn $name() {
            $check($crate::hostile::HostileRequests::$test).await;
        }
    )*};
}
