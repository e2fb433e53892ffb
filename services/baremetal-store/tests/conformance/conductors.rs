//! The leases of conductors.

use std::time::Duration;

use baremetal_store::Store;
use database::conductors::{
    ConductorLease, ConductorReport, ConductorRow, DrainOutcome, NewConductor, RegisterOutcome,
};
use database::program;
use jiff::{SignedDuration, Timestamp};
use sqlx::{Connection as _, PgConnection};

use crate::scratch::{HeldLocks, Scratch, at, bare_node, on_both};

on_both! { Store:
    conductors_are_listed_with_their_first_and_last_sign_of_life
    a_host_name_belongs_to_one_process_at_a_time
    a_lease_that_passed_is_not_renewed
    a_renewal_tells_who_lives
    conductors_with_another_key_are_refused
    a_conductor_without_a_lease_is_waited_for
    conductors_tell_their_version
    conductors_are_forgotten_after_a_month
    the_last_conductor_of_a_group_is_not_drained
    one_of_several_processes_gets_a_host_name
    conductor_groups_of_nodes_are_listed
}

const HOUR: Duration = Duration::from_secs(3600);

fn conductor(hostname: &str, instance: &str) -> NewConductor {
    NewConductor {
        hostname: hostname.to_owned(),
        groups: vec![String::new()],
        instance: instance.to_owned(),
        installation: "key".to_owned(),
    }
}

/// Registers a conductor for so long, whose state folder has its name.
async fn register(store: &Store, hostname: &str, lasts: Duration) -> ConductorLease {
    let new = conductor(hostname, hostname);
    let outcome = store.conductors().register(&new, lasts, at(0)).await.unwrap();
    let RegisterOutcome::Registered(lease) = outcome else { panic!("{outcome:?}") };
    lease
}

/// Renews a lease, and returns the conductors with a lease.
async fn renew(store: &Store, lease: &ConductorLease) -> Option<Vec<ConductorRow>> {
    let report = ConductorReport { settled: "all".to_owned(), turns: 2 };
    let all = store.conductors().renew(lease, &report, HOUR, at(1)).await.unwrap()?;
    Some(all.into_iter().filter(|it| it.is_alive && it.epoch > 0).collect())
}

fn hostnames(rows: &[ConductorRow]) -> Vec<&str> {
    rows.iter().map(|it| it.hostname.as_str()).collect()
}

async fn conductors_are_listed_with_their_first_and_last_sign_of_life(store: Store) {
    let groups = ["east".to_owned(), String::new()];
    store.conductors().touch("b.example", &[String::new()], at(1)).await.unwrap();
    store.conductors().touch("a.example", &[String::new()], at(2)).await.unwrap();
    store.conductors().touch("b.example", &groups, at(3)).await.unwrap();
    let listed = store.conductors().list(at(64)).await.unwrap();
    let seen: Vec<_> =
        listed.iter().map(|it| (it.hostname.as_str(), it.created_at, it.seen_at)).collect();
    assert_eq!(seen, [("b.example", at(1), at(3)), ("a.example", at(2), at(2))]);
    assert_eq!(listed[0].groups, groups);
    assert!(listed.iter().all(|it| !it.is_alive && it.epoch == 0), "a minute later");
    if !store.conductors().is_shared() {
        let listed = store.conductors().list(at(62)).await.unwrap();
        assert_eq!(listed.iter().map(|it| it.is_alive).collect::<Vec<_>>(), [true, false]);
    }
}

async fn a_host_name_belongs_to_one_process_at_a_time(store: Store) {
    let first = register(&store, "a", HOUR).await;
    assert_eq!(first, ConductorLease { hostname: "a".to_owned(), epoch: 1 });
    let other =
        store.conductors().register(&conductor("a", "elsewhere"), HOUR, at(0)).await.unwrap();
    assert_eq!(other, RegisterOutcome::Taken);
    // The process was killed, and started again.
    let second = register(&store, "a", HOUR).await;
    assert_eq!(second.epoch, 2);
    assert_eq!(renew(&store, &first).await, None);
    assert!(renew(&store, &second).await.is_some());
    store.conductors().release(&first, at(1)).await.unwrap();
    assert!(renew(&store, &second).await.is_some(), "an earlier lease ends no later one");
    store.conductors().release(&second, at(2)).await.unwrap();
    let other =
        store.conductors().register(&conductor("a", "elsewhere"), HOUR, at(3)).await.unwrap();
    let RegisterOutcome::Registered(lease) = other else { panic!("{other:?}") };
    assert_eq!(lease.epoch, 3);
}

async fn a_lease_that_passed_is_not_renewed(store: Store) {
    let passed = register(&store, "a", Duration::ZERO).await;
    assert_eq!(renew(&store, &passed).await, None);
    assert!(store.conductors().list(at(1)).await.unwrap().iter().all(|it| !it.is_alive));
    assert_eq!(register(&store, "a", HOUR).await.epoch, 2);
}

async fn a_renewal_tells_who_lives(store: Store) {
    store.conductors().touch("alone", &[String::new()], at(-31)).await.unwrap();
    let a = register(&store, "a", HOUR).await;
    let b = register(&store, "b", HOUR).await;
    register(&store, "c", Duration::ZERO).await;
    let living = renew(&store, &a).await.unwrap();
    assert_eq!(hostnames(&living), ["a", "b"]);
    assert_eq!((living[0].settled.as_str(), living[0].turns), ("all", 2));
    assert_eq!((living[1].settled.as_str(), living[1].turns), ("", 0));
    store.conductors().release(&b, at(1)).await.unwrap();
    assert_eq!(hostnames(&renew(&store, &a).await.unwrap()), ["a"]);
    assert_eq!(renew(&store, &b).await, None);
    let released: Vec<ConductorRow> = store.conductors().list(at(1)).await.unwrap();
    let released: Vec<ConductorRow> = released.into_iter().filter(|it| it.is_released).collect();
    assert_eq!(hostnames(&released), ["b", "c"], "the lease of \"c\" never lasted");
    // A new lease begins without the report of the last one.
    let again = register(&store, "a", HOUR).await;
    let listed = store.conductors().list(at(1)).await.unwrap();
    let own = listed.iter().find(|it| it.hostname == "a").unwrap();
    assert_eq!((own.epoch, own.settled.as_str(), own.turns), (again.epoch, "", 0));
}

async fn conductors_with_another_key_are_refused(store: Store) {
    register(&store, "a", HOUR).await;
    let stranger = NewConductor { installation: "other".to_owned(), ..conductor("b", "b") };
    let refused = store.conductors().register(&stranger, HOUR, at(0)).await.unwrap();
    assert_eq!(refused, RegisterOutcome::OtherKey { hostname: "a".to_owned() });
    assert_eq!(store.conductors().list(at(0)).await.unwrap().len(), 1, "nothing was written");
    // Its own key may change between two starts.
    let own = NewConductor { installation: "other".to_owned(), ..conductor("a", "a") };
    let own = store.conductors().register(&own, HOUR, at(0)).await.unwrap();
    assert!(matches!(own, RegisterOutcome::Registered(_)), "{own:?}");
}

async fn a_conductor_without_a_lease_is_waited_for(store: Store) {
    // The clock of PostgreSQL counts there.
    let now = if store.conductors().is_shared() { Timestamp::now() } else { at(0) };
    store.conductors().touch("old", &[String::new()], now).await.unwrap();
    let registered = async |hostname: &str| {
        store.conductors().register(&conductor(hostname, hostname), HOUR, now).await.unwrap()
    };
    let refused = registered("new").await;
    assert!(
        matches!(&refused, RegisterOutcome::TooOld { hostname, .. } if hostname == "old"),
        "{refused:?}"
    );
    // The process of the earlier version was replaced by this one.
    let replaced = registered("old").await;
    assert!(matches!(replaced, RegisterOutcome::Registered(_)), "{replaced:?}");
    let beside = registered("new").await;
    assert!(matches!(beside, RegisterOutcome::Registered(_)), "{beside:?}");
}

async fn conductors_tell_their_version(store: Store) {
    let (_, schema) = store.schema().await.unwrap();
    register(&store, "a", HOUR).await;
    store.conductors().touch("b", &[String::new()], at(-31)).await.unwrap();
    for row in store.conductors().list(at(1)).await.unwrap() {
        assert_eq!((row.program.as_str(), row.schema_known), (program::VERSION, schema.known));
    }
}

/// Asserts that a conductor that was paused while newer programs narrowed the database gets no lease.
#[tokio::test]
async fn a_conductor_that_has_become_too_old_is_refused() {
    const NARROWED: &str = "INSERT INTO schema_needs (version, program) VALUES (999, '9.0.0')";
    let Some(scratch) = Scratch::postgres().await else { return };
    let store = Store::open(&scratch.url).await.unwrap();
    let mut connection = PgConnection::connect(&scratch.url).await.unwrap();
    sqlx::query(NARROWED).execute(&mut connection).await.unwrap();
    let refused = store.conductors().register(&conductor("a", "a"), HOUR, at(0)).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("needs version 9.0.0 or newer"), "{refused}");
}

/// Asserts that a conductor gets no lease beside a living one that is too old.
#[tokio::test]
async fn a_conductor_of_a_version_before_the_first_release_is_waited_for() {
    const OLDER: &str = "UPDATE conductors SET program = '', schema_known = 22";
    let Some(scratch) = Scratch::postgres().await else { return };
    let store = Store::open(&scratch.url).await.unwrap();
    register(&store, "old", HOUR).await;
    let mut connection = PgConnection::connect(&scratch.url).await.unwrap();
    sqlx::query(OLDER).execute(&mut connection).await.unwrap();
    let conductors = store.conductors();
    let refused = conductors.register(&conductor("new", "new"), HOUR, at(0)).await.unwrap();
    let (hostname, program) = ("old".to_owned(), String::new());
    assert_eq!(refused, RegisterOutcome::TooOld { hostname, program });
    register(&store, "old", HOUR).await;
    register(&store, "new", HOUR).await;
}

async fn conductors_are_forgotten_after_a_month(store: Store) {
    let now = if store.conductors().is_shared() { Timestamp::now() } else { at(0) };
    let days = |days: i64| now - SignedDuration::from_hours(24 * days);
    store.conductors().touch("gone", &[String::new()], days(31)).await.unwrap();
    store.conductors().touch("dead", &[String::new()], days(29)).await.unwrap();
    store.conductors().register(&conductor("a", "a"), HOUR, now).await.unwrap();
    let listed = store.conductors().list(now).await.unwrap();
    assert_eq!(hostnames(&listed), ["dead", "a"]);
}

async fn the_last_conductor_of_a_group_is_not_drained(store: Store) {
    let drain = async |hostname| store.conductors().drain(hostname, at(1)).await.unwrap();
    let undrain = async |hostname| store.conductors().undrain(hostname, at(1)).await.unwrap();
    assert_eq!(drain("a").await, DrainOutcome::Missing);
    assert_eq!(undrain("a").await, DrainOutcome::Missing);
    store.conductors().touch("alone", &[String::new()], at(-31)).await.unwrap();
    assert_eq!(drain("alone").await, DrainOutcome::NotAlive);
    register(&store, "a", HOUR).await;
    assert_eq!(drain("a").await, DrainOutcome::LastOfGroup(String::new()));
    let east = vec![String::new(), "east".to_owned()];
    let b = NewConductor { groups: east, ..conductor("b", "b") };
    store.conductors().register(&b, HOUR, at(0)).await.unwrap();
    assert_eq!(drain("b").await, DrainOutcome::LastOfGroup("east".to_owned()));
    assert_eq!(drain("a").await, DrainOutcome::Recorded);
    let draining = async || {
        let all = store.conductors().list(at(1)).await.unwrap();
        all.into_iter().filter(|it| it.is_draining).map(|it| it.hostname).collect::<Vec<_>>()
    };
    assert_eq!(draining().await, ["a"]);
    assert_eq!(undrain("a").await, DrainOutcome::Recorded);
    assert!(draining().await.is_empty());
    drain("a").await;
    register(&store, "a", HOUR).await;
    assert!(draining().await.is_empty(), "a conductor that starts takes work");
}

async fn one_of_several_processes_gets_a_host_name(store: Store) {
    let tries = (0..8).map(|number| {
        let store = store.clone();
        let wanted = conductor("a", &number.to_string());
        tokio::spawn(
            async move { store.conductors().register(&wanted, HOUR, at(0)).await.unwrap() },
        )
    });
    let mut registered = 0;
    for one in tries.collect::<Vec<_>>() {
        registered += usize::from(one.await.unwrap() != RegisterOutcome::Taken);
    }
    assert_eq!(registered, 1);
}

async fn conductor_groups_of_nodes_are_listed(store: Store) {
    let mut node = bare_node();
    node.conductor_group = "east".to_owned();
    store.insert_node(&node).await.unwrap();
    let listed = store.node_groups().await.unwrap();
    let listed: Vec<_> = listed.iter().map(|it| (it.id, it.group.as_str(), it.is_busy)).collect();
    assert_eq!(listed, [(node.id, "east", false)]);
}

/// The clock is read under the lock. Otherwise a renewal that waited for the lock would bring back a lease that others have seen pass.
#[tokio::test]
async fn a_lease_that_passes_while_its_renewal_waits_is_lost() {
    const LOCK: &str =
        "SELECT pg_advisory_xact_lock(hashtextextended('conductors', 7090183622382154853))";
    let Some(scratch) = Scratch::postgres().await else { return };
    let store = Store::open(&scratch.url).await.unwrap();
    let lease = register(&store, "a", Duration::from_millis(500)).await;
    let mut held = HeldLocks::take(&scratch.url, LOCK.to_owned()).await;
    let (renewing, kept) = (store.clone(), lease.clone());
    let waiting = tokio::spawn(async move { renew(&renewing, &kept).await });
    held.wait_for_waiting(1).await;
    while store.conductors().list(at(0)).await.unwrap()[0].is_alive {}
    held.release().await;
    assert_eq!(waiting.await.unwrap(), None);
}
