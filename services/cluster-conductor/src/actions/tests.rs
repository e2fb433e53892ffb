//! Single actions in the emulated cloud: the objects that they make, and the object that each returns until the next observation.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::slice;
use std::sync::Arc;

use cluster_core::{
    Action, ActionChange, CloudObjectDetails, CloudObjectState, Cluster, ClusterObservation,
    ClusterParameters, ClusterSpec, DesiredObjects, Key, Labels, Ledger, LedgerUuid, NodeGroup,
    ObjectOwner, RequestedCluster, ResourceSpec, desired_objects,
};
use cluster_store::Store;
use jiff::Timestamp;
use openstack::Session;
use openstack::dns::recordsets::{self, NewRecordset};
use openstack::dns::zones;
use openstack::network::security_groups::{self, Remote, RuleSpec};
use openstack_emulator::{Act, Cloud, Emulator, Kind, Rule};
use sealing::SealingKeys;

use super::action_context::ActionContext;
use super::perform::Outcome;
use crate::MachineSettings;
use crate::cloud::emulated::emulated_cloud;
use crate::cloud::{CloudLookups, CloudWorkError, security};
use crate::cluster_secrets::ClusterSecrets;
use crate::member_configs::MemberConfigs;

use CloudObjectState::{Deleting, Ready, Working};

const ZONE: &str = "example.org.";

/// A cluster whose actions are performed one by one.
struct ActionFixture {
    emulator: Emulator,
    session: Session,
    store: Store,
    member_configs: MemberConfigs,
    cluster: Cluster,
    groups: Vec<NodeGroup>,
    shape: DesiredObjects,
    ledger: Ledger,
    seen: ClusterObservation,
}

impl ActionFixture {
    /// Makes a cluster with a load balancer of the provider `ovn`, in a cloud where only its DNS zone exists.
    async fn new() -> ActionFixture {
        let (emulator, session) = emulated_cloud().await;
        zones::create(&session, ZONE, "a@example.org", "").await.unwrap();
        let labels = [("dns_zone", "example.org"), ("octavia_provider", "ovn")];
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
        let now = Timestamp::now();
        let asked = RequestedCluster::new(blueprint, 1, 1, now);
        let RequestedCluster { template, cluster, groups } = asked;
        let store = Store::open("sqlite::memory:").await.unwrap();
        store.insert_template(&template).await.unwrap();
        store.insert_cluster(&cluster, &groups, &[], None).await.unwrap();
        let keys = SealingKeys::generate().unwrap();
        let keyring = SealingKeys::parse(&keys).unwrap().into();
        let secrets = ClusterSecrets { store: store.clone(), keyring, clock: Timestamp::now };
        ActionFixture {
            emulator,
            session,
            store,
            member_configs: MemberConfigs::new(MachineSettings::default(), secrets),
            shape: desired_objects(&ClusterSpec { cluster: &cluster, groups: &groups }),
            ledger: Ledger::new(cluster.id, now, Vec::new()),
            seen: ClusterObservation::default(),
            cluster,
            groups,
        }
    }

    /// Performs an action as a turn does: its intent is in the ledger, and later actions use its result.
    async fn perform(&mut self, action: Action) -> Outcome {
        let intents = self.ledger.intend(slice::from_ref(&action), &self.shape, LedgerUuid::new_v4);
        self.store.record_intents(&intents).await.unwrap();
        let spec = ClusterSpec { cluster: &self.cluster, groups: &self.groups };
        let sessions = (&self.session, &self.session);
        let site = CloudLookups::new(sessions, self.cluster.blueprint.zone(), Arc::default());
        let action_context = ActionContext {
            store: &self.store,
            site: &site,
            member_configs: &self.member_configs,
            of: ObjectOwner::Cluster(&spec),
            shape: &self.shape,
            ledger: self.ledger.clone(),
            nodes: None,
            seen: self.seen.clone(),
        };
        let (_, outcome) = action_context.perform(action).await;
        if let Ok(ActionChange::Object(key, found)) = &outcome {
            self.seen.objects.insert(key.clone(), found.clone());
        }
        outcome
    }

    /// Creates these objects in this order, and waits until they are ready.
    async fn create(&mut self, keys: &[&str]) {
        for key in keys {
            self.perform(Action::Create(self::key(key))).await.unwrap();
        }
        self.until_ready().await;
    }

    /// Waits until every load balancer is ready, and notes all objects as ready.
    async fn until_ready(&mut self) {
        let is_active = |cloud: &Cloud| {
            let all = cloud.objects(Kind::LoadBalancer);
            all.iter().all(|it| it.text("provisioning_status") == "ACTIVE").then_some(())
        };
        self.emulator.cloud.wait_until(is_active).await;
        for found in self.seen.objects.values_mut() {
            found.state = Ready;
        }
    }

    /// Performs an action, and returns the state and the properties of its object afterwards.
    async fn after(&mut self, action: Action) -> (CloudObjectState, CloudObjectDetails) {
        match self.perform(action).await.unwrap() {
            ActionChange::Object(_, found) => (found.state, found.facts),
            ActionChange::Member(..) => panic!("it is an action of an object"),
        }
    }
}

fn key(text: &str) -> Key {
    text.parse().unwrap()
}

fn addresses(all: &[&str]) -> BTreeSet<IpAddr> {
    all.iter().map(|it| it.parse().unwrap()).collect()
}

/// The objects on which the load balancer depends.
const BELOW_BALANCER: [&str; 5] =
    ["network", "subnet", "security-group/control-plane", "security-group/node", "vip-port/api"];

#[tokio::test]
async fn a_new_security_group_has_no_rules_until_they_are_set() {
    let mut given = ActionFixture::new().await;
    for role in ["control-plane", "node"] {
        let group = key(&format!("security-group/{role}"));
        let none = CloudObjectDetails::Rules(BTreeSet::new());
        assert_eq!(given.after(Action::Create(group)).await, (Ready, none), "{role}");
    }
    let group = key("security-group/node");
    let ResourceSpec::SecurityGroup { rules } = given.shape[&group].thing.clone() else {
        panic!("{group} is a group")
    };
    assert!(!rules.is_empty());
    let wanted = CloudObjectDetails::Rules(rules);
    assert_eq!(given.after(Action::SetRules(group)).await, (Ready, wanted));
}

#[tokio::test]
async fn missing_rules_are_added_and_foreign_rules_removed() {
    let mut given = ActionFixture::new().await;
    given.create(&["security-group/control-plane", "security-group/node"]).await;
    let group = key("security-group/node");
    let ResourceSpec::SecurityGroup { rules } = given.shape[&group].thing.clone() else {
        panic!("{group} is a group")
    };
    let wanted = CloudObjectDetails::Rules(rules);
    let id = given.seen.objects[&group].id.clone();
    let session = given.session.clone();
    let foreign = || RuleSpec::to_port("tcp", 9, Remote::Anyone);
    // How many rules are missing, and whether there is a foreign one.
    for (missing, is_foreign) in [(0, false), (1, false), (2, true), (0, true), (4, true)] {
        given.perform(Action::SetRules(group.clone())).await.unwrap();
        let shown = security_groups::show(&session, &id).await.unwrap().unwrap();
        let inward =
            |it: &&security_groups::Rule| it.what.direction == security_groups::Direction::Ingress;
        for rule in shown.rules.iter().filter(inward).take(missing) {
            security_groups::remove_rule(&session, &rule.id).await.unwrap();
        }
        if is_foreign {
            security_groups::allow(&session, &id, &foreign()).await.unwrap();
        }
        given.perform(Action::SetRules(group.clone())).await.unwrap();
        let shown = security_groups::show(&session, &id).await.unwrap().unwrap();
        let ids = given.seen.objects.iter().map(|(key, it)| (it.id.as_str(), key.clone()));
        let facts = security::facts(&shown, &ids.collect());
        assert_eq!(facts, wanted, "{missing} missing, foreign: {is_foreign}");
    }
}

#[tokio::test]
async fn a_load_balancer_has_the_provider_and_names_its_cluster() {
    let mut given = ActionFixture::new().await;
    given.create(&BELOW_BALANCER).await;
    given.create(&["load-balancer/api"]).await;
    let made = given.emulator.cloud.objects(Kind::LoadBalancer).swap_remove(0);
    let tag = cluster_core::tag(given.cluster.id);
    assert_eq!(made.text("provider"), "ovn");
    assert_eq!(made.text("description"), tag);
    assert_eq!(made.list("tags"), [serde_json::json!(tag)]);
}

#[tokio::test]
async fn a_changed_or_deleted_object_is_in_progress_until_the_next_observation() {
    let mut given = ActionFixture::new().await;
    given.create(&BELOW_BALANCER).await;
    given.create(&["load-balancer/api", "record/api", "server-group/default-worker"]).await;
    let set = |text, of: &[&str]| Action::SetAddresses(key(text), addresses(of));
    let delete = |text| Action::Delete(key(text));
    let rows = [
        // The pool gets a member.
        (set("load-balancer/api", &["10.0.0.7"]), Working),
        // Every pool has the member already.
        (set("load-balancer/api", &["10.0.0.7"]), Ready),
        (set("load-balancer/api", &["10.0.0.7", "10.0.0.8"]), Working),
        (set("record/api", &["192.0.2.7"]), Working),
        (delete("record/api"), Deleting),
        (delete("server-group/default-worker"), Deleting),
        (delete("load-balancer/api"), Deleting),
    ];
    for (action, state) in rows {
        let what = action.to_string();
        given.until_ready().await;
        assert_eq!(given.after(action).await.0, state, "{what}");
    }
}

#[tokio::test]
async fn only_a_conflict_means_that_the_dns_name_is_taken() {
    let mut given = ActionFixture::new().await;
    given.create(&BELOW_BALANCER).await;
    let record = || Action::Create(key("record/api"));
    let act = Act::Answer { status: 403, retry_after: None, message: None };
    let rule = given.emulator.cloud.misbehave(Rule::new("POST", "/dns/**/recordsets", act));
    let refused = given.perform(record()).await;
    assert!(matches!(refused, Err(CloudWorkError::Cloud(_))), "{refused:?}");
    given.emulator.cloud.end_rule(rule);

    let zone = zones::find(&given.session, ZONE).await.unwrap().unwrap();
    let foreign = NewRecordset {
        name: "api.blue.example.org.".to_owned(),
        kind: "A".to_owned(),
        records: vec!["192.0.2.1".to_owned()],
        description: "of somebody else".to_owned(),
        ttl: None,
    };
    recordsets::create(&given.session, &zone.id, &foreign).await.unwrap();
    match given.perform(record()).await {
        Err(CloudWorkError::NameTaken { host }) => assert_eq!(host, foreign.name),
        other => panic!("{other:?}"),
    }
}
