//! Templates and clusters to store.

use cluster_core::{
    Blueprint, Cluster, ClusterUuid, Desire, Event, GroupRole, Ident, KubernetesVersion, Labels,
    LabelsCompared, NodeGroup, NodeGroupUuid, Severity, Template, TemplateUuid,
};
use cluster_store::{Scope, Store};
use jiff::Timestamp;
use newtype_uuid::GenericUuid;

pub(crate) use database::on_both;

/// A moment, `seconds` after another.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + seconds).unwrap()
}

pub(crate) fn project(name: &str) -> Scope {
    Scope::Project(name.to_owned())
}

pub(crate) fn template(project: &str, name: &str) -> Template {
    Template {
        id: TemplateUuid::new_v4(),
        version: 1,
        project: project.to_owned(),
        user: "u".to_owned(),
        name: name.parse().unwrap(),
        created_at: at(0),
        updated_at: None,
        public: false,
        hidden: false,
        tags: Some("a \u{0} b".to_owned()),
        blueprint: Blueprint::new("fcos".to_owned()),
    }
}

pub(crate) fn cluster(of: &Template, name: &str) -> Cluster {
    Cluster {
        id: ClusterUuid::new_v4(),
        version: 1,
        project: of.project.clone(),
        user: "u".to_owned(),
        name: name.parse().unwrap(),
        template: of.id,
        created_at: at(0),
        updated_at: None,
        blueprint: of.blueprint.clone(),
        kubernetes: KubernetesVersion::DEFAULT,
        labels_compared: LabelsCompared::default(),
        create_timeout: Some(60),
        desire: Desire::Exist,
        completed_at: None,
        authorities: cluster_core::Authorities::default(),
        asked_at: at(0),
        api_address: None,
        machine_addresses: [("default-worker-0".parse().unwrap(), [10, 0, 0, 7].into())].into(),
        nodes: Default::default(),
        credential: 1,
        setbacks: Default::default(),
        conditions: Vec::new(),
    }
}

pub(crate) fn group(of: &Cluster, name: &str, machines: u32) -> NodeGroup {
    NodeGroup {
        id: NodeGroupUuid::new_v4(),
        version: 1,
        cluster: of.id,
        name: name.parse().unwrap(),
        role: GroupRole::Worker("worker".to_owned()),
        is_default: true,
        created_at: at(0),
        updated_at: None,
        flavor: None,
        image: "fcos".to_owned(),
        docker_volume_size: None,
        min_node_count: 0,
        max_node_count: None,
        machines: (0..machines).collect(),
        next_machine: machines,
        labels: Labels::default(),
        labels_compared: LabelsCompared::default(),
        node_labels: Default::default(),
        node_taints: Vec::new(),
    }
}

pub(crate) fn event(of: &Cluster, reason: &str) -> Event {
    let (reason, message) = (reason.to_owned(), "so it is".to_owned());
    Event { id: None, cluster: of.id, at: at(1), severity: Severity::Info, reason, message }
}

/// A template and a cluster of it with two workers, stored.
pub(crate) async fn stored(store: &Store, project: &str, name: &str) -> (Template, Cluster) {
    let template = template(project, name);
    store.insert_template(&template).await.unwrap();
    let cluster = cluster(&template, name);
    let groups = [group(&cluster, "default-worker", 2)];
    assert!(
        store.insert_cluster(&cluster, &groups, &[event(&cluster, "Asked")], None).await.unwrap()
    );
    (template, cluster)
}

pub(crate) async fn find(store: &Store, cluster: ClusterUuid) -> Option<Cluster> {
    let ident = Ident::Id(cluster.into_untyped_uuid());
    store.find_clusters(&ident, &Scope::All).await.unwrap().pop()
}
