//! Databases of every earlier schema version: the store of today opens them and reads everything in them.
//!
//! A fixture contains the rows that its version wrote, as SQL for both databases. A new version needs a new fixture.

use std::sync::Arc;

use audit::{Filter, Order, Trail};
use cluster_core::{ClusterSort, DefaultLimits, Page, QuotaScope, Resource, TemplateSort, VmSort};
use cluster_store::{PagePart, SCHEMA, Scope, Store, VmScope};
use database::scratch::Scratch;
use jiff::SignedDuration;
use sealing::{Keyring, SealingKeys};

use crate::samples::at;

/// The rows of each version, starting with version 1.
pub(crate) const FIXTURES: &[&str] = &[
    include_str!("../fixtures/version-1.sql"),
    include_str!("../fixtures/version-2.sql"),
    include_str!("../fixtures/version-3.sql"),
    include_str!("../fixtures/version-4.sql"),
    include_str!("../fixtures/version-5.sql"),
    include_str!("../fixtures/version-6.sql"),
    include_str!("../fixtures/version-7.sql"),
    include_str!("../fixtures/version-8.sql"),
    include_str!("../fixtures/version-9.sql"),
    include_str!("../fixtures/version-10.sql"),
    include_str!("../fixtures/version-11.sql"),
    include_str!("../fixtures/version-12.sql"),
    include_str!("../fixtures/version-13.sql"),
    include_str!("../fixtures/version-14.sql"),
    include_str!("../fixtures/version-15.sql"),
];
/// The key file that seals the secrets in the fixtures, from before key ids were fingerprints.
const KEYS: &str = include_str!("../fixtures/seal.keys");

#[test]
fn every_version_of_the_tables_has_a_fixture() {
    assert_eq!(FIXTURES.len(), SCHEMA.len(), "a new version needs tests/fixtures/version-N.sql");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_version_is_opened_and_read_on_sqlite() {
    for version in 1..=FIXTURES.len() {
        let scratch = Scratch::sqlite();
        is_read(&scratch, version).await;
        Store::check(&scratch.url).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_version_is_opened_and_read_on_postgres() {
    for version in 1..=FIXTURES.len() {
        let Some(scratch) = Scratch::postgres().await else { return };
        is_read(&scratch, version).await;
    }
}

async fn is_read(scratch: &Scratch, version: usize) {
    scratch.fill(&SCHEMA[..version], FIXTURES[version - 1]).await;
    // The second start migrates nothing and finds the same rows.
    for _ in 0..2 {
        let store = Store::open(&scratch.url).await.unwrap();
        let keys: Arc<Keyring> = SealingKeys::parse(KEYS).unwrap().into();
        let store = store.with_keys(keys.clone()).await.unwrap();
        holds_all(&store, &keys, version).await;
    }
    // Another key with the same id opens no secret, and is distinguished from the key that sealed.
    let line = format!("1:{}", SealingKeys::generate().unwrap().split_once(':').unwrap().1);
    let other: Arc<Keyring> = SealingKeys::parse(&line).unwrap().into();
    let store = Store::open(&scratch.url).await.unwrap();
    assert!(store.with_keys(other).await.is_err(), "version {version}");
}

/// Checks that every row of version `version` can be read.
async fn holds_all(store: &Store, keys: &Keyring, version: usize) {
    let (_, schema) = store.schema().await.unwrap();
    assert_eq!(schema.found, i64::try_from(SCHEMA.len()).unwrap());
    let page = Page { limit: 9, marker: None, sort: TemplateSort::Name, descending: false };
    let templates = store.list_templates(&Scope::All, &page).await.unwrap();
    assert_eq!(templates.len(), 1);
    let page = Page { limit: 9, marker: None, sort: ClusterSort::Name, descending: false };
    let clusters = store.list_clusters(&Scope::All, &page).await.unwrap();
    let [cluster] = clusters.try_into().unwrap();
    assert_eq!((cluster.name.as_str(), cluster.template), ("one", templates[0].id));
    assert_eq!(cluster.machine_addresses.len(), 1);
    let groups = store.groups_of(cluster.id).await.unwrap();
    assert_eq!((groups.len(), groups[0].machines.len()), (1, 2));
    let ledger = store.ledger_of(cluster.id).await.unwrap();
    assert_eq!((ledger.len(), ledger[0].cloud_id.as_deref()), (1, Some("server-0")));
    assert_eq!(store.events_of(cluster.id, 9, None).await.unwrap().len(), 2);
    let sealed = store.find_secret(cluster.id, "pki").await.unwrap().unwrap();
    let opened = keys.open_sealed(&format!("{}/pki", cluster.id), &sealed).unwrap();
    assert_eq!(opened.text().unwrap(), "authority-secret");
    let machine = "default-worker-0".parse().unwrap();
    let claim = store.claim_of(cluster.id, &machine).await.unwrap().unwrap();
    assert!(claim.redeemed_at.is_some() && claim.redeemed_by.is_some());
    let reports = store.machines_of(cluster.id).await.unwrap();
    assert_eq!(reports.len(), 1);
    assert_eq!(store.certificates_of(cluster.id).await.unwrap().len(), 1);
    assert_eq!(store.list_quotas(&Scope::All, None).await.unwrap().len(), 1);
    assert_eq!(store.list_services().await.unwrap().len(), 1);
    let conductors = store.conductors().list(at(0)).await.unwrap();
    let epochs: Vec<_> = conductors.iter().map(|it| (it.hostname.as_str(), it.epoch)).collect();
    let want = if version >= 12 { &[("host", 3)][..] } else { &[] };
    assert_eq!(epochs, want, "version {version}");
    // Clusters that are older than the table of the use of limits are counted when the store opens.
    let whose = QuotaScope { project: "p".to_owned(), person: Some("u".to_owned()) };
    let used = store.account(&whose, &DefaultLimits::default()).await.unwrap().used;
    assert_eq!((used[Resource::Clusters], used[Resource::Nodes]), (1, 2), "version {version}");
    let known = store.known_keys().await.unwrap();
    assert!(known.iter().any(|key| key.id == "1" && key.canary.is_some()));
    if version >= 5 {
        let filter = Filter {
            user: None,
            project: None,
            request_id: None,
            since: None,
            until: None,
            order: Order::OldestFirst,
            marker: None,
            limit: 9,
        };
        assert_eq!(store.trail().list(&filter).await.unwrap().len(), 2);
        assert_eq!(store.trail().head().await.unwrap().number, 2);
    }
    if version >= 6 {
        let letters = store.outbox().due(at(1000), SignedDuration::from_hours(1), 9).await.unwrap();
        assert_eq!(letters.len(), 1);
    }
    let backlogs = store.webhook_outbox().backlogs().await.unwrap();
    assert_eq!(backlogs.len(), usize::from(version >= 14), "version {version}");
    if version >= 8 {
        let page = Page { limit: 9, marker: None, sort: VmSort::Name, descending: false };
        let vms =
            store.list_vms_part(&VmScope::All, None, &page, PagePart::whole()).await.unwrap().found;
        assert_eq!(vms.len(), 1);
        let reported = store.sealed_user_data(vms[0].id).await.unwrap().unwrap();
        let place = cluster_store::SealedUserData::place_of(vms[0].id);
        assert_eq!(keys.open_sealed(&place, &reported).unwrap().text().unwrap(), "user-secret");
        assert_eq!(store.snapshots_of(vms[0].id).await.unwrap().len(), 1);
        assert_eq!(store.ledger_of(vms[0].id).await.unwrap().len(), 1);
        assert_eq!(store.vm_events_of(vms[0].id, 9, None).await.unwrap().len(), 1);
    }
    if version >= 10 {
        let drains = store.drains().await.unwrap();
        assert_eq!((drains.len(), drains[0].takes.len()), (1, 1));
    }
}
