//! The answers to members that report their certificates.

use std::time::Duration;

use cluster_conductor::CertificateAnswer::{self, Nothing, Renew, ReportAgain};
use cluster_core::{Cluster, Ident, MemberCertificates};
use cluster_pki::{Validity, make_pki};
use cluster_store::{ClusterChange, Scope};
use jiff::Timestamp;
use newtype_uuid::GenericUuid;

use crate::authorities::{Asks, begun};
use crate::given::{ClusterFixture, machine, pass};

/// When the conductor of a test starts.
const START: i64 = 1_700_000_000;
const LIFE: i64 = 1000;

/// A report with one certificate, issued this many seconds after the start.
fn report(stage: &str, issued: i64) -> String {
    let issued = START + issued;
    let now = Timestamp::from_second(issued).unwrap();
    let validity = Validity { now, lifetime: Duration::from_secs(LIFE.unsigned_abs()) };
    let pki = make_pki(&"blue".try_into().unwrap(), 0, validity).unwrap();
    format!("stage {stage}\ncertificate etcd/peer {issued}\n{}", pki.etcd.certificate)
}

impl Asks {
    async fn reports(&self, given: &ClusterFixture, stage: &str, issued: i64) -> CertificateAnswer {
        let report = report(stage, issued);
        given.conductor.take_certificate_report(&self.claim, &self.token, &report).await
    }
}

impl ClusterFixture {
    async fn recorded(&self) -> Cluster {
        let ident = Ident::Id(self.cluster.id.into_untyped_uuid());
        self.store.find_clusters(&ident, &Scope::All).await.unwrap().pop().unwrap()
    }
}

#[tokio::test]
async fn control_plane_members_renew_one_after_the_other_and_restarts_change_nothing() {
    let (mut given, all) = begun().await;
    for asks in &all {
        assert_eq!(asks.reports(&given, "idle", 0).await, ReportAgain(400));
    }
    pass(400);
    assert_eq!(all[1].reports(&given, "idle", 0).await, Renew);
    assert_eq!(all[0].reports(&given, "idle", 0).await, ReportAgain(10));
    assert_eq!(all[3].reports(&given, "idle", 0).await, Renew, "it is a worker");
    given.restart();
    assert_eq!(all[0].reports(&given, "idle", 0).await, ReportAgain(10));
    pass(20);
    assert_eq!(all[1].reports(&given, "control-plane", 410).await, Renew, "it was interrupted");
    assert_eq!(all[1].reports(&given, "idle", 410).await, ReportAgain(390));
    assert_eq!(all[0].reports(&given, "idle", 0).await, Renew);

    let held = given.recorded().await.certificates;
    let MemberCertificates { first, renewing_since, renewed_at } =
        held[&machine("default-master-1")].clone();
    assert_eq!((first.name.as_str(), first.issued_at.as_second()), ("etcd/peer", START + 410));
    assert_eq!(renewing_since, None);
    assert_eq!(renewed_at.map(Timestamp::as_second), Some(START + 420));
    let last = given.events().await.pop().unwrap();
    let want = "info CertificatesRenewed: member default-master-1 renewed its certificates; etcd/peer ends first, at ";
    assert!(last.starts_with(want), "{last}");
}

#[tokio::test]
async fn of_members_that_report_at_the_same_time_one_is_permitted() {
    let (given, all) = begun().await;
    pass(400);
    let (one, other, third) = tokio::join!(
        all[0].reports(&given, "idle", 0),
        all[1].reports(&given, "idle", 0),
        all[2].reports(&given, "idle", 0),
    );
    let permitted = [one, other, third].into_iter().filter(|answer| *answer == Renew);
    assert_eq!(permitted.count(), 1);
    let held = given.recorded().await.certificates;
    assert_eq!(held.values().filter(|it| it.renewing_since.is_some()).count(), 1);
}

#[tokio::test]
async fn no_member_renews_while_another_control_plane_member_is_not_ready() {
    let (mut given, all) = begun().await;
    pass(400);
    let unready = [machine("default-master-2")].into();
    let cluster = Cluster { unready, ..given.cluster.clone() };
    given.cluster = given.store.change_cluster(&ClusterChange::of(cluster)).await.unwrap();
    assert_eq!(all[0].reports(&given, "idle", 0).await, ReportAgain(10));
    assert_eq!(all[2].reports(&given, "idle", 0).await, Renew, "only this member is away");
}

#[tokio::test]
async fn a_report_that_says_nothing_new_writes_nothing() {
    let (given, all) = begun().await;
    all[0].reports(&given, "idle", 0).await;
    let before = given.recorded().await;
    pass(10);
    let text = report("idle", 0);
    let repeated =
        async || given.conductor.take_certificate_report(&all[0].claim, &all[0].token, &text).await;
    assert_eq!(repeated().await, ReportAgain(390));
    assert_eq!(given.recorded().await, before);
}

#[tokio::test]
async fn a_wrong_token_or_a_malformed_report_records_nothing() {
    let (given, all) = begun().await;
    let mixed = Asks { claim: all[0].claim.clone(), token: all[3].token.clone() };
    assert_eq!(mixed.reports(&given, "idle", 0).await, Nothing);
    let unknown = Asks { claim: "x".to_owned(), token: all[0].token.clone() };
    assert_eq!(unknown.reports(&given, "idle", 0).await, Nothing);
    assert_eq!(all[0].reports(&given, "elsewhere", 0).await, Nothing);
    assert!(given.recorded().await.certificates.is_empty());
}
