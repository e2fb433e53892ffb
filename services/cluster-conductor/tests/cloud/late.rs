//! Requests that land long after they were given up, when what they ask for was asked for again.

use std::time::Duration;

use cluster_core::LedgerEntry;
use jiff::SignedDuration;
use openstack_emulator::{Act, Call, Kind, Rule};

use crate::given::Given;
use crate::life::workers;

/// How late they land, in milliseconds, and how late they are waited for.
const LATE: u32 = 3000;
const LANDS_WITHIN: SignedDuration = SignedDuration::from_secs(5);

/// Where objects are made of which there may be two of one name.
const MADE: [(&str, Kind); 6] = [
    ("/network/v2.0/networks", Kind::Network),
    ("/network/v2.0/routers", Kind::Router),
    ("/network/v2.0/security-groups", Kind::SecurityGroup),
    ("/network/v2.0/ports", Kind::Port),
    ("/compute/v2.1/os-server-groups", Kind::ServerGroup),
    ("/compute/v2.1/servers", Kind::Server),
];

impl Given {
    async fn waiting_for_what_lands() -> Given {
        let mut given = Given::cluster(1, 1).await;
        given.settings.repair.lands_within = LANDS_WITHIN;
        given
    }

    /// The first request that matches is given up at once, and lands late.
    fn land_late(&self, path: &str) {
        self.cloud.misbehave(Rule::new("POST", path, Act::Land { millis: LATE }).times(1));
    }

    /// How many requests were carried out of which nobody had an answer.
    fn landed(&self, path: &str) -> usize {
        let is_late = |call: &Call| {
            call.method == "POST" && call.path == path && call.status.is_none() && call.worked
        };
        self.cloud.count(is_late)
    }

    async fn until_landed(&self, path: &str) {
        let landed = self.cloud.wait_until(|_| (self.landed(path) == 1).then_some(()));
        tokio::time::timeout(Duration::from_secs(20), landed).await.unwrap();
    }

    /// Waits until nothing is there twice and nothing is written down that may still come.
    async fn until_single(&self) {
        let is_open = |it: &LedgerEntry| it.cloud_id.is_none() || it.kind.starts_with("twin/");
        let single = async {
            while self.store.ledger_of(self.id).await.unwrap().iter().any(is_open) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), single).await.unwrap();
    }
}

#[tokio::test]
async fn what_a_request_makes_that_lands_late_goes_and_what_is_used_stays() {
    let given = Given::waiting_for_what_lands().await;
    for (path, _) in MADE {
        given.land_late(path);
    }
    let working = given.conductor();
    given.until_complete().await;
    let used: Vec<_> = given.store.ledger_of(given.id).await.unwrap();
    for (path, kind) in MADE {
        given.until_landed(path).await;
        assert!(!given.of_kind(kind).is_empty());
    }
    given.until_single().await;
    given.assert_once(1, 1);
    given.assert_ledger_agrees().await;
    // Those of the ledger stayed.
    let now = given.store.ledger_of(given.id).await.unwrap();
    for line in used.iter().filter(|line| !line.kind.starts_with("twin/")) {
        assert!(
            now.iter().any(|it| (&it.kind, &it.cloud_id) == (&line.kind, &line.cloud_id)),
            "{line:?}"
        );
    }
    let deleted = |path: &str| {
        let of = |call: &Call| call.method == "DELETE" && call.path.starts_with(path);
        given.cloud.count(of)
    };
    // A server that finds its port taken is not made.
    for (path, kind) in MADE.iter().filter(|(_, kind)| *kind != Kind::Server) {
        assert_eq!(deleted(path), 1, "{kind:?}");
    }
    given.delete().await;
    given.until_gone().await;
    working.abort();
}

#[tokio::test]
async fn what_lands_when_its_machine_has_gone_goes_too() {
    let given = Given::waiting_for_what_lands().await;
    let working = given.conductor();
    given.until_complete().await;
    let ports = "/network/v2.0/ports";
    given.land_late(ports);
    given
        .ask(
            |_, group| {
                group.add_machine();
            },
            workers(),
        )
        .await;
    let asked = |cloud: &openstack_emulator::Cloud| {
        cloud.count(|call| call.method == "POST" && call.path == ports && call.status.is_none())
    };
    given.cloud.wait_until(|cloud| (asked(cloud) == 1).then_some(())).await;
    given.until_complete().await;
    given
        .ask(
            |_, group| {
                group.machines.remove(&1);
            },
            workers(),
        )
        .await;
    given.until_complete().await;
    assert_eq!(given.landed(ports), 0, "the test was too slow to try it");
    given.until_landed(ports).await;
    given.until_single().await;
    given.assert_once(1, 1);
    given.assert_ledger_agrees().await;
    working.abort();
}

#[tokio::test]
async fn a_cluster_that_goes_waits_for_what_may_still_land() {
    let given = Given::waiting_for_what_lands().await;
    let groups = "/compute/v2.1/os-server-groups";
    given.land_late(groups);
    let working = given.conductor();
    given.until_complete().await;
    given.delete().await;
    given.until_gone().await;
    assert_eq!(given.landed(groups), 1, "it was forgotten too early");
    working.abort();
}
