//! The API on an empty store, called without a socket.

use std::num::{NonZeroU32, NonZeroUsize};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use api_client::Credentials;
use baremetal_api::{App, Reservations, Settings};
use baremetal_conductor::{ClusterdClient, Conductor, ServiceKey, Settings as ConductorSettings};
use baremetal_core::{Node, NodeIdent};
use baremetal_store::Store;
use contract::{InProcessApi, WireFormat};
use jiff::Timestamp;
use lease::Terms;
use openstack_api::{ApiSettings, Auth, Limits, PlaceCounts};
use rusqlite::Connection;
use sealing::Keyring;
use serde_json::Value;
use tempfile::TempDir;

use crate::client_types;

pub(crate) use contract::Answer;

pub(crate) const NEWEST: &str = "1.115";

/// The id of the node in these tests.
pub(crate) const ID: &str = "7c9e6679-7425-40de-944b-e07fc1f90ae7";

pub(crate) struct Api {
    routes: InProcessApi,
    conducting: ConductorSettings,
    pub(crate) store: Store,
    /// Holds the sealing keys.
    _folder: TempDir,
}

impl Deref for Api {
    type Target = InProcessApi;

    fn deref(&self) -> &InProcessApi {
        &self.routes
    }
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
        let mut settings = ConductorSettings::sample(noon);
        let url = Some(clusters.parse().unwrap());
        settings.clusters = Some(ClusterdClient::new(url, Credentials::Anonymous));
        settings.timeouts.poll_every = Duration::from_millis(5);
        Api::of(Auth::None, Limits::default(), settings).await
    }

    pub(crate) async fn within(auth: Auth, limits: Limits) -> Api {
        Api::of(auth, limits, ConductorSettings::sample(noon)).await
    }

    /// An API on a database file, and a connection to the file that bypasses the service.
    pub(crate) async fn on_a_file() -> (Api, Connection) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("bedplate.db");
        let settings = ConductorSettings::sample(noon);
        let url = format!("sqlite://{}", file.display());
        let api = Api::at(&url, folder, Auth::None, Limits::default(), settings).await;
        (api, Connection::open(file).unwrap())
    }

    async fn of(auth: Auth, limits: Limits, conducting: ConductorSettings) -> Api {
        let folder = tempfile::tempdir().unwrap();
        Api::at("sqlite::memory:", folder, auth, limits, conducting).await
    }

    async fn at(
        url: &str,
        folder: TempDir,
        auth: Auth,
        limits: Limits,
        mut conducting: ConductorSettings,
    ) -> Api {
        conducting.groups = ["", "g", "g1"].map(str::to_owned).to_vec();
        let keys = Keyring::open(&folder.path().join("seal.keys"), &[]).unwrap();
        let store = Store::open(url).await.unwrap();
        let store = store.with_keys(Arc::new(keys)).await.unwrap();
        let conductor =
            Conductor::new(conducting.clone(), store.clone(), ServiceKey::random()).await.unwrap();
        let settings = Settings {
            api: ApiSettings::sample(limits),
            power_timeout: Duration::from_secs(60),
            consoles_each: NonZeroUsize::MIN,
            novnc_url: None,
            allocations_each: NonZeroU32::MIN.saturating_add(1),
            reservations: Reservations { nodes_per_project: 1, lease: terms() },
            serves_agents: false,
        };
        let app = App {
            store: store.clone(),
            conductor,
            clock: noon,
            auth,
            lookers: PlaceCounts::default(),
            settings,
        };
        let format = WireFormat {
            host: "api:6385",
            version_header: "x-openstack-ironic-api-version",
            newest: NEWEST,
            refusal: "/error_message",
            check_refusal,
            client_types: client_types::TYPES,
        };
        let routes = InProcessApi::new(baremetal_api::router(app), format).await;
        Api { routes, store, conducting, _folder: folder }
    }

    /// Another conductor on the same store, as after a restart.
    pub(crate) async fn conductor(&self) -> Conductor {
        let key = ServiceKey::random();
        Conductor::new(self.conducting.clone(), self.store.clone(), key).await.unwrap()
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

/// Checks that the answer is a handler's refusal with this message, in Ironic's envelope.
fn check_refusal(answer: &Answer, status: u16, words: &str) {
    let inner: Value =
        serde_json::from_str(answer.json()["error_message"].as_str().unwrap()).unwrap();
    let faultcode = if status < 500 { "Client" } else { "Server" };
    assert_eq!(inner["faultcode"], faultcode);
    assert_eq!(inner["debuginfo"], Value::Null);
    assert_eq!(inner["faultstring"], words);
}
