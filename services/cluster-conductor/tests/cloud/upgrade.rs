//! Upgrades: members are replaced by members of another version, the control plane first.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cluster_core::{
    Cluster, ClusterParameters, GroupRole, Ident, Labels, NodeGroup, RollChange, Template,
    TemplateUuid, UpgradeRequest, UpgradeScope, pause_roll, resume_roll, roll_back,
};
use cluster_store::{ClusterChange, Scope, StoreError};
use jiff::Timestamp;
use newtype_uuid::GenericUuid;
use openstack_emulator::Kind;

use crate::given::{ClusterFixture, NEWER};

impl ClusterFixture {
    async fn template(&self, id: TemplateUuid) -> Template {
        let ident = Ident::Id(id.into_untyped_uuid());
        self.store.find_templates(&ident, &Scope::All).await.unwrap().remove(0)
    }

    /// Stores a template that differs from that of the cluster.
    async fn newer_template(&self, change: impl Fn(&mut ClusterParameters)) -> Template {
        let former = self.template(self.find().await.unwrap().template).await;
        let mut blueprint = former.blueprint.clone();
        change(&mut blueprint);
        let name = "newer".parse().unwrap();
        let template = Template { id: TemplateUuid::new_v4(), name, blueprint, ..former };
        self.store.insert_template(&template).await.unwrap();
        template
    }

    /// Requests an upgrade, as the API does.
    async fn upgrade_to(&self, template: &Template) {
        let former = self.template(self.find().await.unwrap().template).await;
        let scope = UpgradeScope::All;
        let request =
            UpgradeRequest { template, former: &former, scope, at_once: 1, max_unavailable: 0 };
        let change = |cluster: &Cluster, groups: &[NodeGroup]| {
            request.on(cluster, groups, Timestamp::now()).unwrap()
        };
        self.roll(change).await;
    }

    /// Requests an upgrade to [`NEWER`].
    pub(crate) async fn upgrade(&self) {
        let template = self.newer_template(tag).await;
        self.upgrade_to(&template).await;
    }

    /// Writes a change of a roll, as the API does.
    async fn roll(&self, change: impl Fn(&Cluster, &[NodeGroup]) -> RollChange) {
        loop {
            let cluster = self.find().await.unwrap();
            let groups = self.store.groups_of(self.id).await.unwrap();
            let RollChange { cluster, groups: changed } = change(&cluster, &groups);
            let change = ClusterChange { changed, ..ClusterChange::of(cluster) };
            match self.store.change_cluster(&change).await {
                Ok(_) => return,
                Err(StoreError::Stale) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    async fn until_roll_waits(&self, wanted: &str) {
        let looking = async {
            loop {
                let roll = self.find().await.unwrap().roll;
                let why = roll.and_then(|roll| roll.waits_for).unwrap_or_default();
                if why.contains(wanted) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        if tokio::time::timeout(Duration::from_secs(60), looking).await.is_err() {
            panic!("it never waits for {wanted}: {:?}", self.find().await.unwrap().roll);
        }
    }

    /// The versions of the kubelets, and the names of the nodes without the name of the cluster.
    async fn nodes(&self) -> (BTreeSet<String>, Vec<String>) {
        let nodes = kubernetes::nodes::list(&self.kubernetes().await).await.unwrap();
        let mut names: Vec<String> = nodes
            .iter()
            .filter_map(|node| Some(node.name.split_once("-default-")?.1.to_owned()))
            .collect();
        names.sort();
        (nodes.into_iter().map(|node| node.kubelet_version).collect(), names)
    }
}

fn tag(blueprint: &mut ClusterParameters) {
    let label = BTreeMap::from([("kube_tag".to_owned(), NEWER.to_owned())]);
    blueprint.labels = blueprint.labels.merged(&Labels::try_from(label).unwrap()).unwrap();
}

#[tokio::test]
async fn every_member_is_replaced_by_one_of_the_new_version() {
    let (given, _working) = ClusterFixture::complete(3, 2).await;
    given.upgrade().await;
    given.until_complete().await;
    given.assert_once(3, 2);
    given.assert_ledger_agrees().await;
    let (versions, names) = given.nodes().await;
    assert_eq!(versions, BTreeSet::from([NEWER.to_owned()]));
    assert_eq!(names, ["master-3", "master-4", "master-5", "worker-2", "worker-3"]);
    let cluster = given.find().await.unwrap();
    assert_eq!((cluster.kubernetes.to_string().as_str(), cluster.roll), (NEWER, None));
    let events = given.store.events_of(given.id, 1000, None).await.unwrap();
    let reasons: BTreeSet<&str> = events.iter().map(|event| event.reason.as_str()).collect();
    for reason in
        ["RollBegun", "MemberAdded", "MemberReplaced", "ControlPlaneReplaced", "RollComplete"]
    {
        assert!(reasons.contains(reason), "{reason}: {reasons:?}");
    }
    given.deleted().await;
}

#[tokio::test]
async fn a_single_control_plane_member_is_replaced_without_loss() {
    let (given, _working) = ClusterFixture::complete(1, 1).await;
    given.upgrade().await;
    given.until_complete().await;
    given.assert_once(1, 1);
    assert_eq!(given.nodes().await.1, ["master-1", "worker-1"]);
    given.deleted().await;
}

#[tokio::test]
async fn a_change_of_labels_is_the_same_roll() {
    let (given, _working) = ClusterFixture::complete(1, 1).await;
    let label = BTreeMap::from([("kubelet_options".to_owned(), "--v=2".to_owned())]);
    let label = Labels::try_from(label).unwrap();
    let template = given.newer_template(|blueprint| {
        blueprint.labels = blueprint.labels.merged(&label).unwrap();
    });
    given.upgrade_to(&template.await).await;
    given.until_complete().await;
    let (versions, names) = given.nodes().await;
    assert_eq!(versions.len(), 1);
    assert_eq!(names, ["master-1", "worker-1"]);
    given.deleted().await;
}

#[tokio::test]
async fn an_upgrade_to_a_bad_image_harms_nothing_and_is_rolled_back() {
    let (given, _working) = ClusterFixture::complete(3, 1).await;
    let before = given.find().await.unwrap();
    let template = given.newer_template(|blueprint| {
        tag(blueprint);
        blueprint.image = "no-such-image".to_owned();
    });
    given.upgrade_to(&template.await).await;
    given.until_roll_waits("default-master-3").await;
    assert_eq!(given.of_kind(Kind::Server).len(), 4, "no server has that image");
    let none = BTreeSet::new();
    given.roll(|it, groups| roll_back(it, groups, &none, Timestamp::now()).unwrap()).await;
    given.until_complete().await;
    given.assert_once(3, 1);
    assert_eq!(given.nodes().await.1, ["master-0", "master-1", "master-2", "worker-0"]);
    let after = given.find().await.unwrap();
    assert_eq!((after.template, after.kubernetes), (before.template, before.kubernetes));
    assert_eq!((after.blueprint, after.roll), (before.blueprint, None));
    given.deleted().await;
}

#[tokio::test]
async fn a_better_template_ends_the_wait_for_a_bad_one() {
    let (given, _working) = ClusterFixture::complete(1, 1).await;
    let bad = given.newer_template(|blueprint| blueprint.image = "no-such-image".to_owned()).await;
    given.upgrade_to(&bad).await;
    given.until_roll_waits("default-master-1").await;
    let former = given.template(bad.id).await;
    let good = ClusterParameters { image: "fedora-coreos".to_owned(), ..former.blueprint.clone() };
    let name = "better".parse().unwrap();
    let good = Template { blueprint: good, id: TemplateUuid::new_v4(), name, ..former };
    given.store.insert_template(&good).await.unwrap();
    given.upgrade_to(&good).await;
    given.until_complete().await;
    given.assert_once(1, 1);
    given.deleted().await;
}

#[tokio::test]
async fn a_paused_upgrade_replaces_nothing_until_it_is_resumed() {
    let (given, _working) = ClusterFixture::complete(1, 1).await;
    let template = given.newer_template(tag).await;
    let former = given.template(given.find().await.unwrap().template).await;
    let (template, former, scope) = (&template, &former, UpgradeScope::All);
    let request = UpgradeRequest { template, former, scope, at_once: 1, max_unavailable: 0 };
    given
        .roll(|cluster, groups| {
            let asked = request.on(cluster, groups, Timestamp::now()).unwrap();
            RollChange { cluster: pause_roll(&asked.cluster).unwrap(), ..asked }
        })
        .await;
    given.until_roll_waits("paused").await;
    assert_eq!(given.nodes().await.1, ["master-0", "worker-0"]);
    let resume = |cluster: &Cluster, _: &[NodeGroup]| RollChange {
        cluster: resume_roll(cluster).unwrap(),
        groups: Vec::new(),
    };
    given.roll(resume).await;
    given.until_complete().await;
    assert_eq!(given.nodes().await.1, ["master-1", "worker-1"]);
    let groups = given.store.groups_of(given.id).await.unwrap();
    assert!(
        groups.iter().all(|group| group.role == GroupRole::Master || group.kubernetes.is_none())
    );
}
