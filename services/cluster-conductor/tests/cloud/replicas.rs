//! Two conductors on one PostgreSQL. The one that works on a cluster is killed, stalled or drained while a create request is in flight:
//! the other one finishes the work in time, and nothing exists twice.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use cluster_core::NodeGroup;
use jiff::{SignedDuration, Timestamp};
use metrics::Metrics;
use openstack_emulator::{Act, Call, Rule};
use replicas::{ConductorState, DrainOutcome, LivingConductors};
use tokio::time::{sleep, timeout};

use crate::counted::until_line;
use crate::given::{ClusterFixture, PATIENCE};
use crate::life::workers;
use crate::process::Process;

const BOTH: [&str; 2] = ["a", "b"];

/// The time after which the work of a conductor that died goes on elsewhere.
const TAKEN_OVER: Duration = Duration::from_secs(10);

/// Longer than a lease lasts.
const STALL: Duration = Duration::from_secs(8);

/// The path of the requests that are in flight.
const PORTS: &str = "/network/v2.0/ports";

/// How late a request in flight is carried out, in milliseconds, and below how long a conductor waits for it.
const LATE: u32 = 3000;
const LANDS_WITHIN: SignedDuration = SignedDuration::from_secs(20);

/// Two conductors, and a complete cluster.
struct Site {
    given: ClusterFixture,
    processes: BTreeMap<&'static str, Process>,
    /// The metrics of each conductor.
    pages: BTreeMap<&'static str, Metrics>,
}

impl Site {
    /// Returns `None` without a PostgreSQL.
    async fn start() -> Option<Site> {
        let mut given = ClusterFixture::cluster_on_postgres(1, 1).await?;
        given.settings.repair.lands_within = LANDS_WITHIN;
        let (mut processes, mut pages) = (BTreeMap::new(), BTreeMap::new());
        for hostname in BOTH {
            let mut page = Metrics::new("test", "0");
            given.settings.metrics.clusters = page.conditions();
            processes.insert(hostname, given.process_as(hostname));
            pages.insert(hostname, page);
        }
        let site = Site { given, processes, pages };
        site.until_shared_by(&BOTH).await;
        site.given.until_complete().await;
        Some(site)
    }

    async fn living(&self) -> LivingConductors {
        let conductors = self.given.store.conductors();
        let rows = conductors.list(Timestamp::now()).await.unwrap();
        LivingConductors::listed(&rows, &conductors)
    }

    /// Waits until these conductors live, and have let go of what belongs to others.
    async fn until_shared_by(&self, hostnames: &[&str]) {
        let looking = async {
            loop {
                let living = self.living().await;
                let is_working = |it: &&str| living.state_of(it) == ConductorState::Working;
                if living.hostnames().eq(hostnames.iter().copied())
                    && hostnames.iter().all(is_working)
                {
                    return;
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, looking).await.unwrap();
    }

    /// The conductor that works on the cluster, and the other one.
    async fn owner_and_other(&self) -> [&'static str; 2] {
        let living = self.living().await;
        let owner = living.conductor_of(&self.given.id, "").unwrap();
        if owner == BOTH[0] { BOTH } else { [BOTH[1], BOTH[0]] }
    }

    /// Requests two more members, and waits until a request for a port is in flight.
    async fn begins_to_grow(&self) {
        self.given.cloud.forget_calls();
        let late = Rule::new("POST", PORTS, Act::Land { millis: LATE }).times(1);
        self.given.cloud.misbehave(late);
        let grow = |group: &mut NodeGroup| {
            group.add_machine();
            group.add_machine();
        };
        self.given.ask(|_, group| grow(group), workers()).await;
        let is_asked = |call: &Call| call.method == "POST" && call.path == PORTS;
        let asked = self.given.cloud.wait_until(|it| (it.count(is_asked) > 0).then_some(()));
        timeout(PATIENCE, asked).await.unwrap();
    }

    /// Waits until the cluster has grown, and asserts that everything exists once.
    async fn is_grown_once(&self) {
        self.given.until_complete().await;
        self.given.until_single().await;
        self.given.assert_once(1, 3);
    }
}

#[tokio::test]
async fn the_work_of_a_killed_conductor_is_finished_by_another() {
    let Some(mut site) = Site::start().await else { return };
    let [owner, other] = site.owner_and_other().await;
    site.begins_to_grow().await;
    let begun = Instant::now();
    site.processes.remove(owner).unwrap().kill().await;
    site.until_shared_by(&[other]).await;
    assert!(begun.elapsed() < TAKEN_OVER, "after {:?}", begun.elapsed());
    site.is_grown_once().await;
    site.given.deleted().await;
}

#[tokio::test]
async fn a_conductor_that_was_stalled_leaves_nothing_twice() {
    let Some(site) = Site::start().await else { return };
    let [owner, other] = site.owner_and_other().await;
    site.begins_to_grow().await;
    site.processes[owner].stall(STALL);
    site.until_shared_by(&[other]).await;
    // The stalled one goes on in the middle of the work of its successor.
    site.until_shared_by(&BOTH).await;
    site.is_grown_once().await;
    site.given.deleted().await;
}

#[tokio::test]
async fn a_drained_conductor_works_on_nothing() {
    let Some(site) = Site::start().await else { return };
    let [owner, other] = site.owner_and_other().await;
    let counted =
        |count: u32| format!("bedplate_cluster_statuses{{status=\"CREATE_COMPLETE\"}} {count}");
    until_line(&site.pages[owner], &counted(1)).await;
    let conductors = site.given.store.conductors();
    let drained = conductors.drain(owner, Timestamp::now()).await.unwrap();
    assert_eq!(drained, DrainOutcome::Recorded);
    let drained = async {
        while site.living().await.state_of(owner) != ConductorState::Drained {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, drained).await.unwrap();
    assert_eq!(site.living().await.conductor_of(&site.given.id, ""), Some(other));
    for (hostname, count) in [(owner, 0), (other, 1)] {
        until_line(&site.pages[hostname], &counted(count)).await;
    }
    site.begins_to_grow().await;
    site.is_grown_once().await;
    site.given.deleted().await;
}
