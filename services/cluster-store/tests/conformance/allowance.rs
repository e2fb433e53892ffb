//! Limits and their use.

use std::collections::BTreeMap;

use cluster_core::{
    Amounts, Cluster, DefaultLimits, FlavorSize, LedgerEntry, LedgerState, LedgerUuid, Limit,
    LimitChanges, Limits, NodeGroup, QuotaRefused, QuotaScope, Resource, resize,
};
use cluster_store::{ClusterChange, QuotaWriteError, Store, StoreError};
use database::scratch::Scratch;
use database::{Database, WriteKind, values};

use crate::samples::{
    LARGE, at, cluster, find, group, on_both, project, refusal, stored, template,
};

on_both! { Store:
    new_members_and_their_replacements_belong_to_the_user_who_resized
    a_server_of_a_removed_member_cannot_be_recorded
    a_cluster_counts_from_its_request_until_its_deletion
    a_changed_flavor_does_not_change_the_use_of_existing_members
    a_removed_member_counts_until_its_server_is_deleted
    limits_of_projects_and_persons_are_set_separately_and_as_a_whole
    concurrent_changes_of_limits_are_all_kept
    a_change_over_a_limit_is_refused_and_writes_nothing
    a_size_that_is_measured_later_counts_from_then_on
    a_change_of_an_old_version_is_stale_and_not_over_a_limit
}

fn whose(person: Option<&str>) -> QuotaScope {
    QuotaScope { project: "p".to_owned(), person: person.map(str::to_owned) }
}

async fn used(store: &Store, person: Option<&str>) -> Amounts {
    store.account(&whose(person), &DefaultLimits::default()).await.unwrap().used
}

fn amounts(each: &[(Resource, u64)]) -> Amounts {
    each.iter().copied().collect()
}

fn at_most(each: &[(Resource, u64)]) -> Limits {
    Limits(each.iter().map(|(of, most)| (*of, Limit::AtMost(*most))).collect())
}

/// Stores a cluster with two workers of a large flavor, and returns both.
async fn large(store: &Store) -> (Cluster, NodeGroup) {
    let template = template("p", "t");
    store.insert_template(&template).await.unwrap();
    let cluster = cluster(&template, "one");
    let workers = NodeGroup { size: Some(LARGE), ..group(&cluster, "default-worker", 2) };
    let groups = [workers.clone()];
    store.insert_cluster(&cluster, &groups, &[], None).await.unwrap();
    (cluster, workers)
}

/// Writes the changed `group`, and returns the cluster and the group with their new versions.
async fn changed(store: &Store, cluster: Cluster, group: NodeGroup) -> (Cluster, NodeGroup) {
    let change = ClusterChange { changed: vec![group], ..ClusterChange::of(cluster) };
    let cluster = store.change_cluster(&change).await.unwrap();
    let group = store.groups_of(cluster.id).await.unwrap().remove(0);
    (cluster, group)
}

async fn a_cluster_counts_from_its_request_until_its_deletion(store: Store) {
    use Resource::{Clusters, DiskGib, Gpus, Nodes, RamMib, Vcpus};
    let (cluster, _) = large(&store).await;
    let all = amounts(&[
        (Clusters, 1),
        (Nodes, 2),
        (Vcpus, 8),
        (RamMib, 16384),
        (DiskGib, 80),
        (Gpus, 2),
    ]);
    assert_eq!(used(&store, None).await, all);
    assert_eq!(used(&store, Some("u")).await, all);
    assert_eq!(used(&store, Some("v")).await, Amounts::default());
    store.delete_cluster(&cluster).await.unwrap();
    assert_eq!(used(&store, None).await, Amounts::default());
}

async fn a_changed_flavor_does_not_change_the_use_of_existing_members(store: Store) {
    let (cluster, workers) = large(&store).await;
    let double = FlavorSize { vcpus: 8, ..LARGE };
    let (cluster, workers) =
        changed(&store, cluster, NodeGroup { size: Some(double), ..workers }).await;
    assert_eq!(used(&store, None).await[Resource::Vcpus], 8);
    // A member that is added later has the current size of the flavor.
    let (cluster, workers) = changed(&store, cluster, resize(&workers, 3, &[]).unwrap()).await;
    assert_eq!(used(&store, None).await[Resource::Vcpus], 16);
    changed(&store, cluster, resize(&workers, 1, &[]).unwrap()).await;
    assert_eq!(used(&store, None).await[Resource::Vcpus], 4);
}

async fn a_removed_member_counts_until_its_server_is_deleted(store: Store) {
    let (cluster, workers) = large(&store).await;
    let line = |number: u32| LedgerEntry {
        id: LedgerUuid::new_v4(),
        of: cluster.id.into(),
        kind: format!("server/default-worker-{number}"),
        name: format!("one-default-worker-{number}"),
        cloud_id: Some("id".to_owned()),
        state: LedgerState::Present,
        created_at: at(1),
        updated_at: None,
    };
    let lines = [line(0), line(1)];
    store.save_ledger(&lines).await.unwrap();
    let (cluster, workers) = changed(&store, cluster, resize(&workers, 1, &[]).unwrap()).await;
    assert_eq!(used(&store, None).await[Resource::Nodes], 2, "its server is there still");
    store.remove_ledger_entry(lines[0].id).await.unwrap();
    assert_eq!(used(&store, None).await[Resource::Nodes], 2, "a server that is made again");
    store.remove_ledger_entry(lines[1].id).await.unwrap();
    assert_eq!(used(&store, None).await[Resource::Nodes], 1);

    // A node group of the same name takes over the row of a member that is still being deleted.
    store.save_ledger(&lines[..1]).await.unwrap();
    let gone = ClusterChange { removed: vec![workers], ..ClusterChange::of(cluster) };
    let cluster = store.change_cluster(&gone).await.unwrap();
    assert_eq!(used(&store, None).await[Resource::Nodes], 1);
    let again = NodeGroup { size: Some(LARGE), ..group(&cluster, "default-worker", 1) };
    let again = ClusterChange { added: vec![again], ..ClusterChange::of(cluster) };
    store.change_cluster(&again).await.unwrap();
    store.remove_ledger_entry(lines[0].id).await.unwrap();
    assert_eq!(used(&store, None).await[Resource::Nodes], 1);
}

async fn limits_of_projects_and_persons_are_set_separately_and_as_a_whole(store: Store) {
    use Resource::{Clusters, Gpus, LeaseSeconds, Nodes};
    let defaults =
        DefaultLimits { project: at_most(&[(Clusters, 20)]), person: at_most(&[(Gpus, 1)]) };
    let limits = async |person| store.account(&whose(person), &defaults).await.unwrap().limits;
    assert_eq!(limits(None).await, defaults.project);
    let set = async |person, new: &Limits, seconds| {
        store.set_limits(&whose(person), new, at(seconds)).await.unwrap();
    };
    set(None, &at_most(&[(Clusters, 5), (Nodes, 9)]), 1).await;
    set(Some("u"), &at_most(&[(LeaseSeconds, 60)]), 1).await;
    assert_eq!(limits(None).await, at_most(&[(Clusters, 5), (Nodes, 9)]));
    assert_eq!(limits(Some("u")).await, at_most(&[(Gpus, 1), (LeaseSeconds, 60)]));
    assert_eq!(limits(Some("v")).await, defaults.person);

    // The limit of clusters is also Magnum's quota, and keeps its id.
    let magnum = async || store.list_quotas(&project("p"), Some("Cluster")).await.unwrap().pop();
    let before = magnum().await.unwrap();
    assert_eq!((before.hard_limit, before.updated_at), (5, None));
    set(None, &Limits(BTreeMap::from([(Clusters, Limit::Unlimited)])), 2).await;
    let after = magnum().await.unwrap();
    assert_eq!((after.id, after.hard_limit, after.updated_at), (before.id, -1, Some(at(2))));
    assert_eq!(limits(None).await.of(Clusters), Limit::Unlimited);
    assert_eq!(limits(None).await.of(Nodes), Limit::Unlimited);
    set(None, &Limits::default(), 3).await;
    assert_eq!((magnum().await, limits(None).await), (None, defaults.project.clone()));
}

async fn concurrent_changes_of_limits_are_all_kept(store: Store) {
    let nobody = DefaultLimits::default();
    for person in [None, Some("u")] {
        store.set_limits(&whose(person), &at_most(&[(Resource::Gpus, 1)]), at(1)).await.unwrap();
        let changes =
            Resource::ALL.into_iter().filter(|it| *it != Resource::Gpus).map(|resource| {
                let (store, change) =
                    (store.clone(), LimitChanges([(resource, Some(Limit::AtMost(7)))].into()));
                tokio::spawn(async move {
                    store.change_limits(&whose(person), &change, at(2)).await.unwrap()
                })
            });
        for change in changes.collect::<Vec<_>>() {
            change.await.unwrap();
        }
        let limits = store.account(&whose(person), &nobody).await.unwrap().limits;
        let all = Resource::ALL.map(|it| (it, if it == Resource::Gpus { 1 } else { 7 }));
        assert_eq!(limits, at_most(&all));
        let back =
            LimitChanges([(Resource::Gpus, None), (Resource::Vms, Some(Limit::Unlimited))].into());
        store.change_limits(&whose(person), &back, at(3)).await.unwrap();
        let limits = store.account(&whose(person), &nobody).await.unwrap().limits;
        assert_eq!(limits.0.get(&Resource::Gpus), None);
        assert_eq!(limits.0.get(&Resource::Vms), Some(&Limit::Unlimited));
        assert_eq!(limits.of(Resource::Nodes), Limit::AtMost(7));
    }
}

async fn a_change_over_a_limit_is_refused_and_writes_nothing(store: Store) {
    let (cluster, workers) = large(&store).await;
    let defaults =
        DefaultLimits { project: at_most(&[(Resource::Vcpus, 12)]), person: Limits::default() };
    let grow = async |cluster: &Cluster, machines| {
        let changed = vec![resize(&workers, machines, &[]).unwrap()];
        let change = ClusterChange { changed, ..ClusterChange::of(cluster.clone()) };
        store.change_within(&change, &defaults).await
    };
    let words = "quota exceeded: vcpus: project p uses 8 of 12, and the request needs 8 more";
    assert_eq!(grow(&cluster, 4).await.unwrap_err().to_string(), words);
    assert_eq!(find(&store, cluster.id).await, Some(cluster.clone()));
    assert_eq!(used(&store, None).await[Resource::Nodes], 2);
    grow(&cluster, 3).await.unwrap();
    assert_eq!(used(&store, None).await[Resource::Vcpus], 12);

    // The size of this group is not known.
    let (template, _) = stored(&store, "q", "t").await;
    let new = Cluster { project: "p".to_owned(), ..crate::samples::cluster(&template, "two") };
    let groups = [group(&new, "default-worker", 1)];
    let refused = store.insert_cluster(&new, &groups, &[], Some(&defaults)).await;
    let refused = refusal(refused);
    assert!(matches!(refused, QuotaRefused::Unmeasured { .. }), "{refused:?}");
    store.insert_cluster(&new, &groups, &[], Some(&DefaultLimits::default())).await.unwrap();
}

async fn a_size_that_is_measured_later_counts_from_then_on(store: Store) {
    let (_, cluster) = stored(&store, "p", "one").await;
    assert_eq!(used(&store, None).await, amounts(&[(Resource::Clusters, 1), (Resource::Nodes, 2)]));
    let workers = store.groups_of(cluster.id).await.unwrap().remove(0);
    let (cluster, workers) =
        changed(&store, cluster, NodeGroup { size: Some(LARGE), ..workers }).await;
    assert_eq!(used(&store, None).await[Resource::Vcpus], 8);
    changed(&store, cluster, NodeGroup { size: None, ..workers }).await;
    assert_eq!(used(&store, None).await[Resource::Vcpus], 8);
}

async fn a_change_of_an_old_version_is_stale_and_not_over_a_limit(store: Store) {
    let (cluster, workers) = large(&store).await;
    let defaults =
        DefaultLimits { project: at_most(&[(Resource::Nodes, 3)]), person: Limits::default() };
    let late = ClusterChange {
        changed: vec![resize(&workers, 9, &[]).unwrap()],
        ..ClusterChange::of(cluster.clone())
    };
    changed(&store, cluster, resize(&workers, 1, &[]).unwrap()).await;
    let refused = store.change_within(&late, &defaults).await;
    assert!(matches!(refused, Err(QuotaWriteError::Store(StoreError::Stale))), "{refused:?}");
}

async fn new_members_and_their_replacements_belong_to_the_user_who_resized(store: Store) {
    let (cluster, workers) = large(&store).await;
    store.set_limits(&whose(Some("v")), &at_most(&[(Resource::Nodes, 1)]), at(1)).await.unwrap();
    let grow = async |machines| {
        let changed = vec![resize(&workers, machines, &[]).unwrap()];
        let by = Some("v".to_owned());
        let change = ClusterChange { changed, by, ..ClusterChange::of(cluster.clone()) };
        store.change_within(&change, &DefaultLimits::default()).await
    };
    let words =
        "quota exceeded: nodes: user v in project p uses 0 of 1, and the request needs 2 more";
    assert_eq!(grow(4).await.unwrap_err().to_string(), words);
    let cluster = grow(3).await.unwrap();
    let nodes = async |person| used(&store, Some(person)).await[Resource::Nodes];
    assert_eq!((nodes("u").await, nodes("v").await), (2, 1));
    // Repair replaces a member, which nobody requested.
    let mut workers = store.groups_of(cluster.id).await.unwrap().remove(0);
    let last = *workers.machines.last().unwrap();
    workers.replace_machine(last);
    changed(&store, cluster, workers).await;
    assert_eq!((nodes("u").await, nodes("v").await), (2, 1));
}

async fn a_server_of_a_removed_member_cannot_be_recorded(store: Store) {
    let (cluster, workers) = large(&store).await;
    let intent = LedgerEntry {
        id: LedgerUuid::new_v4(),
        of: cluster.id.into(),
        kind: "server/default-worker-1".to_owned(),
        name: "one-default-worker-1".to_owned(),
        cloud_id: None,
        state: LedgerState::Intended,
        created_at: at(1),
        updated_at: None,
    };
    let of = cluster.id;
    changed(&store, cluster, resize(&workers, 1, &[]).unwrap()).await;
    let refused = store.record_intents(std::slice::from_ref(&intent)).await;
    assert!(matches!(refused, Err(StoreError::Stale)), "{refused:?}");
    assert_eq!(store.ledger_of(of).await.unwrap(), []);
    let kind = "server/default-worker-0".to_owned();
    store.record_intents(&[LedgerEntry { kind, ..intent }]).await.unwrap();
    assert_eq!(store.ledger_of(of).await.unwrap().len(), 1);
}

/// The tables as they were before the use of limits was recorded.
const BEFORE: database::Schema =
    &[include_str!("../../src/schema.sql"), include_str!("../../src/schema-2.sql")];

async fn counted_late(scratch: Scratch) {
    let template = template("p", "t");
    let cluster = cluster(&template, "one");
    let group = group(&cluster, "default-worker", 3);
    let before = Database::open(&scratch.url, BEFORE).await.unwrap();
    let (of, document) = (cluster.clone(), serde_json::to_string(&cluster).unwrap());
    let group = (group.id, serde_json::to_string(&group).unwrap());
    let old = serde_json::to_string(&template).unwrap();
    let written = before.write(WriteKind::AnyStatementCanFail, move |c| {
        Box::pin(async move {
            const TEMPLATE: &str = "INSERT INTO templates VALUES ($1, 1, 0, 'p', 't', 0, 0, $2)";
            const CLUSTER: &str = "INSERT INTO clusters VALUES ($1, 1, 0, 'p', 'one', $2, $3)";
            const GROUP: &str = "INSERT INTO node_groups VALUES ($1, 1, $2, 'g', 0, 3, $3)";
            c.execute(TEMPLATE, values![of.template, old]).await?;
            c.execute(CLUSTER, values![of.id, of.template, document]).await?;
            c.execute(GROUP, values![group.0, of.id, group.1]).await?;
            Ok(())
        })
    });
    written.await.unwrap();
    drop(before);
    for _ in 0..2 {
        let store = Store::open(&scratch.url).await.unwrap();
        let all = amounts(&[(Resource::Clusters, 1), (Resource::Nodes, 3)]);
        assert_eq!(used(&store, Some("u")).await, all);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clusters_from_before_are_counted_when_the_store_is_opened_on_sqlite() {
    counted_late(Scratch::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clusters_from_before_are_counted_when_the_store_is_opened_on_postgres() {
    let Some(scratch) = Scratch::postgres().await else { return };
    counted_late(scratch).await;
}
