//! A cluster whose ports exist, and a conductor that makes the configs of its members.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use cluster_bootstrap::{Artifact, Source};
use cluster_conductor::{
    Answer, BackupPlace, BackupSettings, Conductor, KubernetesSettings, MachineSettings,
    NodesListener, Settings, SourceAddress,
};
use cluster_core::{
    BackupRules, BalancerPurpose, CloudObject, CloudObjectDetails, CloudObjectState, Cluster,
    ClusterObservation, ClusterParameters, Key, KubernetesVersion, Labels, MemberName, NodeGroup,
    RepairLimits, RequestedCluster,
};
use cluster_store::{ClusterChange, Store};
use ignition::UserData;
use jiff::{SignedDuration, Timestamp};
use openstack::Session;
use sealing::SealingKeys;
use serde_json::Value;

/// A version besides the default one, which has an image archive of this checksum.
pub(crate) const OLDER: &str = "v1.33.7";
pub(crate) const OLDER_ARCHIVE: &str =
    "1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b";

thread_local! {
    static NOW: Cell<i64> = const { Cell::new(1_700_000_000) };
}

/// Returns the time of this test's conductor.
fn now() -> Timestamp {
    Timestamp::from_second(NOW.get()).unwrap()
}

/// Advances the time.
pub(crate) fn pass(seconds: i64) {
    NOW.set(NOW.get() + seconds);
}

/// A cluster of three control-plane members and two workers whose ports exist.
pub(crate) struct ClusterFixture {
    pub(crate) store: Store,
    pub(crate) conductor: Conductor,
    pub(crate) cluster: Cluster,
    pub(crate) groups: Vec<NodeGroup>,
    pub(crate) seen: ClusterObservation,
    keys: String,
    backups: Option<BackupSettings>,
    cloud: Option<Session>,
}

pub(crate) fn machine(name: &str) -> MemberName {
    name.parse().unwrap()
}

pub(crate) fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

impl ClusterFixture {
    pub(crate) async fn labelled(labels: &[(&str, &str)]) -> ClusterFixture {
        ClusterFixture::new(labels, SourceAddress::Machine).await
    }

    pub(crate) async fn new(labels: &[(&str, &str)], source: SourceAddress) -> ClusterFixture {
        let store = Store::open("sqlite::memory:").await.unwrap();
        let (cluster, groups) = insert(&store, labels).await;
        let keys = SealingKeys::generate().unwrap().to_string();
        let conductor = conductor(&store, &keys, Some(listener(source)), None, None);
        let mut seen = ClusterObservation::default();
        let mut at = |key: &str, address: &str| {
            let found = CloudObject {
                id: key.to_owned(),
                state: CloudObjectState::Ready,
                address: Some(address.parse().unwrap()),
                facts: CloudObjectDetails::None,
            };
            seen.objects.insert(key.parse::<Key>().unwrap(), found);
        };
        at("vip-port/api", "10.0.0.5");
        for number in 0..3 {
            at(&format!("port/default-master-{number}"), &format!("10.0.0.1{number}"));
        }
        for number in 0..2 {
            at(&format!("port/default-worker-{number}"), &format!("10.0.0.2{number}"));
        }
        at("router", "203.0.113.1");
        let (backups, cloud) = (None, None);
        ClusterFixture { store, conductor, cluster, groups, seen, keys, backups, cloud }
    }

    /// Replaces the conductor by one with the same keys, as after a restart.
    pub(crate) fn restart(&mut self) {
        let (listener, backups) = (listener(SourceAddress::Machine), self.backups.clone());
        let cloud = self.cloud.clone();
        self.conductor = conductor(&self.store, &self.keys, Some(listener), backups, cloud);
    }

    /// Replaces the conductor by one that keeps backups in this place.
    pub(crate) fn back_up_to(&mut self, place: BackupPlace, cloud: Option<Session>) {
        let rules = BackupRules { every: None, keep: 2, keep_for: SignedDuration::from_hours(24) };
        self.backups = Some(BackupSettings { place, rules });
        self.cloud = cloud;
        self.restart();
    }

    /// Replaces the conductor by one without a listener for claims.
    pub(crate) fn stop_listening(&mut self) {
        self.conductor = conductor(&self.store, &self.keys, None, None, None);
    }

    /// Gives the load balancer its floating IP.
    pub(crate) async fn with_floating_address(&mut self) {
        let key = Key::BalancerAddress(BalancerPurpose::Api);
        let port = self.seen.objects[&Key::VipPort(BalancerPurpose::Api)].clone();
        let found = CloudObject { address: Some(address("203.0.113.9")), ..port };
        self.seen.objects.insert(key, found);
        self.cluster.api_address = Some("https://203.0.113.9:6443".to_owned());
        self.save().await;
    }

    /// Stores the changes of the cluster and its groups.
    pub(crate) async fn save(&mut self) {
        let change = ClusterChange {
            changed: self.groups.clone(),
            ..ClusterChange::of(self.cluster.clone())
        };
        self.cluster = self.store.change_cluster(&change).await.unwrap();
        self.groups = self.store.groups_of(self.cluster.id).await.unwrap();
    }

    pub(crate) async fn user_data(&self, name: &str) -> Result<UserData, String> {
        let made =
            self.conductor.user_data(&self.cluster, &self.groups, &machine(name), &self.seen).await;
        made.map_err(|error| error.to_string())
    }

    /// Returns the claim in the member's user-data: its id and the credential.
    pub(crate) async fn claim(&self, name: &str) -> (String, String) {
        let stub: Value = serde_json::from_str(self.user_data(name).await.unwrap().text()).unwrap();
        let replace = &stub["ignition"]["config"]["replace"];
        let url = replace["source"].as_str().unwrap();
        let id = url.strip_prefix("https://clusterd.example:9512/v1/claims/").unwrap();
        let bearer = replace["httpHeaders"][0]["value"].as_str().unwrap();
        (id.to_owned(), bearer.strip_prefix("Bearer ").unwrap().to_owned())
    }

    pub(crate) async fn redeem(&self, claim: &(String, String), from: &str) -> Answer {
        self.conductor.redeem(&claim.0, &claim.1, address(from)).await
    }

    /// Redeems the claim of a member and returns the config.
    pub(crate) async fn config(&self, name: &str, from: &str) -> Value {
        let answer = self.redeem(&self.claim(name).await, from).await;
        let Answer::Config(config) = answer else { panic!("{answer:?}") };
        serde_json::from_str(&config).unwrap()
    }

    /// Returns the events, one per line.
    pub(crate) async fn events(&self) -> Vec<String> {
        let events = self.store.events_of(self.cluster.id, 100, None).await.unwrap();
        let line = |it: &cluster_core::Event| {
            format!("{} {}: {}", it.severity.as_str(), it.reason, it.message)
        };
        events.iter().map(line).collect()
    }
}

/// Returns a file of a config as text.
pub(crate) fn file(config: &Value, path: &str) -> Option<String> {
    let files = config["storage"]["files"].as_array()?;
    let contents = &files.iter().find(|it| it["path"] == path)?["contents"];
    let source = contents["source"].as_str()?.strip_prefix("data:")?;
    let Some(packed) = source.strip_prefix(";base64,") else {
        let text = percent_encoding::percent_decode_str(source.trim_start_matches(','));
        return Some(text.decode_utf8().unwrap().into_owned());
    };
    use base64::Engine;
    let packed = base64::engine::general_purpose::STANDARD.decode(packed).unwrap();
    Some(std::io::read_to_string(flate2::read::GzDecoder::new(&packed[..])).unwrap())
}

fn listener(source: SourceAddress) -> NodesListener {
    NodesListener {
        url: "https://clusterd.example:9512/".parse().unwrap(),
        authority: "CERTIFICATE\n".to_owned(),
        source,
        claim_lasts: Duration::from_secs(3600),
    }
}

fn conductor(
    store: &Store,
    keys: &str,
    nodes: Option<NodesListener>,
    backups: Option<BackupSettings>,
    cloud: Option<Session>,
) -> Conductor {
    let older = Artifact {
        url: "https://mirror.example/kube-proxy.tar".parse().unwrap(),
        sha256: OLDER_ARCHIVE.try_into().unwrap(),
    };
    let mut of_older = Source::sample();
    of_older.images.archives.every_machine.push(older);
    let versions =
        [(KubernetesVersion::DEFAULT, Source::sample()), (OLDER.parse().unwrap(), of_older)];
    let versions = BTreeMap::from(versions);
    let kubernetes = KubernetesSettings { versions, ..KubernetesSettings::default() };
    let settings = Settings {
        hostname: "h".to_owned(),
        instance: "i".to_owned(),
        workers: 2,
        look_every: Duration::from_secs(60),
        vms: cluster_conductor::VmSettings::default(),
        repair: RepairLimits {
            not_ready_for: SignedDuration::from_mins(5),
            workers_at_once: 1,
            become_node_within: SignedDuration::from_mins(15),
            ..RepairLimits::DEFAULT
        },
        machines: MachineSettings { kubernetes, nodes },
        lending: Default::default(),
        backups,
        metrics: Default::default(),
        tracer: Default::default(),
        clock: now,
    };
    Conductor::new(settings, store.clone(), SealingKeys::parse(keys).unwrap(), cloud)
}

async fn insert(store: &Store, labels: &[(&str, &str)]) -> (Cluster, Vec<NodeGroup>) {
    let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let labels = labels.iter().map(pair).collect::<BTreeMap<_, _>>();
    let blueprint = ClusterParameters {
        external_network: Some("public".to_owned()),
        master_lb_enabled: true,
        floating_ip_enabled: false,
        labels: Labels::try_from(labels).unwrap(),
        ..ClusterParameters::new("fcos".to_owned())
    };
    let RequestedCluster { template, cluster, mut groups } =
        RequestedCluster::new(blueprint, 3, 2, now());
    for group in &mut groups {
        group.node_labels.insert("example.org/rack".to_owned(), "r1".to_owned());
    }
    store.insert_template(&template).await.unwrap();
    store.insert_cluster(&cluster, &groups, &[], None).await.unwrap();
    (cluster, groups)
}
