//! Clusters and their node groups, which are written together or not at all.

use std::collections::BTreeMap;

use cluster_core::{Cluster, ClusterSort, DesiredState, Labels, NodeGroup, Page, TemplateUuid};
use cluster_store::{AnyEvent, ClusterChange, QuotaWriteError, Scope, Store, StoreError};
use database::outbox::Letter;
use jiff::SignedDuration;
use newtype_uuid::GenericUuid;

use crate::samples::{at, cluster, event, find, group, on_both, project, stored, template};

on_both! { Store:
    a_cluster_comes_back_with_its_groups_and_events
    a_change_is_whole_or_not_at_all
    notices_are_written_with_the_change
    a_letter_stays_when_the_cluster_of_its_event_is_deleted
    lists_are_cut_into_pages_of_one_project
    all_rows_of_a_cluster_are_deleted_with_it
    a_cluster_needs_its_template
    no_two_clusters_have_the_same_dns_subdomain
}

async fn a_cluster_comes_back_with_its_groups_and_events(store: Store) {
    let (_, cluster) = stored(&store, "p", "one").await;
    assert_eq!(find(&store, cluster.id).await, Some(cluster.clone()));
    let name = cluster_core::Ident::Name(cluster.name.clone());
    let found = store.find_clusters(&name, &project("p")).await.unwrap();
    assert_eq!(found, std::slice::from_ref(&cluster));
    assert_eq!(store.find_clusters(&name, &project("q")).await.unwrap(), []);
    let groups = store.groups_of(cluster.id).await.unwrap();
    assert_eq!((groups.len(), groups[0].node_count()), (1, 2));
    let events = store.events_of(cluster.id, 10, None).await.unwrap();
    assert_eq!((events.len(), events[0].reason.as_str()), (1, "Asked"));
    assert_eq!(store.cluster_ids().await.unwrap(), [cluster.id]);
    assert_eq!(store.count_clusters(&project("p")).await.unwrap(), (1, 2));
    assert_eq!(store.count_clusters(&project("q")).await.unwrap(), (0, 0));
}

async fn a_change_is_whole_or_not_at_all(store: Store) {
    let (_, cluster) = stored(&store, "p", "one").await;
    let workers = store.groups_of(cluster.id).await.unwrap().remove(0);
    let mut grown = workers.clone();
    grown.add_machine();
    let change = ClusterChange {
        cluster: Cluster { desire: DesiredState::Gone, ..cluster.clone() },
        added: vec![group(&cluster, "gpu", 1)],
        changed: vec![grown.clone()],
        events: vec![event(&cluster, "Resized")],
        ..ClusterChange::of(cluster.clone())
    };
    let written = store.change_cluster(&change).await.unwrap();
    assert_eq!((written.version, written.desire), (2, DesiredState::Gone));
    let groups = store.groups_of(cluster.id).await.unwrap();
    assert_eq!(groups.iter().map(NodeGroup::node_count).collect::<Vec<_>>(), [3, 1]);
    let (_, other) = stored(&store, "p", "two").await;
    let each = store.groups_of_each(&[other.id, cluster.id]).await.unwrap();
    assert_eq!((each.len(), &each[&cluster.id]), (2, &groups));
    assert_eq!(each[&other.id], store.groups_of(other.id).await.unwrap());
    assert!(store.groups_of_each(&[]).await.unwrap().is_empty());

    // The group is stale, so neither the group nor anything else is written.
    let late =
        ClusterChange { cluster: written.clone(), changed: vec![grown], added: vec![], ..change };
    assert!(matches!(store.change_cluster(&late).await, Err(StoreError::Stale)));
    assert_eq!(find(&store, cluster.id).await, Some(written.clone()));
    assert_eq!(store.events_of(cluster.id, 10, None).await.unwrap().len(), 2);

    let again = ClusterChange {
        added: vec![group(&cluster, "gpu", 1)],
        ..ClusterChange::of(written.clone())
    };
    let refused = store.change_cluster(&again).await;
    assert!(
        matches!(&refused, Err(StoreError::Duplicate { field: "name", value }) if value == "gpu"),
        "{refused:?}"
    );
    let less = ClusterChange { removed: vec![groups[1].clone()], ..ClusterChange::of(written) };
    store.change_cluster(&less).await.unwrap();
    assert_eq!(store.groups_of(cluster.id).await.unwrap().len(), 1);
}

async fn notices_are_written_with_the_change(store: Store) {
    let (_, cluster) = stored(&store, "p", "one").await;
    let notice = cluster.id.into_untyped_uuid();
    let letter =
        Letter { notice, receiver: "webhook".to_owned(), body: "{}".to_owned(), project: None };
    let change = ClusterChange {
        events: vec![event(&cluster, "LeaseEnds")],
        letters: vec![letter.clone()],
        ..ClusterChange::of(cluster.clone())
    };
    store.change_cluster(&change).await.unwrap();
    let due = async || store.outbox().due(at(100), SignedDuration::ZERO, 9).await.unwrap();
    let first = due().await.pop().unwrap();
    assert_eq!(first.letter, letter);
    // A process that was killed after it gave the letter up gives it up again, but the event is added only once.
    let given_up = AnyEvent::Cluster(event(&cluster, "NoticeGivenUp"));
    for _ in 0..2 {
        store.give_up_letter(first.seq, Some(&given_up)).await.unwrap();
    }
    let events = store.events_of(cluster.id, 10, None).await.unwrap();
    let reasons = events.iter().map(|event| event.reason.as_str());
    assert_eq!(reasons.filter(|it| *it == "NoticeGivenUp").count(), 1);
    // A stale change writes no letter.
    assert!(matches!(store.change_cluster(&change).await, Err(StoreError::Stale)));
    assert_eq!(due().await, []);
}

async fn a_letter_stays_when_the_cluster_of_its_event_is_deleted(store: Store) {
    let (_, cluster) = stored(&store, "p", "one").await;
    let notice = cluster.id.into_untyped_uuid();
    let letter =
        Letter { notice, receiver: "webhook".to_owned(), body: "{}".to_owned(), project: None };
    let change = ClusterChange { letters: vec![letter], ..ClusterChange::of(cluster.clone()) };
    let cluster = store.change_cluster(&change).await.unwrap();
    store.delete_cluster(&cluster).await.unwrap();
    let due = async || store.outbox().due(at(100), SignedDuration::ZERO, 9).await.unwrap();
    let seq = due().await.pop().unwrap().seq;
    let said = AnyEvent::Cluster(event(&cluster, "NoticeGivenUp"));
    let refused = store.give_up_letter(seq, Some(&said)).await;
    assert!(matches!(refused, Err(StoreError::NoOwner { .. })), "{refused:?}");
    assert_eq!(due().await.len(), 1);
    store.give_up_letter(seq, None).await.unwrap();
    assert_eq!(due().await, []);
}

async fn lists_are_cut_into_pages_of_one_project(store: Store) {
    let template = template("p", "t");
    store.insert_template(&template).await.unwrap();
    for name in ["c", "a", "b"] {
        store.insert_cluster(&cluster(&template, name), &[], &[], None).await.unwrap();
    }
    let (_, others) = stored(&store, "q", "d").await;
    let mut page = Page { limit: 2, marker: None, sort: ClusterSort::Name, descending: true };
    let mut names = Vec::new();
    loop {
        let found = store.list_clusters(&project("p"), &page).await.unwrap();
        let Some(last) = found.last() else { break };
        page.marker = Some(last.id.into_untyped_uuid());
        names.extend(found.iter().map(|cluster| cluster.name.to_string()));
    }
    assert_eq!(names, ["c", "b", "a"]);
    page.marker = Some(others.id.into_untyped_uuid());
    let refused = store.list_clusters(&project("p"), &page).await;
    assert!(matches!(refused, Err(StoreError::NoMarker(_))), "{refused:?}");
    let all = Page { limit: 9, marker: None, sort: ClusterSort::CreatedAt, descending: false };
    assert_eq!(store.list_clusters(&Scope::All, &all).await.unwrap().len(), 4);
}

async fn all_rows_of_a_cluster_are_deleted_with_it(store: Store) {
    let (template, cluster) = stored(&store, "p", "one").await;
    store.save_secret(cluster.id, "pki", "sealed").await.unwrap();
    let late = Cluster { version: 7, ..cluster.clone() };
    assert!(matches!(store.delete_cluster(&late).await, Err(StoreError::Stale)));
    store.delete_cluster(&cluster).await.unwrap();
    assert_eq!(store.groups_of(cluster.id).await.unwrap(), []);
    assert_eq!(store.events_of(cluster.id, 10, None).await.unwrap(), []);
    assert_eq!(store.find_secret(cluster.id, "pki").await.unwrap(), None);
    let orphan = store.append_events(cluster.id, &[event(&cluster, "Late")]).await;
    assert!(matches!(orphan, Err(StoreError::NoOwner { owner: "cluster", .. })), "{orphan:?}");
    store.delete_template(&template).await.unwrap();
}

async fn a_cluster_needs_its_template(store: Store) {
    let orphan = cluster(&template("p", "nowhere"), "one");
    let refused = store.insert_cluster(&orphan, &[], &[], None).await;
    assert!(
        matches!(
            refused,
            Err(QuotaWriteError::Store(StoreError::NoOwner { owner: "template", .. }))
        ),
        "{refused:?}"
    );
}

async fn no_two_clusters_have_the_same_dns_subdomain(store: Store) {
    let labels = [("dns_zone".to_owned(), "k8s.example".to_owned())];
    let labels: Labels = BTreeMap::from(labels).try_into().unwrap();
    let insert = async |project: &str, name: &str| {
        let template = template(project, &format!("t{}", TemplateUuid::new_v4()));
        store.insert_template(&template).await.unwrap();
        let mut new = cluster(&template, name);
        new.blueprint.labels = labels.clone();
        let written = store.insert_cluster(&new, &[], &[], None).await;
        written.map(|()| new)
    };
    let first = insert("p", "one").await.unwrap();
    insert("q", "two").await.unwrap();
    // The subdomain is a DNS label, so names that differ only in case have the same subdomain.
    for (project, name) in [("q", "one"), ("r", "One")] {
        let refused = insert(project, name).await;
        let Err(QuotaWriteError::Store(StoreError::Duplicate { field, value })) = &refused else {
            panic!("{refused:?}")
        };
        assert_eq!((*field, value.as_str()), ("labels.dns_zone", "one.k8s.example"));
    }
    assert_eq!(store.count_clusters(&Scope::All).await.unwrap().0, 2);
    // Clusters without a zone may share a name.
    stored(&store, "r", "one").await;
    store.delete_cluster(&first).await.unwrap();
    insert("q", "one").await.unwrap();
}
