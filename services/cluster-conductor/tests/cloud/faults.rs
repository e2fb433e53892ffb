//! A cloud that fails for a while: the reason is reported, no object is created twice, and work continues when the fault is over.

use std::collections::BTreeMap;
use std::time::Duration;

use cluster_core::{Condition, ConditionKind, ConditionStatus};
use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use openstack_emulator::{Act, Call, Cloud, CreateOutcome, End, Kind, Lag, Rule};

use crate::given::ClusterFixture;
use crate::life::workers;

impl ClusterFixture {
    pub(crate) async fn until_told(&self, reason: &str) -> Condition {
        let looking = async {
            loop {
                let conditions = self.find().await.unwrap().conditions;
                if let Some(reported) = conditions.into_iter().find(|it| it.reason == reason) {
                    return reported;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        match tokio::time::timeout(Duration::from_secs(60), looking).await {
            Ok(reported) => reported,
            Err(_) => panic!("{reason} is never told: {:?}", self.find().await.unwrap().conditions),
        }
    }

    /// Returns the kind and id of every object of the cluster.
    pub(crate) fn ids(&self) -> Vec<(Kind, String)> {
        let kinds = [
            Kind::Network,
            Kind::Subnet,
            Kind::Router,
            Kind::SecurityGroup,
            Kind::ServerGroup,
            Kind::Port,
            Kind::LoadBalancer,
            Kind::FloatingIp,
            Kind::Recordset,
            Kind::Server,
            Kind::ApplicationCredential,
        ];
        let all = kinds
            .into_iter()
            .flat_map(|kind| self.of_kind(kind).into_iter().map(move |object| (kind, object.id)));
        all.collect()
    }
}

fn fails(status: u16, retry_after: Option<u32>) -> Act {
    Act::Answer { status, retry_after, message: None }
}

fn fate(kind: Kind, name: &str, times: u32, end: End) -> CreateOutcome {
    CreateOutcome { kind, name: name.to_owned(), after: 0, times: Some(times), end }
}

#[tokio::test]
async fn each_service_may_be_down_during_the_creation_of_a_cluster() {
    let services = ["identity", "network", "compute", "load-balancer", "dns", "image", "volume"];
    join_all(services.map(|service| async move {
        let given = ClusterFixture::cluster(1, 1).await;
        let down = given.cloud.misbehave(Rule::new("", &format!("/{service}/**"), Act::Close));
        let _working = given.conductor();
        let reported = given.until_told("CloudUnreachable").await;
        assert_eq!(
            (reported.status, reported.is_final),
            (ConditionStatus::False, false),
            "{service}"
        );
        assert!(reported.next_action.contains("can reach that service"), "{service}: {reported:?}");
        given.cloud.end_rule(down);
        given.until_complete().await;
        given.assert_once(1, 1);
    }))
    .await;
}

#[tokio::test]
async fn each_service_may_be_down_while_a_cluster_runs_and_while_it_is_deleted() {
    let services = ["identity", "network", "compute", "load-balancer", "dns"];
    join_all(services.map(|service| async move {
        let (given, _working) = ClusterFixture::complete(1, 1).await;
        let before = given.ids();
        let path = format!("/{service}/**");
        let down = given.cloud.misbehave(Rule::new("", &path, Act::Close));
        let reported = given.until_told("CloudUnreachable").await;
        assert!(!reported.is_final && !reported.next_action.is_empty(), "{service}: {reported:?}");
        given.cloud.end_rule(down);
        given.until_complete_again().await;
        assert_eq!(given.ids(), before, "{service}");

        let down = given.cloud.misbehave(Rule::new("", &path, fails(503, None)));
        given.delete().await;
        given.until_told("CloudBusy").await;
        given.cloud.end_rule(down);
        given.until_gone().await;
    }))
    .await;
}

/// Returns the GET requests that were answered with 429, by path and query. Other requests run in parallel, so their order means nothing.
fn turned_away(cloud: &Cloud) -> BTreeMap<(String, String), Vec<Call>> {
    let mut asked: BTreeMap<(String, String), Vec<Call>> = BTreeMap::new();
    for call in cloud.calls() {
        if call.status == Some(429) && call.method == "GET" {
            asked.entry((call.path.clone(), call.query.clone())).or_default().push(call);
        }
    }
    asked
}

#[tokio::test]
async fn a_request_answered_with_retry_after_is_repeated_later() {
    let given = ClusterFixture::cluster(1, 1).await;
    let _working = given.conductor();
    given.cloud.wait_until(|_| given.of_kind(Kind::Router).pop()).await;
    let storm = given.cloud.misbehave(Rule::new("", "/**", fails(429, Some(1))));
    let reported = given.until_told("CloudBusy").await;
    assert_eq!((reported.status, reported.is_final), (ConditionStatus::False, false));
    // Waits until a request that was answered with 429 was repeated.
    let came_back = |cloud: &Cloud| {
        let asked = turned_away(cloud);
        asked.values().any(|calls| calls.len() > 1).then_some(asked)
    };
    let asked = given.cloud.wait_until(came_back).await;
    given.cloud.end_rule(storm);

    for calls in asked.values() {
        for pair in calls.windows(2) {
            let waited = pair[1].at_millis - pair[0].at_millis;
            assert!(waited >= 950, "after {waited} ms: {pair:?}");
        }
    }
    given.until_complete().await;
    given.assert_once(1, 1);
}

#[tokio::test]
async fn a_service_that_fails_is_named_and_called_again() {
    for path in ["/network/**/ports", "/compute/**/servers", "/load-balancer/**/loadbalancers"] {
        let given = ClusterFixture::cluster(1, 1).await;
        let rule = given.cloud.misbehave(Rule::new("POST", path, fails(500, None)));
        let _working = given.conductor();
        let reported = given.until_told("CloudFailed").await;
        assert!(!reported.is_final, "{reported:?}");
        assert!(reported.message.contains("req-"), "{reported:?}");
        assert!(reported.next_action.contains("request id"), "{reported:?}");
        given.cloud.end_rule(rule);
        given.until_complete().await;
        given.assert_once(1, 1);
    }
}

#[tokio::test]
async fn lists_that_lag_behind_make_no_duplicates() {
    let given = ClusterFixture::cluster(1, 1).await;
    for kind in [
        Kind::Network,
        Kind::Subnet,
        Kind::Router,
        Kind::Port,
        Kind::SecurityGroup,
        Kind::ServerGroup,
        Kind::Server,
        Kind::LoadBalancer,
        Kind::FloatingIp,
        Kind::Recordset,
    ] {
        given.cloud.lag(Lag { kind, millis: 500 });
    }
    let _working = given.conductor();
    given.until_complete().await;
    given.assert_once(1, 1);
    let before = given.ids();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(given.ids(), before);
    given
        .ask(
            |_, group| {
                group.add_machine();
            },
            workers(),
        )
        .await;
    given.until_complete().await;
    given.assert_once(1, 2);
    given.deleted().await;
}

#[tokio::test]
async fn a_server_that_never_boots_is_created_again_as_the_same_member() {
    for machine in ["-default-worker-0", "-default-master-0"] {
        let mut given = ClusterFixture::cluster(1, 1).await;
        given.settings.repair.become_node_within = SignedDuration::from_secs(5);
        given.cloud.set_fate(fate(Kind::Server, &format!("*{machine}"), 1, End::NeverBoots));
        let _working = given.conductor();
        let server = |given: &ClusterFixture| {
            let all = given.of_kind(Kind::Server);
            all.into_iter().find(|it| it.text("name").ends_with(machine)).map(|it| it.id)
        };
        let first = given.cloud.wait_until(|_| server(&given)).await;
        let wanted = &machine[1..];
        let kind = ConditionKind::BootstrapReady;
        let waits =
            |it: &Condition| it.reason == "WaitingForMachines" && it.message.contains(wanted);
        let reported = given.until(kind, waits).await;
        assert_eq!(reported.status, ConditionStatus::False);
        given.until_complete().await;
        given.assert_once(1, 1);
        assert_ne!(server(&given), Some(first));
    }
}

#[tokio::test]
async fn the_time_in_which_clusterd_was_down_is_not_held_against_a_server() {
    let mut given = ClusterFixture::cluster(1, 1).await;
    given.cloud.set_fate(fate(Kind::Server, "*-default-worker-0", 1, End::NeverBoots));
    let working = given.conductor();
    let is_left = |it: &Condition| {
        it.reason == "WaitingForMachines" && !it.message.contains("default-master-0")
    };
    given.until(ConditionKind::BootstrapReady, is_left).await;
    working.abort();
    let servers = |given: &ClusterFixture| -> Vec<String> {
        given.of_kind(Kind::Server).into_iter().map(|it| it.id).collect()
    };
    let before = servers(&given);
    given.settings.clock = || Timestamp::now() + SignedDuration::from_hours(1);
    let _working = given.conductor();
    let calls = given.cloud.calls().len();
    let looks = |cloud: &Cloud| (cloud.calls().len() > calls + 100).then_some(());
    given.cloud.wait_until(looks).await;
    assert_eq!(servers(&given), before);
}

#[tokio::test]
async fn a_failed_server_is_reported_with_novas_message_and_created_again() {
    let given = ClusterFixture::cluster(1, 1).await;
    let end = End::Error("No valid host was found.".to_owned());
    given.cloud.set_fate(fate(Kind::Server, "*-default-worker-0", 3, end));
    let _working = given.conductor();
    given.until_complete().await;
    let events = given.store.events_of(given.id, 1000, None).await.unwrap();
    let reported = events.iter().filter(|it| {
        it.reason == "CloudFailed"
            && it.message == "deleting server/default-worker-0, which failed in the cloud: No valid host was found."
    });
    assert_eq!(reported.count(), 3, "{events:?}");
    given.assert_once(1, 1);
    given.deleted().await;
}

#[tokio::test]
async fn a_load_balancer_that_is_long_pending_is_named_and_deleted_when_octavia_allows_it() {
    let given = ClusterFixture::cluster(1, 1).await;
    given.cloud.set_fate(fate(Kind::LoadBalancer, "**", 1, End::Takes(3000)));
    let _working = given.conductor();
    let kind = ConditionKind::LoadBalancerReady;
    let reported = given.until(kind, |it| it.reason == "Creating").await;
    assert!(reported.message.contains("load-balancer"), "{reported:?}");
    given.delete().await;
    let refused = |call: &Call| {
        call.method == "DELETE" && call.path.contains("loadbalancers") && call.status == Some(409)
    };
    given.cloud.wait_until(|cloud| (cloud.count(refused) > 0).then_some(())).await;
    let reported = given
        .until(kind, |it| it.status == ConditionStatus::False && it.reason != "Creating")
        .await;
    assert!(!reported.is_final, "{reported:?}");
    given.until_gone().await;
}

#[tokio::test]
async fn a_quota_used_up_midway_is_named_and_a_raised_one_is_enough() {
    let given = ClusterFixture::cluster(1, 1).await;
    // The delay leaves enough time to take the quota of floating IPs away.
    given.cloud.misbehave(Rule::new("POST", "/network/**/subnets", Act::Delay { millis: 300 }));
    let _working = given.conductor();
    given.cloud.wait_until(|_| given.of_kind(Kind::Network).pop()).await;
    given.cloud.set_quota("tenant-a", "floatingip", 0);
    let reported = given.until_told("QuotaExceeded").await;
    assert!(reported.is_final && reported.next_action.contains("quota"), "{reported:?}");
    assert_eq!(given.of_kind(Kind::Server).len(), 0);
    given.cloud.set_quota("tenant-a", "floatingip", 50);
    given.until_complete().await;
    given.assert_once(1, 1);

    given.cloud.set_quota("tenant-a", "instances", 2);
    given
        .ask(
            |_, group| {
                group.add_machine();
            },
            workers(),
        )
        .await;
    let reported = given.until_told("QuotaExceeded").await;
    assert!(reported.message.contains("needed: 1 instances (0 free)"), "{reported:?}");
    given.assert_once(1, 1);
    given.cloud.set_quota("tenant-a", "instances", 3);
    given.until_complete().await;
    given.assert_once(1, 2);
    given.deleted().await;
}

#[tokio::test]
async fn invalid_tokens_are_replaced() {
    let given = ClusterFixture::cluster(1, 1).await;
    let _working = given.conductor();
    for kind in [Kind::Network, Kind::Port, Kind::LoadBalancer, Kind::Server] {
        given.cloud.wait_until(|_| given.of_kind(kind).pop()).await;
        given.cloud.void_tokens();
    }
    given.until_complete().await;
    given.assert_once(1, 1);
    given.delete().await;
    given.cloud.void_tokens();
    given.until_gone().await;
}
