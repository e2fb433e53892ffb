//! Renewal of certificates that live for seconds: members report over real TLS, and clusterd is killed while they renew.
#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]

use std::collections::BTreeSet;

use cluster_core::{Cluster, ConditionKind, ConditionStatus, MemberName};
use openstack_emulator::Settings;

use crate::fixture::ClusterFixture;
use crate::rotation::nodes_of;

/// The lifetime of certificates in seconds. The first renewal is due after four of them.
const LIFE: u32 = 10;

/// The control-plane members that renew now, without members whose certificate had ended before: such a member does not wait for others, and
/// on a busy computer a certificate of seconds ends.
fn renewing_masters(cluster: &Cluster) -> Vec<&MemberName> {
    let masters = cluster.certificates.iter().filter(|it| it.0.group.as_str() == "default-master");
    let waited = masters
        .filter(|(_, held)| held.renewing_since.is_some_and(|since| since < held.first.ends_at));
    waited.map(|(machine, _)| machine).collect()
}

/// The members whose renewal an event tells.
async fn renewed(given: &ClusterFixture) -> BTreeSet<String> {
    let events = given.store.events_of(given.id, 1000, None).await.unwrap();
    let renewed = events.into_iter().filter(|it| it.reason == "CertificatesRenewed");
    renewed.filter_map(|it| it.message.split(' ').nth(1).map(str::to_owned)).collect()
}

#[tokio::test]
async fn members_renew_one_after_the_other_although_clusterd_is_killed_meanwhile() {
    let settings = Settings { certificate_seconds: LIFE, ..Settings::default() };
    let given = ClusterFixture::of(settings, 3, 1).await;
    let mut working = given.clusterd().await;
    given.until_complete().await;
    let one_at_most = |cluster: &Cluster| {
        let renewing = renewing_masters(cluster);
        assert!(renewing.len() <= 1, "{renewing:?} restart at the same time");
        !renewing.is_empty()
    };
    // The members come back to a clusterd that was killed after it permitted a renewal.
    for _ in 0..3 {
        given.until("renewing", one_at_most).await;
        working.kill().await;
        working = given.clusterd().await;
    }
    while renewed(&given).await.len() < 4 {
        let before = given.find().await.version;
        let _ = given.until("changed", |it| one_at_most(it) || it.version != before).await;
    }
    let all = ["default-master-0", "default-master-1", "default-master-2", "default-worker-0"];
    assert_eq!(renewed(&given).await, BTreeSet::from(all.map(str::to_owned)));
    let cluster = given.until_complete().await;
    let valid = cluster.conditions.iter().find(|it| it.kind == ConditionKind::CertificatesValid);
    assert_eq!(valid.unwrap().status, ConditionStatus::True);
    assert_eq!(nodes_of(&given.kubeconfig().await).await, Ok(4));
    working.kill().await;
}

#[tokio::test]
async fn certificates_that_cannot_be_renewed_are_a_condition_and_renewed_later() {
    let settings = Settings { certificate_seconds: LIFE, ..Settings::default() };
    let given = ClusterFixture::of(settings, 1, 1).await;
    let first = given.clusterd().await;
    given.until_complete().await;
    given.until("reported", |it| it.certificates.len() == 2).await;
    first.kill().await;

    // No clusterd works until the certificates have ended. The next one sees that before any member reports again.
    let reported = given.find().await;
    let ends_at = reported.certificates.values().map(|it| it.first.ends_at).max().unwrap();
    while jiff::Timestamp::now() <= ends_at {
        crate::fixture::pause().await;
    }
    let second = given.clusterd().await;
    let condition = |cluster: &Cluster| {
        let found =
            cluster.conditions.iter().find(|it| it.kind == ConditionKind::CertificatesValid);
        found.map(|it| it.reason.clone()).unwrap_or_default()
    };
    given
        .until("renewed", |it| {
            it.certificates.values().all(|held| held.first.ends_at > ends_at)
                && condition(it) == "AsRequested"
        })
        .await;
    given.until_complete().await;
    second.kill().await;
}
