//! A cloud, a store with a cluster, and conductors that are started and killed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use cluster_bootstrap::Source;
use cluster_conductor::{Conductor, KubernetesSettings, MachineSettings, Settings};
use cluster_core::{
    Backoff, Cluster, ClusterParameters, ClusterUuid, Condition, ConditionKind, ConditionStatus,
    DesiredState, Ident, KubernetesVersion, Labels, MemberName, NodeGroup, RepairLimits,
    RequestedCluster, Template,
};
use cluster_store::{ClusterChange, Scope, Store};
use database::scratch::Scratch;
use jiff::{SignedDuration, Timestamp};
use kubernetes::{Access, Client};
use newtype_uuid::GenericUuid;
use openstack::{CloudConfig, Session, compute::servers, dns::zones};
use openstack_emulator::{Cloud, Emulator, Kind, Object};
use sealing::SealingKeys;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// The version that clusters are upgraded to.
pub(crate) const NEWER: &str = "v1.34.2";

/// A cluster in an emulated cloud of its own.
pub(crate) struct ClusterFixture {
    emulator: Arc<Emulator>,
    pub(crate) cloud: Cloud,
    pub(crate) store: Store,
    pub(crate) id: ClusterUuid,
    pub(crate) settings: Settings,
    /// The keys that seal secrets.
    pub(crate) keys: String,
    /// The file of the store, when it is not in memory.
    pub(crate) scratch: Option<Scratch>,
    pub(crate) project: String,
    before: Vec<(Kind, String, String)>,
}

/// The session of the user in whose project clusters are created.
pub(crate) fn session(cloud: &Cloud) -> Session {
    session_as(cloud, "alice")
}

/// Runs a conductor until the result is dropped.
pub(crate) fn spawned(conductor: Conductor) -> AbortOnDropHandle<()> {
    let running = async move { conductor.run(CancellationToken::new()).await.unwrap() };
    AbortOnDropHandle::new(tokio::spawn(running))
}

/// As [`session`], for another user, whose password is `NAME-secret`.
pub(crate) fn session_as(cloud: &Cloud, user: &str) -> Session {
    let known = ["admin", "alice", "bob", "clusterd"].contains(&user);
    let clouds = cloud.clouds_yaml();
    let clouds = if known { clouds } else { clouds.replace("alice", user) };
    Session::new(CloudConfig::from_clouds_yaml(&clouds, Some(user)).unwrap()).unwrap()
}

/// The user and the project in which clusters are created.
const TENANT: (&str, &str) = ("alice", "tenant-a");

impl ClusterFixture {
    /// Makes a cluster with these numbers of members, in a store in memory. No conductor runs yet.
    pub(crate) async fn cluster(masters: u32, workers: u32) -> ClusterFixture {
        ClusterFixture::kept((masters, workers), None, TENANT).await
    }

    /// As [`ClusterFixture::cluster`], with a conductor that has completed the cluster.
    pub(crate) async fn complete(
        masters: u32,
        workers: u32,
    ) -> (ClusterFixture, AbortOnDropHandle<()>) {
        let given = ClusterFixture::cluster(masters, workers).await;
        let working = given.conductor();
        given.until_complete().await;
        (given, working)
    }

    /// As [`ClusterFixture::cluster`], with the store in a file that several conductors can open.
    pub(crate) async fn cluster_in_file(masters: u32, workers: u32) -> ClusterFixture {
        ClusterFixture::kept((masters, workers), Some(Scratch::sqlite()), TENANT).await
    }

    /// As [`ClusterFixture::cluster`], with the store in a PostgreSQL; `None` without one.
    pub(crate) async fn cluster_on_postgres(masters: u32, workers: u32) -> Option<ClusterFixture> {
        let scratch = Scratch::postgres().await?;
        Some(ClusterFixture::kept((masters, workers), Some(scratch), TENANT).await)
    }

    /// As [`ClusterFixture::cluster`], in the project of clusterd's own user, who is an administrator of the cloud.
    pub(crate) async fn cluster_of_operators(masters: u32, workers: u32) -> ClusterFixture {
        ClusterFixture::kept((masters, workers), None, ("clusterd", "service")).await
    }

    async fn kept(
        machines: (u32, u32),
        scratch: Option<Scratch>,
        (user, project_name): (&str, &str),
    ) -> ClusterFixture {
        left::keep_logs();
        let emulator = Emulator::start(openstack_emulator::Settings::default()).await.unwrap();
        let emulator = Arc::new(emulator);
        let cloud = emulator.cloud.clone();
        let session = session_as(&cloud, user);
        zones::create(&session, "example.org.", "a@example.org", "").await.unwrap();
        let project = project(&cloud, project_name);
        let before = cloud.objects_of(&project);
        let url = scratch.as_ref().map_or("sqlite::memory:", |scratch| &scratch.url);
        let store = Store::open(url).await.unwrap();
        let id = insert(&store, machines, |it| it).await;
        let keys = SealingKeys::generate().unwrap().to_string();
        let settings = settings();
        ClusterFixture { emulator, cloud, store, id, settings, keys, scratch, project, before }
    }

    /// Makes another cluster of this project, with DNS names in this zone.
    pub(crate) async fn another(&self, of: &str, zone: &str) -> ClusterFixture {
        let project = project(&self.cloud, of);
        let label = BTreeMap::from([("dns_zone".to_owned(), zone.to_owned())]);
        let id = insert(&self.store, (1, 1), |cluster| {
            let labels = cluster.blueprint.labels.merged(&Labels::try_from(label).unwrap());
            let blueprint = ClusterParameters { labels: labels.unwrap(), ..cluster.blueprint };
            let name = format!("of-{of}").parse().unwrap();
            Cluster { project: project.clone(), blueprint, name, ..cluster }
        });
        ClusterFixture {
            id: id.await,
            emulator: self.emulator.clone(),
            cloud: self.cloud.clone(),
            store: self.store.clone(),
            settings: self.settings.clone(),
            keys: self.keys.clone(),
            scratch: None,
            before: self.cloud.objects_of(&project),
            project,
        }
    }

    /// Starts a conductor that creates each cluster in the project that requested it, as this user.
    pub(crate) fn conductor_of_tenants(&self, user: &str) -> AbortOnDropHandle<()> {
        let keys = SealingKeys::parse(&self.keys).unwrap();
        let session = session_as(&self.cloud, user);
        let (settings, store) = (self.settings.clone(), self.store.clone());
        let conductor = Conductor::of_tenants(settings, store, keys, session);
        spawned(conductor)
    }

    /// Starts a conductor that runs until the result is dropped.
    pub(crate) fn conductor(&self) -> AbortOnDropHandle<()> {
        self.conductor_as("alice")
    }

    /// As [`ClusterFixture::conductor`], as another user of the cloud.
    pub(crate) fn conductor_as(&self, user: &str) -> AbortOnDropHandle<()> {
        let conductor = self.conductor_by(session_as(&self.cloud, user));
        spawned(conductor)
    }

    /// Makes a conductor that runs no turns.
    pub(crate) fn idle_conductor(&self) -> Conductor {
        self.conductor_by(session(&self.cloud))
    }

    pub(crate) fn conductor_by(&self, session: Session) -> Conductor {
        let keys = SealingKeys::parse(&self.keys).unwrap();
        Conductor::new(self.settings.clone(), self.store.clone(), keys, Some(session))
    }

    /// Makes a client of the cluster's API from a kubeconfig of clusterd.
    pub(crate) async fn kubernetes(&self) -> Client {
        let cluster = self.find().await.unwrap();
        let config = self.idle_conductor().kubeconfig(&cluster, "somebody").await.unwrap().unwrap();
        Client::new(&Access::from_kubeconfig(&config, None).unwrap()).unwrap()
    }

    /// Returns the cluster, while it exists.
    pub(crate) async fn find(&self) -> Option<Cluster> {
        let ident = Ident::Id(self.id.into_untyped_uuid());
        self.store.find_clusters(&ident, &Scope::All).await.unwrap().pop()
    }

    /// Waits until a condition is as wanted.
    pub(crate) async fn until(
        &self,
        kind: ConditionKind,
        wanted: impl Fn(&Condition) -> bool,
    ) -> Condition {
        let looking = async {
            loop {
                let conditions = self.find().await.unwrap().conditions;
                if let Some(found) = conditions.into_iter().find(|it| it.kind == kind && wanted(it))
                {
                    return found;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        match tokio::time::timeout(PATIENCE, looking).await {
            Ok(found) => found,
            Err(_) => panic!("it never came: {:?}", self.find().await.map(|it| it.conditions)),
        }
    }

    /// Waits until all conditions are true since the last request.
    pub(crate) async fn until_complete(&self) {
        let is_complete = |it: &Cluster| {
            it.completed_at.is_some_and(|done| done >= it.asked_at)
                && it.conditions.iter().all(|it| it.status == ConditionStatus::True)
        };
        let looking = async {
            while !is_complete(&self.find().await.unwrap()) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        if tokio::time::timeout(PATIENCE, looking).await.is_err() {
            panic!("it never is: {:?}", self.find().await.map(|it| it.conditions));
        }
    }

    /// Waits until a cluster that was complete before is complete again.
    pub(crate) async fn until_complete_again(&self) {
        let looking = async {
            loop {
                let cluster = self.find().await.unwrap();
                let groups = self.store.groups_of(self.id).await.unwrap();
                let all: BTreeSet<MemberName> = groups.iter().flat_map(NodeGroup::refs).collect();
                if cluster.conditions.iter().all(|it| it.status == ConditionStatus::True)
                    && cluster.nodes == all
                {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        if tokio::time::timeout(PATIENCE, looking).await.is_err() {
            let ledger = self.store.ledger_of(self.id).await.unwrap();
            panic!("it never is again: {:?} {ledger:?}", self.find().await);
        }
    }

    pub(crate) async fn until_groups(&self, wanted: impl Fn(&NodeGroup) -> bool) {
        let looking = async {
            while !self.store.groups_of(self.id).await.unwrap().iter().all(&wanted) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        if tokio::time::timeout(PATIENCE, looking).await.is_err() {
            panic!("they never are: {:?}", self.find().await.unwrap().conditions);
        }
    }

    /// Deletes a server without the conductor's knowledge.
    pub(crate) async fn delete_server(&self, id: &str) {
        servers::delete(&session(&self.cloud), id).await.unwrap();
    }

    pub(crate) async fn delete(&self) {
        loop {
            let cluster = self.find().await.unwrap();
            let going = Cluster { desire: DesiredState::Gone, ..cluster };
            match self.store.change_cluster(&ClusterChange::of(going)).await {
                Ok(_) => return,
                // The conductor wrote in between.
                Err(cluster_store::StoreError::Stale) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Requests the deletion of the cluster, and waits until nothing of it is left.
    pub(crate) async fn deleted(&self) {
        self.delete().await;
        self.until_gone().await;
    }

    /// Waits until the record of the cluster is deleted, and asserts that nothing of it is left.
    pub(crate) async fn until_gone(&self) {
        let looking = async {
            while self.find().await.is_some() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        if tokio::time::timeout(PATIENCE, looking).await.is_err() {
            let left = self.store.ledger_of(self.id).await.unwrap();
            let conditions = self.find().await.map(|it| it.conditions);
            panic!(
                "it never goes: {left:?} {conditions:?} {:?}",
                self.cloud.objects_of(&self.project)
            );
        }
        assert_eq!(self.cloud.objects_of(&self.project), self.before, "orphans");
        let records = self.of_kind(Kind::Recordset);
        let named = records.iter().filter(|it| ["A", "AAAA"].contains(&it.text("type")));
        assert_eq!(named.count(), 0, "names that lead nowhere");
        assert_eq!(self.store.ledger_of(self.id).await.unwrap(), []);
    }

    /// Returns the objects of a kind in the cluster's project that did not exist before the cluster.
    pub(crate) fn of_kind(&self, kind: Kind) -> Vec<Object> {
        let mut objects = self.cloud.objects(kind);
        objects.retain(|it| {
            it.project == self.project
                && it.text("name") != "default"
                && !self.before.iter().any(|(_, _, id)| *id == it.id)
        });
        objects
    }

    /// Asserts the number of objects of each kind, so that none exists twice.
    pub(crate) fn assert_once(&self, masters: usize, workers: usize) {
        let names = |kind| {
            let mut names: Vec<String> =
                self.of_kind(kind).iter().map(|it| it.text("name").to_owned()).collect();
            names.sort();
            names
        };
        for (kind, number) in [
            (Kind::Network, 1),
            (Kind::Subnet, 1),
            (Kind::Router, 1),
            (Kind::SecurityGroup, 2),
            (Kind::ServerGroup, 2),
            (Kind::LoadBalancer, 1),
            (Kind::Listener, 1),
            (Kind::Pool, 1),
            (Kind::HealthMonitor, 1),
            (Kind::Member, masters),
            (Kind::FloatingIp, 1),
            (Kind::Server, masters + workers),
            (Kind::ApplicationCredential, 1),
            // The load balancer's VIP, the router's interface, and its gateway.
            (Kind::Port, masters + workers + 3),
        ] {
            assert_eq!(names(kind).len(), number, "{kind:?}: {:?}", names(kind));
        }
        let records = self.of_kind(Kind::Recordset);
        assert_eq!(records.iter().filter(|it| it.text("type") == "A").count(), 2);
    }
}

impl Drop for ClusterFixture {
    fn drop(&mut self) {
        left::add_secrets(self.cloud.secrets());
        if let Some(scratch) = &self.scratch {
            left::keep_database(&scratch.url, "clusters");
        }
    }
}

/// How long to wait for an expected state.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Limits that no member exceeds, however busy the machine is on which the tests run.
const REPAIR: RepairLimits = RepairLimits {
    not_ready_for: SignedDuration::from_mins(10),
    workers_at_once: 1,
    become_node_within: SignedDuration::from_mins(10),
    backoff: Backoff {
        first: SignedDuration::from_millis(100),
        most: SignedDuration::from_millis(800),
    },
    lands_within: SignedDuration::from_millis(100),
};

/// The settings of conductors, when a test needs no others.
fn settings() -> Settings {
    Settings {
        hostname: "h".to_owned(),
        instance: "i".to_owned(),
        workers: 2,
        look_every: Duration::from_millis(20),
        machines: machines(),
        vms: cluster_conductor::VmSettings::default(),
        repair: REPAIR,
        lending: Default::default(),
        backups: None,
        metrics: Default::default(),
        tracer: Default::default(),
        clock: Timestamp::now,
    }
}

/// The source of Kubernetes programs, which no emulated server fetches.
fn machines() -> MachineSettings {
    let newer: KubernetesVersion = NEWER.parse().unwrap();
    let versions = [KubernetesVersion::DEFAULT, newer].map(|version| (version, source(version)));
    let versions = BTreeMap::from(versions);
    let kubernetes = KubernetesSettings { versions, ..KubernetesSettings::default() };
    MachineSettings { kubernetes, nodes: None }
}

/// The source of a version, which the URL of the kubelet names.
fn source(version: KubernetesVersion) -> Source {
    let mut source = Source::sample();
    source.programs.kubelet.url =
        format!("https://mirror.example/{version}/kubelet").parse().unwrap();
    source
}

/// Returns the id of the project with this name.
pub(crate) fn project(cloud: &Cloud, name: &str) -> String {
    let projects = cloud.objects(Kind::Project);
    projects.iter().find(|it| it.text("name") == name).unwrap().id.clone()
}

/// Stores a cluster with a load balancer, a floating IP and DNS names, changed by `differs`.
async fn insert(
    store: &Store,
    (masters, workers): (u32, u32),
    differs: impl FnOnce(Cluster) -> Cluster,
) -> ClusterUuid {
    let labels = [
        ("dns_zone", "example.org"),
        ("master_lb_floating_ip_enabled", "true"),
        ("user_data_delivery", "inline"),
    ];
    let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let blueprint = ClusterParameters {
        external_network: Some("public".to_owned()),
        flavor: Some("m1.small".to_owned()),
        master_flavor: Some("m1.small".to_owned()),
        master_lb_enabled: true,
        floating_ip_enabled: false,
        labels: Labels::try_from(BTreeMap::from(labels)).unwrap(),
        ..ClusterParameters::new("fedora-coreos".to_owned())
    };
    let RequestedCluster { template, cluster, groups } =
        RequestedCluster::new(blueprint, masters, workers, Timestamp::now());
    let cluster = differs(cluster);
    let template = Template { project: cluster.project.clone(), ..template };
    store.insert_template(&template).await.unwrap();
    store.insert_cluster(&cluster, &groups, &[], None).await.unwrap();
    cluster.id
}
