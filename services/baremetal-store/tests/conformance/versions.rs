//! Databases of every earlier version of the schema: the current store migrates them and reads all their records.
//!
//! A fixture contains the records that its version wrote, as SQL for both databases. Every new version of the schema needs a fixture.

use std::sync::Arc;

use audit::{Filter, Order, Trail};
use baremetal_core::{
    BmcIdentity, DeployTemplate, Fault, InspectionRule, Interface, NodeFilter, NodeSort, Page,
    PortFilter, PortSort, Runbook, State, StepKind, StepName, Task,
};
use baremetal_store::{DhcpLease, PagePart, SCHEMA, Store};
use database::conductors::ConductorRow;
use database::scratch::Scratch;
use jiff::SignedDuration;
use sealing::{Keyring, SealingKeys};
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use crate::scratch::{at, pool, unfinished};

/// The records that each version wrote, the first version first.
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
    include_str!("../fixtures/version-16.sql"),
    include_str!("../fixtures/version-17.sql"),
    include_str!("../fixtures/version-18.sql"),
    include_str!("../fixtures/version-19.sql"),
    include_str!("../fixtures/version-20.sql"),
    include_str!("../fixtures/version-21.sql"),
    include_str!("../fixtures/version-22.sql"),
    include_str!("../fixtures/version-23.sql"),
    include_str!("../fixtures/version-24.sql"),
];
/// The key file that sealed the secrets in the fixtures, from the time when key ids were numbers instead of fingerprints.
pub(crate) const KEYS: &str = include_str!("../fixtures/seal.keys");

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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_several_ports_keeps_their_name_on_sqlite() {
    one_port_keeps_the_name(&Scratch::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_several_ports_keeps_their_name_on_postgres() {
    let Some(scratch) = Scratch::postgres().await else { return };
    one_port_keeps_the_name(&scratch).await;
}

/// Asserts that one of two ports with the same name keeps it. Their `extra` has a NUL, which PostgreSQL's JSON functions refuse.
async fn one_port_keeps_the_name(scratch: &Scratch) {
    let fixture = FIXTURES[12];
    assert_eq!(fixture.matches(r#""name":"eth0""#).count(), 2);
    let with_nul = r#""is_smartnic":false,"extra":{"a":"\u0000"}"#;
    let described = r#""name":"eth0","description":"left \"socket\"""#;
    let fixture = fixture.replacen(r#""name":"eth0""#, described, 1);
    let fixture = fixture.replace(r#""is_smartnic":false,"extra":{}"#, with_nul);
    let fixture = fixture.replace(r#""name":"eth0""#, r#""name":"a\"\\\u0001""#);
    scratch.fill(&SCHEMA[..13], &fixture).await;
    let store = Store::open(&scratch.url).await.unwrap();
    let page = Page { limit: 100, marker: None, sort: PortSort::Id, descending: false };
    let ports = store.list_ports(&PortFilter::default(), &page).await.unwrap();
    let names: Vec<_> = ports.iter().map(|port| port.name.as_deref()).collect();
    let name = "a\"\\\u{1}";
    assert_eq!(names, [Some(name), None]);
    assert!(ports.iter().all(|port| port.extra["a"] == "\0"));
    let found = store.find_port_by_name(name).await.unwrap().unwrap();
    assert_eq!(found.id, ports[0].id);
    let filter =
        PortFilter { description_contains: Some("LEFT \"s".to_owned()), ..PortFilter::default() };
    assert_eq!(store.list_ports(&filter, &page).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cleaning_goes_on_after_the_upgrade_on_sqlite() {
    for (command, step) in ERASURES {
        goes_on_cleaning(&Scratch::sqlite(), command, step).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cleaning_goes_on_after_the_upgrade_on_postgres() {
    for (command, step) in ERASURES {
        let Some(scratch) = Scratch::postgres().await else { return };
        goes_on_cleaning(&scratch, command, step).await;
    }
}

/// The erasures of version 14, and the clean steps that they became.
const ERASURES: [(&str, &str); 2] =
    [("erase_disks", "erase_devices"), ("erase_metadata", "erase_devices_metadata")];

/// Asserts that an erasure of version 14 becomes a clean step.
async fn goes_on_cleaning(scratch: &Scratch, command: &str, step: &str) {
    let tasks = r#"["boot_ramdisk","await_agent",{"agent":"write_image"}]"#;
    let erasure = format!(r#"["await_agent",{{"agent":"{command}"}},{{"agent":"sync"}}]"#);
    let fixture = FIXTURES[13].replace(tasks, &erasure).replace(r#""cursor":3"#, r#""cursor":1"#);
    scratch.fill(&SCHEMA[..14], &fixture).await;
    let store = Store::open(&scratch.url).await.unwrap();
    let page = Page { limit: 100, marker: None, sort: NodeSort::Name, descending: false };
    let nodes = store.list_nodes(&NodeFilter::default(), &page).await.unwrap();
    let Some(Task::Step(task)) = nodes[1].work.as_ref().unwrap().task() else {
        panic!("{:?}", nodes[1].work)
    };
    assert_eq!(task.name, StepName { interface: Interface::Deploy, step: step.to_owned() });
}

async fn is_read(scratch: &Scratch, version: usize) {
    scratch.fill(&SCHEMA[..version], FIXTURES[version - 1]).await;
    // The second time nothing has to be migrated, and all records are still the same.
    for _ in 0..2 {
        let store = Store::open(&scratch.url).await.unwrap();
        let keys: Arc<Keyring> = SealingKeys::parse(KEYS).unwrap().into();
        let store = store.with_keys(keys).await.unwrap();
        holds_all(&store, version).await;
    }
    // Another key with the same number unseals nothing, and is recognized as a different key.
    let line = format!("1:{}", SealingKeys::generate().unwrap().split_once(':').unwrap().1);
    let other: Arc<Keyring> = SealingKeys::parse(&line).unwrap().into();
    let store = Store::open(&scratch.url).await.unwrap();
    assert!(store.with_keys(other).await.is_err(), "version {version}");
}

/// Asserts that all records that this version wrote can be read.
async fn holds_all(store: &Store, version: usize) {
    let (_, schema) = store.schema().await.unwrap();
    assert_eq!(schema.found, i64::try_from(SCHEMA.len()).unwrap());
    let page = Page { limit: 100, marker: None, sort: NodeSort::Name, descending: false };
    let nodes = store.list_nodes(&NodeFilter::default(), &page).await.unwrap();
    let names: Vec<_> = nodes.iter().map(|node| node.name.as_ref().unwrap().to_string()).collect();
    assert_eq!(names, ["r1u1", "r1u2", "r1u3"], "version {version}");
    let [enrolled, working, active] = nodes.try_into().unwrap();
    let opened = store.secrets().text(&enrolled, "redfish_password").unwrap().unwrap();
    assert_eq!(opened.expose_secret(), "hunter2");
    assert_eq!(enrolled.failure.as_ref().unwrap().cause, "the agent never reported");
    assert_eq!(working.provision_state, State::DeployWait);
    assert_eq!(working.work.as_ref().unwrap().cursor, 3);
    assert!(working.power_request.is_some() && working.maintenance.is_some());
    assert_eq!(working.fault(), (version >= 18).then_some(Fault::CleanFailure));
    let faulty = NodeFilter { fault: Some(Fault::CleanFailure), ..NodeFilter::default() };
    let faulty = store.list_nodes(&faulty, &page).await.unwrap();
    assert_eq!(faulty.len(), usize::from(version >= 18), "version {version}");
    let lent = (version >= 3).then_some(active.id);
    let mut want: Vec<_> = lent.into_iter().chain([working.id]).collect();
    want.sort();
    assert_eq!(unfinished(store).await, want);
    assert_eq!(active.provision_state, State::Active);
    assert_eq!(active.place.as_ref().unwrap().rack, "r1");
    assert_eq!(active.lending.is_some(), version >= 3);
    assert_eq!(active.hypervisor.is_some(), version >= 8);
    // The BMCs of nodes that earlier versions wrote are recorded when the store opens.
    let found = store.find_bmc_node(&BmcIdentity::of(&active).unwrap()).await.unwrap();
    assert_eq!(found, Some(active.id), "version {version}");
    let tally = store.tally_nodes(None).await.unwrap();
    assert_eq!(tally.iter().map(|it| it.count).sum::<u64>(), 3);
    assert!(tally.iter().any(|it| it.is_failed), "version {version}");

    let page = Page { limit: 100, marker: None, sort: PortSort::Address, descending: false };
    let ports = store.list_ports(&PortFilter::default(), &page).await.unwrap();
    assert_eq!(ports.len(), 2);
    assert_eq!(ports[0].name.as_deref(), Some("eth0"), "version {version}");
    let left =
        PortFilter { description_contains: Some("left".to_owned()), ..PortFilter::default() };
    let left = store.list_ports(&left, &page).await.unwrap();
    assert_eq!(left.len(), usize::from(version >= 20), "version {version}");
    let boot = store.find_boot(working.id).await.unwrap().unwrap();
    assert_eq!(boot.agent_version.as_deref(), Some("0.1.0"));
    assert!(store.find_inspected(enrolled.id).await.unwrap().is_some());
    let history = store.history(enrolled.id, 10, None).await.unwrap();
    assert_eq!(history.len(), 2);
    assert_eq!(history[0].user.as_deref(), (version >= 11).then_some("u1"));
    assert_eq!(history[1].user, None);
    assert_eq!(history[0].project.as_deref(), (version >= 17).then_some("p1"));
    assert_eq!(history[0].seconds, (version >= 17).then_some(5));
    assert_eq!(history[1].target.as_deref(), (version >= 17).then_some("manageable"));
    let (mac, own) = ("52:54:00:00:00:01".parse().unwrap(), [10, 0, 0, 9].into());
    let leased = store.lease(mac, &pool(own, own), at(0)).await.unwrap();
    assert_eq!(leased, Some(DhcpLease { address: [10, 0, 0, 9].into(), is_probed: true }));
    assert_eq!(store.list_discoveries_part(1000, PagePart::whole()).await.unwrap().found.len(), 1);
    // The last report stands for the first one that earlier versions did not record.
    let created_at = if version >= 20 { at(-5) } else { at(0) };
    let conductors = store.conductors().list(at(59)).await.unwrap();
    let [ConductorRow { hostname, groups, epoch, .. }] = &conductors[..] else {
        panic!("{conductors:?}")
    };
    assert_eq!((hostname.as_str(), &groups[..]), ("host", &[String::new()][..]));
    assert_eq!((conductors[0].created_at, conductors[0].seen_at), (created_at, at(0)));
    let has_lease = FIXTURES[version - 1].contains("'host/3'");
    assert_eq!(*epoch, if has_lease { 3 } else { 0 }, "version {version}");
    assert_eq!(conductors[0].program, if version >= 23 { "0.1.0" } else { "" });
    let page = Page { limit: 100, marker: None, sort: NodeSort::Creation, descending: false };
    let created = store.list_nodes(&NodeFilter::default(), &page).await.unwrap();
    assert_eq!(created, [enrolled.clone(), working.clone(), active.clone()], "version {version}");
    let backlogs = store.webhook_outbox().backlogs().await.unwrap();
    let events: Vec<_> = backlogs.iter().map(|it| (it.waiting, it.dead)).collect();
    assert_eq!(events, vec![(1, 1); usize::from(version >= 24)], "version {version}");
    let (mut rack, _) = store.find_rack("r1").await.unwrap().unwrap();
    let Value::Object(document) = &mut rack else { panic!("{rack}") };
    store.secrets().open_rack("r1", document).unwrap();
    assert_eq!(rack["goal"]["instance_info"]["configdrive"]["user_data"], "drive-secret");
    if version >= 2 {
        let page = Page { limit: 9, marker: None, sort: Default::default(), descending: false };
        let allocations = store.list_allocations(&Default::default(), &page).await.unwrap();
        assert_eq!(allocations.len(), 2);
        let reserved = allocations.iter().filter(|it| it.reservation.is_some()).count();
        assert_eq!(reserved, usize::from(version >= 5));
    }
    if version >= 3 {
        let longest = SignedDuration::from_hours(1);
        let letters = store.outbox().due(at(1000), longest, 9).await.unwrap();
        assert_eq!(letters.len(), 1);
    }
    if version >= 4 {
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
    if version >= 15 {
        let settings = store.list_bios_settings(enrolled.id).await.unwrap();
        let names: Vec<_> = settings.iter().map(|setting| setting.name.as_str()).collect();
        assert_eq!(names, ["BootMode", "Virtualization"]);
        assert_eq!(settings[0].attribute.allowable_values, ["Bios", "Uefi"]);
        assert_eq!((settings[0].updated_at, settings[1].updated_at), (Some(at(1)), None));
    }
    if version >= 8 {
        let profile = store.find_profile("kvm").await.unwrap().unwrap().profile;
        let opened = store.secrets().with_profile(&profile).unwrap();
        assert_eq!(opened.settings.keystone.username, "nova");
    }
    if version >= 15 {
        let template = store.find_resource_by_name::<DeployTemplate>("CUSTOM_RAID").await.unwrap();
        assert_eq!(template.unwrap().content.steps[0].priority, 90);
        let runbook = store.find_resource_by_name::<Runbook>("wipe").await.unwrap().unwrap();
        assert_eq!(runbook.content.steps[0].order, 1);
    }
    if version >= 16 {
        let rules = store.first_resources::<InspectionRule>(9).await.unwrap();
        let rules: Vec<_> = rules.iter().map(|it| store.secrets().with_rule(it).unwrap()).collect();
        let values = rules.iter().map(|it| it.content.actions[0].args["value"].clone());
        assert_eq!(values.collect::<Vec<_>>(), [json!(1), json!("rule-secret")]);
        assert!(!rules[0].content.sensitive && rules[1].content.sensitive);
        let listed = store.find_listed_steps(enrolled.id, StepKind::Clean).await.unwrap().unwrap();
        assert_eq!(listed.listed_at, at(0));
        assert_eq!(listed.steps[0].name, StepName::erase_devices());
    }
}
