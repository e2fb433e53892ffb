//! Clouds that do not do as asked.

use cluster_core::{ConditionKind, Truth};
use openstack_emulator::{Act, End, Fate, Kind, Rule};

use crate::given::Given;

#[tokio::test]
async fn a_quota_that_is_used_up_is_named_and_a_raised_one_is_enough() {
    let given = Given::cluster(1, 1).await;
    given.cloud.set_quota("tenant-a", "router", 0);
    let working = given.conductor();
    let told = given.until(ConditionKind::NetworkReady, |it| it.reason == "QuotaExceeded").await;
    assert!(told.is_final && told.message.ends_with("needed are 1 routers (0 free)"), "{told:?}");
    assert_eq!(given.of_kind(Kind::Network).len(), 0, "nothing is made");
    assert!(told.next_action.contains("quota"), "{told:?}");
    given.cloud.set_quota("tenant-a", "router", 10);
    given.until_complete().await;
    given.assert_once(1, 1);
    working.abort();
}

#[tokio::test]
async fn a_zone_that_is_full_is_told_before_anything_is_made() {
    let given = Given::cluster(1, 1).await;
    // Its SOA, its NS, and one more.
    given.cloud.set_quota("tenant-a", "zone_recordsets", 3);
    let working = given.conductor();
    let told = given.until(ConditionKind::NetworkReady, |it| it.reason == "QuotaExceeded").await;
    assert!(told.message.ends_with("needed are 2 recordsets (1 free)"), "{told:?}");
    assert_eq!(given.of_kind(Kind::Network).len(), 0, "nothing is made");
    given.cloud.set_quota("tenant-a", "zone_recordsets", 4);
    given.until_complete().await;
    given.assert_once(1, 1);
    working.abort();
}

#[tokio::test]
async fn a_load_balancer_that_fails_is_made_anew_and_goes_with_all_its_parts() {
    let given = Given::cluster(1, 1).await;
    let end = End::Error("no amphora".to_owned());
    let kind = Kind::LoadBalancer;
    given.cloud.decide(Fate { kind, name: "**".to_owned(), after: 0, times: Some(1), end });
    let working = given.conductor();
    given.until_complete().await;
    given.assert_once(1, 1);
    given.delete().await;
    given.until_gone().await;
    working.abort();
}

#[tokio::test]
async fn a_service_that_is_down_is_named_and_waited_for() {
    let given = Given::cluster(1, 1).await;
    let rule = Rule::new("POST", "/network/**/subnets", Act::Close);
    let rule = given.cloud.misbehave(rule);
    let working = given.conductor();
    let told = given.until(ConditionKind::NetworkReady, |it| it.reason == "CloudUnreachable").await;
    assert_eq!((told.status, told.is_final), (Truth::False, false));
    given.cloud.forgive(rule);
    given.until_complete().await;
    given.assert_once(1, 1);
    working.abort();
}
