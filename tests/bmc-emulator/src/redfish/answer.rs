//! A response, before it is serialized.

use bytes::Bytes;
use http::{HeaderValue, Method, Response, StatusCode, header};
use http_body_util::Full;
use serde_json::Value;

/// Status, headers and body.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    headers: Vec<(&'static str, String)>,
    body: Body,
}

#[derive(Debug)]
enum Body {
    None,
    Json(Value),
    Xml(&'static str),
}

impl Answer {
    pub(crate) fn empty(status: StatusCode) -> Answer {
        Answer { status, headers: Vec::new(), body: Body::None }
    }

    pub(crate) fn json(status: StatusCode, body: Value) -> Answer {
        Answer { status, headers: Vec::new(), body: Body::Json(body) }
    }

    pub(crate) fn xml(body: &'static str) -> Answer {
        Answer { status: StatusCode::OK, headers: Vec::new(), body: Body::Xml(body) }
    }

    pub(crate) fn with(mut self, name: &'static str, value: String) -> Answer {
        self.headers.push((name, value));
        self
    }

    pub(crate) fn with_tag(self, tag: Option<String>) -> Answer {
        match tag {
            Some(tag) => self.with("etag", tag),
            None => self,
        }
    }

    /// DSP0266 §8.2: every response contains its OData version and forbids caching.
    pub(crate) fn into_response(self, method: &Method) -> Response<Full<Bytes>> {
        let (content_type, bytes) = match self.body {
            Body::None => (None, Bytes::new()),
            Body::Json(value) => {
                (Some("application/json; charset=utf-8"), Bytes::from(value.to_string()))
            }
            Body::Xml(text) => {
                (Some("application/xml; charset=utf-8"), Bytes::from_static(text.as_bytes()))
            }
        };
        let length = bytes.len();
        let shown = if method == Method::HEAD { Bytes::new() } else { bytes };

        let mut response = Response::new(Full::new(shown));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert("odata-version", HeaderValue::from_static("4.0"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        if let Some(content_type) = content_type {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
            headers.insert(header::CONTENT_LENGTH, length.into());
        }
        for (name, value) in self.headers {
            if let Ok(value) = HeaderValue::from_str(&value) {
                headers.insert(name, value);
            }
        }
        response
    }
}
