//! Reboots of members for updates of their operating systems: they ask again and again, and clusterd is killed while one reboots.
#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]

use std::collections::{BTreeMap, BTreeSet};

use cluster_conductor::{Conductor, RebootReport};
use cluster_core::{MemberName, RebootAnswer, RebootPhase, machine_name};
use kubernetes::{Access, Client, nodes};
use openstack_emulator::Stop;
use sealing::{Purpose, SealingKeys};

use crate::fixture::{self, ClusterFixture};
use crate::rotation::kill_at_calls;

/// The members of a cluster, each with its claim and its credential.
struct Members(BTreeMap<MemberName, (String, String)>);

impl Members {
    async fn of(given: &ClusterFixture) -> Members {
        let keys = SealingKeys::parse(&given.keys).unwrap();
        let mut members = BTreeMap::new();
        for report in given.store.machines_of(given.id).await.unwrap() {
            let claim = report.claim.to_string();
            let token = keys.derive(Purpose::Reboot, &claim).unwrap().token.as_str().to_owned();
            members.insert(report.machine, (claim, token));
        }
        Members(members)
    }

    async fn report(
        &self,
        conductor: &Conductor,
        machine: &MemberName,
        report: RebootReport,
    ) -> RebootAnswer {
        let (claim, token) = &self.0[machine];
        conductor.take_reboot_report(claim, token, report).await.unwrap()
    }
}

/// The names of the cordoned nodes.
async fn cordoned(given: &ClusterFixture) -> Vec<String> {
    let access = Access::from_kubeconfig(&given.kubeconfig().await, None).unwrap();
    let all = nodes::list(&Client::new(&access).unwrap()).await.unwrap();
    all.into_iter().filter(|node| node.unschedulable).map(|node| node.name).collect()
}

#[tokio::test]
async fn members_reboot_one_after_the_other_although_clusterd_is_killed_meanwhile() {
    let given = ClusterFixture::cluster(3, 1).await;
    let mut working = given.clusterd().await;
    let cluster = given.until_complete().await;
    let (members, listener) = (Members::of(&given).await, given.idle_conductor());
    let mut waiting: BTreeSet<MemberName> = members.0.keys().cloned().collect();
    assert_eq!(waiting.len(), 4);
    while !waiting.is_empty() {
        let mut permitted = Vec::new();
        for machine in &waiting {
            let answer = members.report(&listener, machine, RebootReport::WantsTo).await;
            if answer == RebootAnswer::Permitted {
                permitted.push(machine.clone());
            }
        }
        assert!(permitted.len() <= 1, "{permitted:?} reboot at the same time");
        let Some(machine) = permitted.pop() else {
            fixture::pause().await;
            continue;
        };
        assert_eq!(cordoned(&given).await, [machine_name(&cluster, &machine)]);
        working.kill().await;
        working = given.clusterd().await;
        members.report(&listener, &machine, RebootReport::IsSteady).await;
        given.until("uncordoned", |it| it.reboot.is_none()).await;
        assert_eq!(cordoned(&given).await, [""; 0]);
        waiting.remove(&machine);
    }
    given.until_complete().await;
    working.kill().await;
}

/// Kills clusterd at calls while it drains a member, and while it uncordons the member again.
async fn killed(stop: Stop) {
    let given = ClusterFixture::cluster(1, 1).await;
    let first = given.clusterd().await;
    given.until_complete().await;
    first.kill().await;
    let (members, listener) = (Members::of(&given).await, given.idle_conductor());
    let worker: MemberName = "default-worker-0".parse().unwrap();
    members.report(&listener, &worker, RebootReport::WantsTo).await;
    let phase = |it: &cluster_core::Cluster| it.reboot.as_ref().map(|reboot| reboot.phase);
    let drains = kill_at_calls(&given, stop, |it| phase(it) == Some(RebootPhase::Permitted)).await;
    assert!(!drains.is_empty());
    let answer = members.report(&listener, &worker, RebootReport::WantsTo).await;
    assert_eq!(answer, RebootAnswer::Permitted);
    members.report(&listener, &worker, RebootReport::IsSteady).await;
    kill_at_calls(&given, stop, |it| phase(it).is_none()).await;
    let last = given.clusterd().await;
    given.until_complete().await;
    assert_eq!(cordoned(&given).await, [""; 0]);
    last.kill().await;
}

#[tokio::test]
async fn killed_before_calls_of_a_reboot() {
    killed(Stop::Before).await;
}

#[tokio::test]
async fn killed_after_calls_of_a_reboot() {
    killed(Stop::After).await;
}
