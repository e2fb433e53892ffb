//! Create requests that the cloud carries out long after they were given up and repeated.

use std::time::Duration;

use cluster_core::LedgerEntry;
use jiff::SignedDuration;
use openstack_emulator::{Act, Call, Kind, Rule};

use crate::given::ClusterFixture;
use crate::life::workers;

/// How late the requests are carried out, in milliseconds, and below how long the conductor waits for them.
const LATE: u32 = 3000;
const LANDS_WITHIN: SignedDuration = SignedDuration::from_secs(12);
/// How long it waits in a test that itself decides when a request is carried out.
const LONG: SignedDuration = SignedDuration::from_secs(40);

/// The paths that create objects of which the cloud allows two with the same name.
const MADE: [(&str, Kind); 6] = [
    ("/network/v2.0/networks", Kind::Network),
    ("/network/v2.0/routers", Kind::Router),
    ("/network/v2.0/security-groups", Kind::SecurityGroup),
    ("/network/v2.0/ports", Kind::Port),
    ("/compute/v2.1/os-server-groups", Kind::ServerGroup),
    ("/compute/v2.1/servers", Kind::Server),
];

impl ClusterFixture {
    async fn waiting_for_what_lands() -> ClusterFixture {
        let mut given = ClusterFixture::cluster(1, 1).await;
        given.settings.repair.lands_within = LANDS_WITHIN;
        given
    }

    /// The next matching request gets no answer and is carried out late.
    fn land_late(&self, path: &str) {
        self.cloud.misbehave(Rule::new("POST", path, Act::Land { millis: LATE }).times(1));
    }

    /// Returns how many requests without an answer were carried out.
    fn landed(&self, path: &str) -> usize {
        let is_late = |call: &Call| {
            call.method == "POST" && call.path == path && call.status.is_none() && call.worked
        };
        self.cloud.count(is_late)
    }

    async fn until_landed(&self, path: &str) {
        let landed = self.cloud.wait_until(|_| (self.landed(path) == 1).then_some(()));
        tokio::time::timeout(Duration::from_secs(60), landed).await.unwrap();
    }

    /// Waits until the ledger has neither a duplicate nor an object that may still appear.
    pub(crate) async fn until_single(&self) {
        let is_open = |it: &LedgerEntry| it.cloud_id.is_none() || it.kind.starts_with("twin/");
        let single = async {
            while self.store.ledger_of(self.id).await.unwrap().iter().any(is_open) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), single).await.unwrap();
    }
}

#[tokio::test]
async fn the_duplicate_of_a_late_request_is_deleted_and_the_object_in_use_stays() {
    let given = ClusterFixture::waiting_for_what_lands().await;
    for (path, _) in MADE {
        given.land_late(path);
    }
    let _working = given.conductor();
    given.until_complete().await;
    let used: Vec<_> = given.store.ledger_of(given.id).await.unwrap();
    for (path, kind) in MADE {
        given.until_landed(path).await;
        assert!(!given.of_kind(kind).is_empty());
    }
    given.until_single().await;
    given.assert_once(1, 1);
    given.assert_ledger_agrees().await;
    // The objects in the ledger stayed.
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
    // Nova does not create a server whose port is already in use.
    for (path, kind) in MADE.iter().filter(|(_, kind)| *kind != Kind::Server) {
        assert_eq!(deleted(path), 1, "{kind:?}");
    }
    given.deleted().await;
}

#[tokio::test]
async fn a_late_object_of_a_removed_member_is_deleted_too() {
    let mut given = ClusterFixture::waiting_for_what_lands().await;
    given.settings.repair.lands_within = LONG;
    let _working = given.conductor();
    given.until_complete().await;
    let ports = "/network/v2.0/ports";
    let late = given.cloud.misbehave(Rule::new("POST", ports, Act::LandAfterwards).times(1));
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
    given.cloud.end_rule(late);
    given.until_landed(ports).await;
    given.until_single().await;
    given.assert_once(1, 1);
    given.assert_ledger_agrees().await;
}

#[tokio::test]
async fn a_cluster_being_deleted_waits_for_requests_that_may_still_be_carried_out() {
    let given = ClusterFixture::waiting_for_what_lands().await;
    let groups = "/compute/v2.1/os-server-groups";
    given.land_late(groups);
    let _working = given.conductor();
    given.until_complete().await;
    given.deleted().await;
    assert_eq!(given.landed(groups), 1, "it was forgotten too early");
}
