//! Starts and kills clusterd with its listener for members, on a cluster in an emulated cloud whose members use that listener.
#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use cluster::nodes::{certificate, router};
use cluster_bootstrap::Source;
use cluster_conductor::{
    Conductor, KubernetesSettings, MachineSettings, NodesListener, Settings, SourceAddress,
};
use cluster_core::{
    Asked, Blueprint, Cluster, ClusterUuid, Ident, KubernetesVersion, Labels, MachineRef,
    NodeGroup, RepairLimits, machine_name,
};
use cluster_store::{Change, Scope, Store, StoreError};
use daemon::{Connections, serve_tls};
use jiff::{SignedDuration, Timestamp};
use newtype_uuid::GenericUuid;
use openstack::{CloudConfig, Session, compute::servers};
use openstack_emulator::{Cloud, Emulator, Kind};
use sealing::SealingKeys;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Yields to other tasks for a moment.
pub(crate) async fn pause() {
    tokio::time::sleep(Duration::from_millis(5)).await;
}

/// A running clusterd, killed when dropped.
pub(crate) struct Clusterd {
    tasks: [AbortOnDropHandle<()>; 2],
}

impl Clusterd {
    /// Kills it, and waits until none of its tasks runs.
    pub(crate) async fn kill(self) {
        for task in &self.tasks {
            task.abort();
        }
        for task in self.tasks {
            assert!(task.await.is_err_and(|end| end.is_cancelled()), "it ended before");
        }
    }
}

/// A cluster in a cloud of its own.
pub(crate) struct Given {
    _emulator: Emulator,
    pub(crate) cloud: Cloud,
    pub(crate) store: Store,
    pub(crate) id: ClusterUuid,
    at: SocketAddr,
    keys: String,
    state: tempfile::TempDir,
}

impl Given {
    /// A new cluster with so many members, without a running clusterd.
    pub(crate) async fn cluster(masters: u32, workers: u32) -> Given {
        left::listen();
        let emulator = Emulator::start(openstack_emulator::Settings::default()).await.unwrap();
        let cloud = emulator.cloud.clone();
        let store = Store::open("sqlite::memory:").await.unwrap();
        let id = insert(&store, masters, workers).await;
        // Each clusterd listens on the address of its predecessor.
        let at = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let keys = SealingKeys::generate().unwrap().to_string();
        let state = tempfile::tempdir().unwrap();
        Given { _emulator: emulator, cloud, store, id, at, keys, state }
    }

    fn session(&self) -> Session {
        let clouds = self.cloud.clouds_yaml();
        Session::new(CloudConfig::from_clouds_yaml(&clouds, Some("alice")).unwrap()).unwrap()
    }

    /// A conductor that answers calls but runs no turns.
    pub(crate) fn idle_conductor(&self) -> Conductor {
        let url: url::Url = format!("https://{}/", self.at).parse().unwrap();
        let nodes = NodesListener {
            authority: certificate(None, &url, self.state.path()).unwrap().authority,
            url,
            source: SourceAddress::Any,
            claim_lasts: Duration::from_secs(600),
        };
        let versions = BTreeMap::from([(KubernetesVersion::DEFAULT, Source::sample())]);
        let settings = Settings {
            hostname: "h".to_owned(),
            workers: 1,
            look_every: Duration::from_millis(20),
            vms: cluster_conductor::VmSettings::default(),
            repair: RepairLimits {
                not_ready_for: SignedDuration::from_secs(1),
                ..RepairLimits::DEFAULT
            },
            machines: MachineSettings {
                kubernetes: KubernetesSettings { versions, ..KubernetesSettings::default() },
                nodes: Some(nodes),
            },
            lending: Default::default(),
            clock: Timestamp::now,
        };
        let keys = SealingKeys::parse(&self.keys).unwrap();
        Conductor::new(settings, self.store.clone(), keys, Some(self.session()))
    }

    /// A conductor and its listener that run until dropped.
    pub(crate) async fn clusterd(&self) -> Clusterd {
        let conductor = self.idle_conductor();
        let url: url::Url = format!("https://{}/", self.at).parse().unwrap();
        let tls = certificate(None, &url, self.state.path()).unwrap().tls;
        let listener = loop {
            // The predecessor's socket takes a moment to close.
            match TcpListener::bind(self.at).await {
                Ok(listener) => break listener,
                Err(_) => pause().await,
            }
        };
        let routes = router(conductor.clone());
        let listens = async move {
            let limits = Connections::default().for_one_request();
            serve_tls(listener, tls, routes, limits, CancellationToken::new()).await.unwrap();
        };
        let works = async move { conductor.run(CancellationToken::new()).await.unwrap() };
        let tasks = [tokio::spawn(listens), tokio::spawn(works)];
        Clusterd { tasks: tasks.map(AbortOnDropHandle::new) }
    }

    pub(crate) async fn find(&self) -> Cluster {
        let ident = Ident::Id(self.id.into_untyped_uuid());
        self.store.find_clusters(&ident, &Scope::All).await.unwrap().pop().unwrap()
    }

    pub(crate) async fn groups(&self) -> Vec<NodeGroup> {
        self.store.groups_of(self.id).await.unwrap()
    }

    /// Changes node groups, as the API does.
    pub(crate) async fn change(&self, changed: Vec<NodeGroup>) {
        loop {
            let cluster = Cluster { asked_at: Timestamp::now(), ..self.find().await };
            let change = Change { changed: changed.clone(), ..Change::of(cluster) };
            match self.store.change_cluster(&change).await {
                Ok(_) => return,
                Err(StoreError::Stale) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Deletes a member's server without telling clusterd.
    pub(crate) async fn lose(&self, machine: &str) -> MachineRef {
        let machine: MachineRef = machine.parse().unwrap();
        let name = machine_name(&self.find().await, &machine);
        let all = self.cloud.objects(Kind::Server);
        let server = all.iter().find(|it| it.text("name") == name).unwrap();
        servers::delete(&self.session(), &server.id).await.unwrap();
        machine
    }
}

impl Drop for Given {
    fn drop(&mut self) {
        left::know(self.cloud.secrets());
    }
}

/// A cluster with a load balancer in front of its control plane, and a floating IP.
async fn insert(store: &Store, masters: u32, workers: u32) -> ClusterUuid {
    let label = ("master_lb_floating_ip_enabled".to_owned(), "true".to_owned());
    let blueprint = Blueprint {
        external_network: Some("public".to_owned()),
        flavor: Some("m1.small".to_owned()),
        master_flavor: Some("m1.small".to_owned()),
        master_lb_enabled: true,
        floating_ip_enabled: false,
        labels: Labels::try_from(BTreeMap::from([label])).unwrap(),
        ..Blueprint::new("fedora-coreos".to_owned())
    };
    let Asked { template, cluster, groups } =
        Asked::new(blueprint, masters, workers, Timestamp::now());
    store.insert_template(&template).await.unwrap();
    store.insert_cluster(&cluster, &groups, &[], None).await.unwrap().unwrap();
    cluster.id
}
