use std::collections::{BTreeMap, BTreeSet};

use expect_test::expect;
use newtype_uuid::TypedUuidTag;
use proptest::prelude::*;

use super::*;

/// The kind of the ids of nodes.
enum Node {}

impl TypedUuidKind for Node {
    fn tag() -> TypedUuidTag {
        const TAG: TypedUuidTag = TypedUuidTag::new("node");
        TAG
    }
}

fn node(number: u128) -> TypedUuid<Node> {
    TypedUuid::from_untyped_uuid(Uuid::from_u128(number))
}

/// A conductor of the default group.
fn conductor(hostname: &str) -> LivingConductor {
    LivingConductor {
        hostname: hostname.to_owned(),
        epoch: 1,
        groups: vec![String::new()],
        is_draining: false,
        settled: String::new(),
    }
}

fn living(hostnames: &[&str]) -> LivingConductors {
    LivingConductors::new(hostnames.iter().map(|it| conductor(it)).collect())
}

fn owner(conductors: &LivingConductors, number: u128) -> String {
    conductors.conductor_of(&node(number), "").unwrap_or("nobody").to_owned()
}

/// Replicas of different versions run side by side, so this may never change.
#[test]
fn every_version_of_the_program_shares_the_work_in_the_same_way() {
    let three = living(&["c", "a", "b"]);
    let nodes: Vec<String> = (0..8).map(|number| owner(&three, number)).collect();
    expect!["a a c c b c a a"].assert_eq(&nodes.join(" "));
    let tasks = ["r1", "r2", "r3", "names"].map(|task| three.conductor_of_task(task).unwrap());
    expect!["b c a c"].assert_eq(&tasks.join(" "));
    assert_eq!(three.fingerprint(), "a/1 b/1 c/1");
}

#[test]
fn the_shares_are_about_equal() {
    let three = living(&["a", "b", "c"]);
    let mut shares: BTreeMap<String, u32> = BTreeMap::new();
    for number in 0..3000 {
        *shares.entry(owner(&three, number)).or_default() += 1;
    }
    assert!(shares.values().all(|share| (900..=1100).contains(share)), "{shares:?}");
}

#[test]
fn a_node_belongs_to_a_conductor_of_its_group() {
    let in_group = |hostname: &str, groups: &[&str]| LivingConductor {
        groups: groups.iter().map(|it| (*it).to_owned()).collect(),
        ..conductor(hostname)
    };
    let all = LivingConductors::new(vec![
        in_group("a", &[""]),
        in_group("b", &["", "east"]),
        in_group("c", &["east"]),
    ]);
    for number in 0..50 {
        let of = |group| all.conductor_of(&node(number), group);
        assert!(matches!(of(""), Some("a" | "b")));
        assert!(matches!(of("east"), Some("b" | "c")));
        assert_eq!(of("west"), None);
        assert!(all.may_be_elsewhere(&node(number), "a"), "in the group east");
    }
    assert_eq!(all.groups(), ["", "east"]);
    let alone = living(&["a"]);
    assert!(!alone.may_be_elsewhere(&node(1), "a"));
    assert!(LivingConductors::default().may_be_elsewhere(&node(1), "a"), "nobody is known");
}

#[test]
fn a_draining_conductor_has_nothing() {
    let draining = LivingConductor { is_draining: true, ..conductor("a") };
    let both = LivingConductors::new(vec![draining.clone(), conductor("b")]);
    assert!((0..50).all(|number| owner(&both, number) == "b"));
    assert_eq!(LivingConductors::new(vec![draining]).conductor_of_task("r1"), None);
    assert_ne!(both.fingerprint(), living(&["a", "b"]).fingerprint());
}

#[test]
fn the_state_of_a_conductor_tells_whether_it_has_let_go() {
    let one = |hostname: &str, is_draining, settled: &str| LivingConductor {
        is_draining,
        settled: settled.to_owned(),
        ..conductor(hostname)
    };
    let fingerprint = "a/1 b/1 c/1- d/1-";
    let all = LivingConductors::new(vec![
        one("a", false, fingerprint),
        one("b", false, "a/1 b/1"),
        one("c", true, "a/1 b/1"),
        one("d", true, fingerprint),
    ]);
    assert_eq!(all.fingerprint(), fingerprint);
    let states = ["a", "b", "c", "d", "e"].map(|hostname| all.state_of(hostname).as_str());
    assert_eq!(states, ["working", "rebalancing", "draining", "drained", "dead"]);
    let alone = LivingConductors::new(vec![LivingConductor { epoch: 0, ..conductor("a") }]);
    assert_eq!(alone.state_of("a"), ConductorState::Working);
}

#[test]
fn a_share_is_complete_when_all_have_let_go() {
    let alone = || living(&["a"]);
    let settled = |mut list: LivingConductors, count| {
        let fingerprint = list.fingerprint.clone();
        list.all.iter_mut().take(count).for_each(|it| it.settled.clone_from(&fingerprint));
        list
    };
    let mut share = ConductorShare::nothing("a");
    assert!(!share.has(&node(1), "") && !share.has_task("r1"));
    assert_eq!(share.observe(alone()), ShareChange::Narrowed);
    assert!(!share.has(&node(1), ""));
    assert_eq!(share.observe(settled(alone(), 1)), ShareChange::Confirmed);
    assert_eq!(share.observe(settled(alone(), 1)), ShareChange::Unchanged);
    assert!(share.has(&node(1), "") && share.has_task("r1"));

    // "b" joins, and leaves again before anything is settled.
    let both = || living(&["a", "b"]);
    let moved = (0..50).find(|number| owner(&both(), *number) == "b").unwrap();
    let kept = (0..50).find(|number| owner(&both(), *number) == "a").unwrap();
    assert_eq!(share.observe(both()), ShareChange::Narrowed);
    assert!(share.has(&node(kept), "") && !share.has(&node(moved), ""));
    assert_eq!(share.observe(settled(both(), 1)), ShareChange::Unchanged);
    assert_eq!(share.observe(alone()), ShareChange::Narrowed);
    assert!(!share.has(&node(moved), ""), "until the list without \"b\" is settled");
    assert_eq!(share.observe(settled(alone(), 1)), ShareChange::Confirmed);
    assert!(share.has(&node(moved), ""));
}

const HOSTS: [&str; 4] = ["a", "b", "c", "d"];
const NODES: u128 = 12;

/// The row of a conductor in the database.
#[derive(Clone, Debug, Default)]
struct Row {
    epoch: i64,
    is_alive: bool,
    is_draining: bool,
    settled: String,
}

/// A conductor with its turns.
#[derive(Debug)]
struct Actor {
    share: ConductorShare,
    turns: BTreeSet<u128>,
    /// Its lease has passed, so that it has no effects.
    is_fenced: bool,
}

/// Conductors on one database, of which each does one thing at a time.
struct World {
    rows: [Row; 4],
    actors: [Actor; 4],
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Register,
    Renew,
    /// The lease passes.
    Dies,
    Drain,
    Undrain,
    Begins(u128),
    Ends(u128),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        2 => Just(Event::Register),
        10 => Just(Event::Renew),
        1 => Just(Event::Dies),
        1 => Just(Event::Drain),
        1 => Just(Event::Undrain),
        8 => (0..NODES).prop_map(Event::Begins),
        6 => (0..NODES).prop_map(Event::Ends),
    ]
}

impl World {
    fn new() -> World {
        let actor = |hostname: &str| Actor {
            share: ConductorShare::nothing(hostname),
            turns: BTreeSet::new(),
            is_fenced: true,
        };
        World { rows: Default::default(), actors: HOSTS.map(actor) }
    }

    fn living(&self) -> LivingConductors {
        let alive = HOSTS.iter().zip(&self.rows).filter(|(_, row)| row.is_alive);
        let one = |(hostname, row): (&&str, &Row)| LivingConductor {
            epoch: row.epoch,
            is_draining: row.is_draining,
            settled: row.settled.clone(),
            ..conductor(hostname)
        };
        LivingConductors::new(alive.map(one).collect())
    }

    fn happens(&mut self, host: usize, event: Event) {
        let (row, actor) = (&mut self.rows[host], &mut self.actors[host]);
        match event {
            Event::Register if !row.is_alive => {
                let epoch = row.epoch + 1;
                *row = Row { epoch, is_alive: true, ..Row::default() };
                let share = ConductorShare::nothing(HOSTS[host]);
                *actor = Actor { share, turns: BTreeSet::new(), is_fenced: false };
            }
            Event::Renew if row.is_alive => {
                let has = |number: &u128| actor.share.has(&node(*number), "");
                if actor.turns.iter().all(has) {
                    actor.share.living().fingerprint().clone_into(&mut row.settled);
                }
                let living = self.living();
                self.actors[host].share.observe(living);
            }
            Event::Dies => (row.is_alive, actor.is_fenced) = (false, true),
            Event::Drain if row.is_alive => row.is_draining = true,
            Event::Undrain if row.is_alive => row.is_draining = false,
            Event::Begins(number) if actor.share.has(&node(number), "") => {
                actor.turns.insert(number);
            }
            Event::Ends(number) => {
                actor.turns.remove(&number);
            }
            Event::Register | Event::Renew | Event::Drain | Event::Undrain | Event::Begins(_) => {}
        }
    }

    /// The conductors that have a turn for the node, or may begin one.
    fn workers(&self, number: u128) -> Vec<&'static str> {
        let works = |actor: &Actor| {
            let has = actor.share.has(&node(number), "") || actor.turns.contains(&number);
            has && !actor.is_fenced
        };
        let both = HOSTS.into_iter().zip(&self.actors);
        both.filter(|(_, actor)| works(actor)).map(|(hostname, _)| hostname).collect()
    }
}

proptest! {
    #[test]
    fn only_the_share_of_the_conductor_that_joins_or_leaves_moves(
        hosts in prop::collection::btree_set("[a-z]{1,8}", 1..8),
        other in "[A-Z]{1,8}",
        number in any::<u128>(),
    ) {
        let without: Vec<&str> = hosts.iter().map(String::as_str).collect();
        let with: Vec<&str> = without.iter().copied().chain([other.as_str()]).collect();
        let (before, after) = (owner(&living(&without), number), owner(&living(&with), number));
        prop_assert!(after == before || after == other);
    }

    #[test]
    fn no_two_conductors_work_on_one_node(
        events in prop::collection::vec((0..HOSTS.len(), event()), 0..200)
    ) {
        let mut world = World::new();
        for (host, event) in events {
            world.happens(host, event);
            for number in 0..NODES {
                let workers = world.workers(number);
                prop_assert!(workers.len() <= 1, "{workers:?} after {event:?} of {}", HOSTS[host]);
            }
        }
        // Once no conductor comes or goes and all turns end, each node has a conductor.
        for _ in 0..4 {
            for host in 0..HOSTS.len() {
                world.actors[host].turns.clear();
                world.happens(host, Event::Renew);
            }
        }
        let takes_work = world.rows.iter().any(|row| row.is_alive && !row.is_draining);
        for number in 0..NODES {
            prop_assert_eq!(world.workers(number).len(), usize::from(takes_work));
        }
    }
}
