//! Conductors that are killed at every call of theirs that changes the cloud, before its work is done and after.
//!
//! The call of that number hangs, so that the kill hits it and no other; what else is under way then goes as it goes.
//! The next conductor has the same store and the same keys, and nothing else.

use std::collections::BTreeSet;
use std::time::Duration;

use cluster_core::{Key, LedgerEntry, LedgerState};
use openstack_emulator::{Act, Kind, Rule};
use tokio::task::JoinHandle;

use crate::given::Given;
use crate::life::workers;

/// The calls that change something.
const CHANGING: [&str; 4] = ["POST", "PUT", "PATCH", "DELETE"];

/// Kills conductors at every `step`th changing call of a create, a grow, a shrink and a delete, beginning with `first`.
async fn kill_at_every(act: Act, first: u32, step: usize) -> usize {
    let mut points = 0;
    for method in CHANGING {
        for number in (first..).step_by(step) {
            let hit = life(&Rule::new(method, "/**", act.clone()).nth(number)).await;
            if hit == 0 {
                break;
            }
            points += hit;
        }
    }
    points
}

/// One cluster's life; in each part of it a conductor dies by `rule`, if the part has such a call. How many did.
async fn life(rule: &Rule) -> usize {
    let given = Given::cluster(1, 1).await;
    let mut dead = 0;
    let mut working = given.conductor();

    dead += given.dies(&mut working, rule, given.until_complete()).await;
    given.until_complete().await;
    given.assert_once(1, 1);
    given.assert_ledger_agrees().await;

    given
        .ask(
            |_, group| {
                group.add_machine();
            },
            workers(),
        )
        .await;
    dead += given.dies(&mut working, rule, given.until_complete()).await;
    given.until_complete().await;
    given.assert_once(1, 2);
    given.assert_ledger_agrees().await;

    given
        .ask(
            |_, group| {
                group.machines.remove(&0);
            },
            workers(),
        )
        .await;
    dead += given.dies(&mut working, rule, given.until_complete()).await;
    given.until_complete().await;
    given.assert_once(1, 1);
    given.assert_ledger_agrees().await;

    given.delete().await;
    dead += given.dies(&mut working, rule, given.until_gone()).await;
    given.until_gone().await;
    working.abort();
    dead
}

impl Given {
    /// Kills the conductor as soon as `rule` has hit a call, and puts another one in its place; 0 where `end` came first.
    async fn dies(
        &self,
        working: &mut JoinHandle<()>,
        rule: &Rule,
        end: impl Future<Output = ()>,
    ) -> usize {
        let id = self.cloud.misbehave(rule.clone());
        let hit = self.cloud.wait_until(|cloud| (cloud.hits(id) > 0).then_some(()));
        let dies = tokio::select! {
            biased;
            () = hit => true,
            () = end => false,
        };
        if dies {
            working.abort();
            assert!((&mut *working).await.unwrap_err().is_cancelled());
        }
        self.cloud.forgive(id);
        if dies {
            *working = self.conductor();
        }
        usize::from(dies)
    }

    /// Waits until nothing is written down that was asked for twice and may still come.
    pub(crate) async fn until_single(&self) {
        let is_twin = |it: &LedgerEntry| it.kind.starts_with("twin/");
        let single = async {
            while self.store.ledger_of(self.id).await.unwrap().iter().any(is_twin) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), single).await.unwrap();
    }

    /// Asserts that each object has its line in the ledger, and each line its object, once nothing may come twice.
    pub(crate) async fn assert_ledger_agrees(&self) {
        self.until_single().await;
        let mut written = BTreeSet::new();
        for line in self.store.ledger_of(self.id).await.unwrap() {
            assert_eq!(line.state, LedgerState::Present, "{line:?}");
            if line.kind.parse::<Key>().unwrap() != Key::RouterInterface {
                written.insert(line.cloud_id.clone().unwrap());
            }
        }
        let kinds = [
            Kind::ApplicationCredential,
            Kind::FloatingIp,
            Kind::LoadBalancer,
            Kind::Network,
            Kind::Port,
            Kind::Recordset,
            Kind::Router,
            Kind::SecurityGroup,
            Kind::Server,
            Kind::ServerGroup,
            Kind::Subnet,
        ];
        let all = kinds.into_iter().flat_map(|kind| self.of_kind(kind));
        // Ports of Neutron's own come and go with router and network, and a zone's own records with the zone.
        let ours = all.filter(|it| {
            !it.text("device_owner").starts_with("network:")
                && !["SOA", "NS"].contains(&it.text("type"))
        });
        let mut ours: Vec<_> = ours.collect();
        let missing: Vec<_> =
            written.iter().filter(|id| !ours.iter().any(|it| it.id == **id)).collect();
        ours.retain(|it| !written.contains(&it.id));
        assert!(ours.is_empty() && missing.is_empty(), "unwritten: {ours:?}; gone: {missing:?}");
    }
}

#[tokio::test]
async fn killed_before_every_third_call_from_the_first() {
    assert!(kill_at_every(Act::Hang, 1, 3).await >= 18);
}

#[tokio::test]
async fn killed_before_every_third_call_from_the_second() {
    assert!(kill_at_every(Act::Hang, 2, 3).await >= 14);
}

#[tokio::test]
async fn killed_before_every_third_call_from_the_third() {
    assert!(kill_at_every(Act::Hang, 3, 3).await >= 10);
}

#[tokio::test]
async fn killed_after_every_third_call_from_the_first() {
    assert!(kill_at_every(Act::HangAfterwards, 1, 3).await >= 18);
}

#[tokio::test]
async fn killed_after_every_third_call_from_the_second() {
    assert!(kill_at_every(Act::HangAfterwards, 2, 3).await >= 14);
}

#[tokio::test]
async fn killed_after_every_third_call_from_the_third() {
    assert!(kill_at_every(Act::HangAfterwards, 3, 3).await >= 10);
}
