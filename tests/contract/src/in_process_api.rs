//! An API that is called without a socket.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use http::{HeaderMap, Method, Request, StatusCode};
use openstack_api::conformance::OpenApiDocument;
use serde_json::Value;
use tower::ServiceExt;

use crate::client_types::ClientType;

/// The differences between the requests and answers of the APIs.
#[derive(Clone, Copy, Debug)]
pub struct WireFormat {
    /// The host that requests name.
    pub host: &'static str,
    /// The header that names the microversion.
    pub version_header: &'static str,
    pub newest: &'static str,
    /// The JSON pointer to the text of a refusal.
    pub refusal: &'static str,
    /// Fails unless the answer is a refusal with this status and exactly these words.
    pub check_refusal: fn(&Answer, u16, &str),
    /// The types with which our clients read answers.
    pub client_types: &'static [ClientType],
}

/// The routes of an API. Every answer is compared with `/openapi.json`, and read with the types of our clients.
#[derive(Clone)]
pub struct InProcessApi {
    router: Router,
    described: Arc<OpenApiDocument>,
    pub format: WireFormat,
}

/// An answer with its whole body.
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub text: String,
    format: WireFormat,
}

impl InProcessApi {
    /// Serves these routes, and reads the document that describes them.
    pub async fn new(router: Router, format: WireFormat) -> Self {
        let request = Request::get("/openapi.json").body(Body::empty()).unwrap();
        let answer = router.clone().oneshot(request).await.unwrap();
        let described = Arc::new(OpenApiDocument::by(&text(answer.into_body()).await));
        InProcessApi { router, described, format }
    }

    /// Sends a request. A body that is not empty is JSON.
    pub async fn send(&self, method: &str, path: &str, version: &str, body: &str) -> Answer {
        let mut request =
            Request::builder().method(method).uri(path).header("host", self.format.host);
        if !version.is_empty() {
            request = request.header(self.format.version_header, version);
        }
        if !body.is_empty() {
            request = request.header("content-type", "application/json");
        }
        self.raw(request.body(Body::from(body.to_owned())).unwrap()).await
    }

    /// Sends a request, and returns the answer with its body unread.
    pub async fn open(&self, request: Request<Body>) -> Response {
        self.router.clone().oneshot(request).await.unwrap()
    }

    /// Sends a request, and returns the whole answer. Fails if the answer differs from `/openapi.json`.
    pub async fn raw(&self, request: Request<Body>) -> Answer {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        // Our clients request all fields, or read only the fields that they request.
        let is_partial = request.uri().query().is_some_and(|query| query.contains("fields="));
        let version = request.headers().get(self.format.version_header);
        let is_newest = version.is_some_and(|version| version == self.format.newest);
        let (head, body) = self.open(request).await.into_parts();
        let text = text(body).await;
        self.described.check(&method, &path, head.status, &head.headers, &text);
        if head.status.is_success() && is_newest && !is_partial {
            self.check_client_types(&method, &path, &text);
        }
        Answer { status: head.status, headers: head.headers, text, format: self.format }
    }

    /// Fails unless our clients can read the answer.
    fn check_client_types(&self, method: &Method, path: &str, text: &str) {
        let route = self.described.route(method, path);
        let types = self.format.client_types.iter();
        for one in types.filter(|one| one.method == method && Some(one.path) == route) {
            one.check_answer(&serde_json::from_str(text).unwrap());
        }
    }

    /// Sends a `GET` request with the newest microversion.
    pub async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, self.format.newest, "").await
    }

    /// Sends a `POST` request with the newest microversion.
    pub async fn post(&self, path: &str, body: &str) -> Answer {
        self.send("POST", path, self.format.newest, body).await
    }

    /// Sends a `PUT` request with the newest microversion.
    pub async fn put(&self, path: &str, body: &str) -> Answer {
        self.send("PUT", path, self.format.newest, body).await
    }

    /// Sends a `PATCH` request with the newest microversion.
    pub async fn patch(&self, path: &str, body: &str) -> Answer {
        self.send("PATCH", path, self.format.newest, body).await
    }

    /// Sends a `DELETE` request with the newest microversion.
    pub async fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, self.format.newest, "").await
    }
}

async fn text(body: Body) -> String {
    let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    String::from_utf8(bytes.to_vec()).unwrap()
}

impl Answer {
    /// Fails unless the answer has this status.
    #[track_caller]
    pub fn has(self, status: u16) -> Answer {
        assert_eq!(self.status.as_u16(), status, "{}", self.text);
        self
    }

    /// Parses the body as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|why| panic!("{why}: {}", self.text))
    }

    /// Fails unless the body is this JSON.
    #[track_caller]
    pub fn is(&self, want: &str) {
        let want: Value = serde_json::from_str(want).unwrap();
        let got = self.json();
        assert!(got == want, "got {got:#}\nwant {want:#}");
    }

    /// Fails unless the answer is a refusal in the API's envelope with exactly these words.
    #[track_caller]
    pub fn refuses(self, status: u16, words: &str) {
        (self.format.check_refusal)(&self.has(status), status, words);
    }

    /// Fails unless the answer is a refusal of the request, in the API's envelope.
    #[track_caller]
    pub(crate) fn is_refusal_of(&self, what: &str) {
        assert!(self.status.is_client_error(), "{what}: {} {}", self.status, self.text);
        let text = self.json().pointer(self.format.refusal).is_some_and(Value::is_string);
        assert!(text, "{what}: {}", self.text);
        assert!(self.text.len() < 4096, "{what}: a refusal of {} bytes", self.text.len());
    }
}
