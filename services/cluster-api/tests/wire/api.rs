//! The API on an empty store, called without a socket.

use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cluster_api::{App, LeaseSettings, Settings, Streams};
use cluster_conductor::{
    BackupPlace, BackupSettings, Conductor, OfferedImage, Settings as ConductorSettings, VmSettings,
};
use cluster_core::{
    BackupRules, DefaultLimits, Limit, Limits, RepairLimits, Resource, UserDataFormat,
};
use cluster_store::Store;
use contract::{InProcessApi, WireFormat};
use jiff::{SignedDuration, Timestamp};
use lease::{LeaseSchedule, Terms};
use openstack::{CloudConfig, Session};
use openstack_api::{ApiSettings, Auth};
use openstack_emulator::Cloud;
use sealing::SealingKeys;
use uuid::Uuid;

use crate::client_types;

pub(crate) use contract::Answer;

pub(crate) const NEWEST: &str = "container-infra 1.14";

/// The API on an empty store. Every response is compared with `/openapi.json`.
pub(crate) struct Api {
    routes: InProcessApi,
    pub(crate) store: Store,
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

fn vms() -> VmSettings {
    let image = OfferedImage {
        name: "cirros".to_owned(),
        user_data_format: UserDataFormat::CloudInit,
        min_disk_gib: 5,
        min_ram_mib: 0,
    };
    VmSettings {
        images: vec![image],
        network: Some("lab".to_owned()),
        zone: Some("vms.example.".to_owned()),
        ..VmSettings::default()
    }
}

impl Api {
    pub(crate) async fn start() -> Api {
        Api::with(Auth::None).await
    }

    pub(crate) async fn with(auth: Auth) -> Api {
        let store = Store::open("sqlite::memory:").await.unwrap();
        Api::of(auth, store, Streams::at_most(8), None).await
    }

    pub(crate) async fn within(auth: Auth, limits: openstack_api::Limits) -> Api {
        let store = Store::open("sqlite::memory:").await.unwrap();
        Api::limited(auth, store, Streams::at_most(8), None, limits).await
    }

    /// Starts the API with a cloud. No conductor runs, so nothing is created in the cloud.
    pub(crate) async fn in_cloud(cloud: &Cloud) -> Api {
        Api::in_cloud_on(cloud, "sqlite::memory:").await
    }

    /// Starts the API with a cloud and an administrator of the cloud as clusterd's user.
    pub(crate) async fn of_administrators(cloud: &Cloud) -> Api {
        let store = Store::open("sqlite::memory:").await.unwrap();
        let config = CloudConfig::from_clouds_yaml(&cloud.clouds_yaml(), Some("admin")).unwrap();
        let session = Session::new(config).unwrap();
        Api::of(Auth::None, store, Streams::at_most(8), Some(session)).await
    }

    /// Starts the API with a cloud and the database at this URL.
    pub(crate) async fn in_cloud_on(cloud: &Cloud, url: &str) -> Api {
        let store = Store::open(url).await.unwrap();
        let config = CloudConfig::from_clouds_yaml(&cloud.clouds_yaml(), Some("alice")).unwrap();
        let session = Session::new(config).unwrap();
        Api::of(Auth::None, store, Streams::at_most(8), Some(session)).await
    }

    /// Starts the API with these limits for event streams.
    pub(crate) async fn for_streams(streams: Streams) -> Api {
        let store = Store::open("sqlite::memory:").await.unwrap();
        Api::of(Auth::None, store, streams, None).await
    }

    pub(crate) async fn on(store: Store) -> Api {
        Api::of(Auth::None, store, Streams::at_most(8), None).await
    }

    /// Starts the API with this authentication and these limits for event streams.
    pub(crate) async fn for_streams_of(auth: Auth, streams: Streams) -> Api {
        let store = Store::open("sqlite::memory:").await.unwrap();
        Api::of(auth, store, streams, None).await
    }

    async fn of(auth: Auth, store: Store, streams: Streams, cloud: Option<Session>) -> Api {
        Api::limited(auth, store, streams, cloud, openstack_api::Limits::default()).await
    }

    /// Starts the API with a store for backups. No conductor runs, so nothing is written there.
    pub(crate) async fn with_backups() -> Api {
        let store = Store::open("sqlite::memory:").await.unwrap();
        let rules = BackupRules { every: None, keep: 7, keep_for: SignedDuration::from_hours(24) };
        let place = BackupPlace::Directory("/nowhere".into());
        let backups = Some(BackupSettings { place, rules });
        let limits = openstack_api::Limits::default();
        Api::storing(backups, Auth::None, store, Streams::at_most(8), None, limits).await
    }

    async fn limited(
        auth: Auth,
        store: Store,
        streams: Streams,
        cloud: Option<Session>,
        limits: openstack_api::Limits,
    ) -> Api {
        Api::storing(None, auth, store, streams, cloud, limits).await
    }

    async fn storing(
        backups: Option<BackupSettings>,
        auth: Auth,
        store: Store,
        streams: Streams,
        cloud: Option<Session>,
        limits: openstack_api::Limits,
    ) -> Api {
        let keys = SealingKeys::parse(&SealingKeys::generate().unwrap()).unwrap();
        let settings = ConductorSettings {
            hostname: "host-1".to_owned(),
            instance: "instance-1".to_owned(),
            workers: 1,
            look_every: Duration::from_secs(60),
            machines: Default::default(),
            vms: vms(),
            repair: RepairLimits {
                not_ready_for: SignedDuration::from_mins(5),
                workers_at_once: 1,
                become_node_within: SignedDuration::from_mins(15),
                ..RepairLimits::DEFAULT
            },
            lending: Default::default(),
            backups,
            metrics: Default::default(),
            tracer: Default::default(),
            clock: noon,
        };
        let conductor = Conductor::new(settings, store.clone(), keys, cloud);
        let settings = Settings {
            api: ApiSettings::sample(limits),
            project: "default".to_owned(),
            quotas: DefaultLimits {
                project: Limits([(Resource::Clusters, Limit::AtMost(20))].into()),
                person: Limits::default(),
            },
            leases: Terms::default(),
            schedule: LeaseSchedule::default().without_snapshot(),
            machines: LeaseSettings::default(),
        };
        let app = App {
            store: store.clone(),
            conductor,
            clock: noon,
            ids: next_id,
            auth,
            streams,
            settings,
        };
        let format = WireFormat {
            host: "api:9511",
            version_header: "openstack-api-version",
            newest: NEWEST,
            refusal: "/errors/0/detail",
            check_refusal,
            client_types: client_types::TYPES,
        };
        let routes = InProcessApi::new(cluster_api::router(app), format).await;
        Api { routes, store }
    }

    /// Creates a template with this name, with `more` in the body. Returns the template's id.
    pub(crate) async fn template(&self, name: &str, more: &str) -> String {
        let body = format!(
            r#"{{"name": "{name}", "image_id": "fcos", "coe": "kubernetes", "external_network_id": "public",
                 "flavor_id": "m1.large", "master_lb_enabled": true{more}}}"#
        );
        let made = self.post("/v1/clustertemplates", &body).await.has(201).json();
        made["uuid"].as_str().unwrap().to_owned()
    }

    /// Creates a cluster with this name from the template `t`, with `more` in the body. Returns the cluster's id.
    pub(crate) async fn cluster(&self, name: &str, more: &str) -> String {
        let body = format!(r#"{{"name": "{name}", "cluster_template_id": "t"{more}}}"#);
        let asked = self.post("/v1/clusters", &body).await.has(202).json();
        asked["uuid"].as_str().unwrap().to_owned()
    }

    /// Creates a template `t` and a cluster `c` from it. Returns the cluster's id.
    pub(crate) async fn small(&self) -> String {
        self.template("t", "").await;
        self.cluster("c", "").await
    }
}

/// Ids in ascending order, from a counter of this test process.
fn next_id() -> Uuid {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    Uuid::from_u128(0x7c9e_6679_7425_40de_944b_0000_0000_0000 + u128::from(number))
}

/// Fails unless the response is a refusal in Magnum's envelope with exactly these words.
fn check_refusal(answer: &Answer, status: u16, words: &str) {
    let error = &answer.json()["errors"][0];
    assert_eq!(error["detail"], words);
    assert_eq!(error["title"], words);
    assert_eq!(error["status"], status);
    assert_eq!(error["code"], if status < 500 { "client" } else { "server" });
    let id = answer.headers["openstack-request-id"].to_str().unwrap();
    assert_eq!(error["request_id"], id);
}
