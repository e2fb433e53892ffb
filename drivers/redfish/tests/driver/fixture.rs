//! A small HTTP server for tests: serves a tree of JSON resources by path, and a script can answer instead.
//!
//! The server shares no code with the driver, and records every request.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::serve::Listener;
use bmc::Bmc;
use hardware::AllowedHosts;
use redfish::{Auth, Connector, Target, Trust};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use url::Url;

pub(crate) const USER: &str = "root";
pub(crate) const PASSWORD: &str = "calvin's secret";

#[derive(Clone, Debug)]
pub(crate) struct ReceivedRequest {
    pub(crate) method: String,
    /// Path and query of the request.
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
    pub(crate) text: String,
}

impl ReceivedRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

type Tree = BTreeMap<String, Value>;
/// Sees a request and the tree, and may answer instead of the tree.
type Script = Box<dyn FnMut(&ReceivedRequest, &mut Tree) -> Option<Response> + Send>;

struct Machine {
    tree: Tree,
    script: Script,
    asked: Vec<ReceivedRequest>,
}

/// A server that runs until it is dropped.
pub(crate) struct Fixture {
    pub(crate) address: Url,
    machine: Arc<Mutex<Machine>>,
    server: JoinHandle<()>,
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Fixture {
    /// Serves `tree`, a JSON object of resources by path; `script` answers first.
    pub(crate) async fn serve(
        tree: &str,
        script: impl FnMut(&ReceivedRequest, &mut Tree) -> Option<Response> + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        Self::serve_on(listener, address, tree, script)
    }

    pub(crate) fn serve_on<L>(
        listener: L,
        address: Url,
        tree: &str,
        script: impl FnMut(&ReceivedRequest, &mut Tree) -> Option<Response> + Send + 'static,
    ) -> Self
    where
        L: Listener,
        L::Addr: std::fmt::Debug,
    {
        let tree = serde_json::from_str(tree).expect("the tree is a JSON object");
        let machine = Machine { tree, script: Box::new(script), asked: Vec::new() };
        let machine = Arc::new(Mutex::new(machine));
        let app = Router::new().fallback(answer).with_state(machine.clone());
        let server = tokio::spawn(async move {
            let _ = axum::serve(listener, app).await;
        });
        Fixture { address, machine, server }
    }

    /// Makes a `Bmc` for this server that logs in by `auth`.
    pub(crate) fn bmc(&self, auth: Auth) -> Bmc {
        Connector::new(b"", AllowedHosts::anywhere()).unwrap().bmc(self.target(auth))
    }

    pub(crate) fn target(&self, auth: Auth) -> Target {
        Target {
            address: self.address.clone(),
            system: None,
            username: USER.to_owned(),
            password: PASSWORD.into(),
            auth,
            trust: Trust::Unverified,
            timeout: Duration::from_secs(5),
        }
    }

    /// Every request so far.
    pub(crate) fn asked(&self) -> Vec<ReceivedRequest> {
        self.machine.lock().unwrap().asked.clone()
    }

    /// Every request that is not a GET, one a line: method, path, body.
    pub(crate) fn changes(&self) -> String {
        let asked = self.asked();
        let changes = asked.iter().filter(|asked| asked.method != "GET");
        let lines = changes.map(|asked| format!("{} {} {}", asked.method, asked.path, asked.body));
        lines.collect::<Vec<_>>().join("\n")
    }

    /// The number of requests for `path` with `method`.
    pub(crate) fn count(&self, method: &str, path: &str) -> usize {
        self.asked().iter().filter(|a| a.method == method && a.path == path).count()
    }
}

/// A script that leaves every request to the tree.
pub(crate) fn silent(_: &ReceivedRequest, _: &mut Tree) -> Option<Response> {
    None
}

pub(crate) fn json(status: u16, body: Value) -> Response {
    let status = StatusCode::from_u16(status).unwrap();
    (status, [("content-type", "application/json")], body.to_string()).into_response()
}

pub(crate) fn empty(status: u16) -> Response {
    StatusCode::from_u16(status).unwrap().into_response()
}

/// An error with one message, in the form of DSP0266 §8.6.
pub(crate) fn refusal(status: u16, id: &str, text: &str) -> Response {
    json(
        status,
        serde_json::json!({"error": {"code": "Base.1.8.GeneralError", "message": "see ExtendedInfo",
            "@Message.ExtendedInfo": [{"MessageId": id, "Message": text}]}}),
    )
}

async fn answer(State(machine): State<Arc<Mutex<Machine>>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body: Bytes = to_bytes(body, 1 << 20).await.unwrap_or_default();
    let asked = ReceivedRequest {
        method: parts.method.to_string(),
        path: parts.uri.path_and_query().map(|path| path.to_string()).unwrap_or_default(),
        headers: parts.headers,
        body: serde_json::from_slice(&body).unwrap_or_default(),
        text: String::from_utf8_lossy(&body).into_owned(),
    };
    let mut machine = machine.lock().unwrap();
    machine.asked.push(asked.clone());
    let Machine { tree, script, .. } = &mut *machine;
    if let Some(answer) = script(&asked, tree) {
        return answer;
    }
    match (asked.method.as_str(), tree.get(asked.path.trim_end_matches('/'))) {
        ("GET", Some(resource)) => json(200, resource.clone()),
        ("GET", None) => refusal(404, "Base.1.8.ResourceMissingAtURI", "no such resource"),
        _ => refusal(405, "Base.1.8.OperationNotAllowed", "nobody expected this"),
    }
}
