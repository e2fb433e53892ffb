//! Templates and clusters to store.

use std::fmt::Debug;

use cluster_core::{
    Cluster, ClusterParameters, ClusterUuid, Event, FlavorSize, GroupRole, Ident, NodeGroup,
    NodeGroupUuid, Owner, QuotaRefused, Severity, Template, TemplateUuid,
};
use cluster_store::{QuotaWriteError, Scope, Store};
use jiff::Timestamp;
use newtype_uuid::GenericUuid;

pub(crate) use database::on_both;

pub(crate) const LARGE: FlavorSize = FlavorSize { vcpus: 4, ram_mib: 8192, disk_gib: 40, gpus: 1 };

/// Returns a fixed time plus `seconds`.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + seconds).unwrap()
}

pub(crate) fn project(name: &str) -> Scope {
    Scope::Project(name.to_owned())
}

pub(crate) fn template(project: &str, name: &str) -> Template {
    let owner = Owner::new(project, "u");
    let (name, blueprint) = (name.parse().unwrap(), ClusterParameters::new("fcos".to_owned()));
    let template = Template::new(TemplateUuid::new_v4(), owner, name, blueprint, at(0));
    Template { tags: Some("a \u{0} b".to_owned()), ..template }
}

pub(crate) fn cluster(of: &Template, name: &str) -> Cluster {
    let (owner, name) = (Owner::new(&of.project, "u"), name.parse().unwrap());
    let blueprint = of.blueprint.clone();
    let cluster = Cluster::new(ClusterUuid::new_v4(), owner, name, (of.id, blueprint), at(0));
    Cluster {
        create_timeout: Some(60),
        machine_addresses: [("default-worker-0".parse().unwrap(), [10, 0, 0, 7].into())].into(),
        ..cluster
    }
}

pub(crate) fn group(of: &Cluster, name: &str, machines: u32) -> NodeGroup {
    let named = (name.parse().unwrap(), GroupRole::Worker("worker".to_owned()));
    let group = NodeGroup::new(NodeGroupUuid::new_v4(), of, named, machines, at(0));
    NodeGroup { is_default: true, ..group }
}

pub(crate) fn event(of: &Cluster, reason: &str) -> Event {
    let (reason, message) = (reason.to_owned(), "so it is".to_owned());
    Event { id: None, cluster: of.id, at: at(1), severity: Severity::Info, reason, message }
}

/// Stores a template, and a cluster with two workers that is made from it.
pub(crate) async fn stored(store: &Store, project: &str, name: &str) -> (Template, Cluster) {
    let template = template(project, name);
    store.insert_template(&template).await.unwrap();
    let cluster = cluster(&template, name);
    let groups = [group(&cluster, "default-worker", 2)];
    store.insert_cluster(&cluster, &groups, &[event(&cluster, "Asked")], None).await.unwrap();
    (template, cluster)
}

pub(crate) async fn find(store: &Store, cluster: ClusterUuid) -> Option<Cluster> {
    let ident = Ident::Id(cluster.into_untyped_uuid());
    store.find_clusters(&ident, &Scope::All).await.unwrap().pop()
}

/// Returns why limits refused a record.
#[track_caller]
pub(crate) fn refusal<T: Debug>(written: Result<T, QuotaWriteError>) -> QuotaRefused {
    match written {
        Err(QuotaWriteError::Refused(refused)) => refused,
        other => panic!("{other:?}"),
    }
}

/// Whether a record was written, and not refused by limits.
#[track_caller]
pub(crate) fn is_admitted<T>(written: Result<T, QuotaWriteError>) -> bool {
    match written {
        Ok(_) => true,
        Err(QuotaWriteError::Refused(_)) => false,
        Err(QuotaWriteError::Store(error)) => panic!("{error:?}"),
    }
}
