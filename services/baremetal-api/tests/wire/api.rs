//! The API on an empty store, called without a socket.

use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use baremetal_api::{App, Reservations, Settings};
use baremetal_conductor::{
    BmcSettings, ClusterdClient, ClusterdIdentity, Conductor, ConsoleSettings, LendingSettings,
    ServiceKey, Settings as ConductorSettings, SweepSettings, UnknownMachines,
};
use baremetal_core::{Node, NodeIdent, Timeouts};
use baremetal_store::Store;
use http::{HeaderMap, Request, Response, StatusCode};
use jiff::Timestamp;
use lease::Terms;
use openstack_api::conformance::OpenApiDocument;
use openstack_api::{AllowedHostNames, Auth, Forwarded, Limits, PlaceCounts, Scheme};
use sealing::Keyring;
use serde_json::Value;
use tempfile::TempDir;
use tower::ServiceExt;

/// The newest microversion.
pub(crate) const NEWEST: &str = "1.115";

/// The id of the node in these tests.
pub(crate) const ID: &str = "7c9e6679-7425-40de-944b-e07fc1f90ae7";

/// The API on an empty store.
pub(crate) struct Api {
    router: Router,
    described: OpenApiDocument,
    conducting: ConductorSettings,
    pub(crate) store: Store,
    /// Holds the sealing keys.
    _folder: TempDir,
}

/// An answer with its whole body.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

async fn described(router: &Router) -> OpenApiDocument {
    let request = Request::get("/openapi.json").body(Body::empty()).unwrap();
    let answer = router.clone().oneshot(request).await.unwrap();
    let bytes = axum::body::to_bytes(answer.into_body(), usize::MAX).await.unwrap();
    OpenApiDocument::by(std::str::from_utf8(&bytes).unwrap())
}

fn noon() -> Timestamp {
    "2026-01-02T03:04:05.000006Z".parse().unwrap()
}

impl Api {
    pub(crate) async fn start() -> Api {
        Api::with(Auth::None).await
    }

    pub(crate) async fn with(auth: Auth) -> Api {
        Api::within(auth, Limits::default()).await
    }

    /// An API whose conductor uses a clusterd at this address, with short intervals.
    pub(crate) async fn beside(clusters: &str) -> Api {
        let mut settings = settings();
        let url = Some(clusters.parse().unwrap());
        settings.clusters = Some(ClusterdClient { url, caller: ClusterdIdentity::Anonymous });
        settings.timeouts.poll_every = Duration::from_millis(5);
        Api::of(Auth::None, Limits::default(), settings).await
    }

    /// An API with these limits.
    pub(crate) async fn within(auth: Auth, limits: Limits) -> Api {
        Api::of(auth, limits, settings()).await
    }

    async fn of(auth: Auth, limits: Limits, conducting: ConductorSettings) -> Api {
        let folder = tempfile::tempdir().unwrap();
        let keys = Keyring::open(&folder.path().join("seal.keys"), &[]).unwrap();
        let store = Store::open("sqlite::memory:").await.unwrap();
        let store = store.with_keys(Arc::new(keys)).await.unwrap();
        let conductor =
            Conductor::new(conducting.clone(), store.clone(), ServiceKey::random()).await.unwrap();
        let settings = Settings {
            scheme: Scheme::Http,
            forwarded: Forwarded::Ignored,
            hosts: AllowedHostNames::new(
                [127, 0, 0, 1].into(),
                vec!["api".to_owned().try_into().unwrap()],
            ),
            limits,
            power_timeout: Duration::from_secs(60),
            consoles_each: NonZeroUsize::MIN,
            allocations_each: NonZeroU32::MIN.saturating_add(1),
            reservations: Reservations { nodes_per_project: 1, lease: terms() },
        };
        let app = App {
            store: store.clone(),
            conductor,
            clock: noon,
            auth,
            lookers: PlaceCounts::default(),
            settings,
        };
        let router = baremetal_api::router(app);
        let described = described(&router).await;
        Api { router, store, described, conducting, _folder: folder }
    }

    /// Another conductor on the same store, as after a restart.
    pub(crate) async fn conductor(&self) -> Conductor {
        let key = ServiceKey::random();
        Conductor::new(self.conducting.clone(), self.store.clone(), key).await.unwrap()
    }

    /// Sends a request; a body, if not empty, is sent as JSON.
    pub(crate) async fn send(&self, method: &str, path: &str, version: &str, body: &str) -> Answer {
        let mut request = Request::builder().method(method).uri(path).header("host", "api:6385");
        if !version.is_empty() {
            request = request.header("x-openstack-ironic-api-version", version);
        }
        if !body.is_empty() {
            request = request.header("content-type", "application/json");
        }
        self.raw(request.body(Body::from(body.to_owned())).unwrap()).await
    }

    /// Sends a request and returns the answer with its body unread.
    pub(crate) async fn open(&self, request: Request<Body>) -> Response<Body> {
        self.router.clone().oneshot(request).await.unwrap()
    }

    /// Sends a request and checks that the OpenAPI document describes the answer.
    pub(crate) async fn raw(&self, request: Request<Body>) -> Answer {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let answer = self.router.clone().oneshot(request).await.unwrap();
        let (head, body) = answer.into_parts();
        let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        self.described.check(&method, &path, head.status, &head.headers, &text);
        Answer { status: head.status, headers: head.headers, text }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, NEWEST, "").await
    }

    /// Enrolls a node with the id `ID`, with `more` added to the body.
    pub(crate) async fn enroll(&self, more: &str) {
        let body = format!(r#"{{"uuid": "{ID}", "driver": "fake-hardware"{more}}}"#);
        self.send("POST", "/v1/nodes", NEWEST, &body).await.has(201);
    }

    /// Changes the node `ID` in the store, bypassing the API.
    pub(crate) async fn edit(&self, change: impl FnOnce(&mut Node)) {
        let ident: NodeIdent = ID.parse().unwrap();
        let mut node = self.store.find_node(&ident).await.unwrap().unwrap();
        change(&mut node);
        self.store.update_node(&node, &[]).await.unwrap();
    }
}

/// Leases of two days by default, and of ten days at most.
fn terms() -> Terms {
    let length = |text: &str| text.parse().ok();
    Terms::new(length("2d"), length("10d")).unwrap()
}

fn settings() -> ConductorSettings {
    let minute = Duration::from_secs(60);
    ConductorSettings {
        hostname: "host-1".to_owned(),
        workers: 1,
        timeouts: Timeouts {
            bmc: minute,
            power: minute,
            boot: minute,
            command: minute,
            silence: minute,
            ask_again: minute,
            poll_every: minute,
        },
        bmc: BmcSettings {
            request_timeout: minute,
            requests_per_second: 10,
            burst: 10,
            allow_unverified: true,
            authorities: Vec::new(),
            allowed: Default::default(),
        },
        image_hosts: Default::default(),
        sweep: SweepSettings { every: minute, at_once: 1 },
        look_every: minute,
        consoles: ConsoleSettings::default(),
        lending: LendingSettings::default(),
        clusters: None,
        provisioning_url: None,
        leases: None,
        cloud: None,
        unknown_machines: UnknownMachines::Refuse,
        kernel_parameters: Vec::new(),
        heartbeat_timeout: minute,
    }
}

impl Answer {
    /// Checks the status.
    #[track_caller]
    pub(crate) fn has(self, status: u16) -> Answer {
        assert_eq!(self.status.as_u16(), status, "{}", self.text);
        self
    }

    /// The body as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|why| panic!("{why}: {}", self.text))
    }

    /// Checks that the body is this JSON.
    #[track_caller]
    pub(crate) fn is(&self, want: &str) {
        let want: Value = serde_json::from_str(want).unwrap();
        let got = self.json();
        assert!(got == want, "got {got:#}\nwant {want:#}");
    }

    /// Checks that the answer is a handler's refusal with this message, in Ironic's envelope.
    #[track_caller]
    pub(crate) fn refuses(self, status: u16, words: &str) {
        let answer = self.has(status);
        let inner: Value =
            serde_json::from_str(answer.json()["error_message"].as_str().unwrap()).unwrap();
        let faultcode = if status < 500 { "Client" } else { "Server" };
        assert_eq!(inner["faultcode"], faultcode);
        assert_eq!(inner["debuginfo"], Value::Null);
        assert_eq!(inner["faultstring"], words);
    }
}
