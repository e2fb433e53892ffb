//! Clouds that refuse requests.

use cluster_core::{ConditionKind, ConditionStatus, GroupRole, NodeGroup, resize};
use cluster_store::ClusterChange;
use openstack_emulator::{Act, CreateOutcome, End, Kind, Rule};

use crate::given::ClusterFixture;

#[tokio::test]
async fn a_quota_that_is_used_up_is_named_and_a_raised_one_is_enough() {
    let given = ClusterFixture::cluster(1, 1).await;
    given.cloud.set_quota("tenant-a", "router", 0);
    let _working = given.conductor();
    let reported =
        given.until(ConditionKind::NetworkReady, |it| it.reason == "QuotaExceeded").await;
    assert!(
        reported.is_final && reported.message.ends_with("needed: 1 routers (0 free)"),
        "{reported:?}"
    );
    assert_eq!(given.of_kind(Kind::Network).len(), 0, "nothing is made");
    assert!(reported.next_action.contains("quota"), "{reported:?}");
    given.cloud.set_quota("tenant-a", "router", 10);
    given.until_complete().await;
    given.assert_once(1, 1);
}

#[tokio::test]
async fn a_full_zone_is_reported_before_anything_is_created() {
    let given = ClusterFixture::cluster(1, 1).await;
    // The zone's SOA and NS, and one more.
    given.cloud.set_quota("tenant-a", "zone_recordsets", 3);
    let _working = given.conductor();
    let reported =
        given.until(ConditionKind::NetworkReady, |it| it.reason == "QuotaExceeded").await;
    assert!(reported.message.ends_with("needed: 2 recordsets (1 free)"), "{reported:?}");
    assert_eq!(given.of_kind(Kind::Network).len(), 0, "nothing is made");
    given.cloud.set_quota("tenant-a", "zone_recordsets", 4);
    given.until_complete().await;
    given.assert_once(1, 1);
}

#[tokio::test]
async fn nothing_is_created_while_the_hosts_lack_capacity() {
    let given = ClusterFixture::cluster(1, 5).await;
    for quota in ["cores", "ram"] {
        given.cloud.set_quota("tenant-a", quota, -1);
    }
    // The cloud has four GPUs of this kind, which it reports to administrators only.
    let workers =
        |groups: Vec<NodeGroup>| groups.into_iter().find(|it| it.role != GroupRole::Master);
    let change = async |with: &dyn Fn(NodeGroup) -> NodeGroup| {
        let group = workers(given.store.groups_of(given.id).await.unwrap()).unwrap();
        let cluster = given.find().await.unwrap();
        let change = ClusterChange { changed: vec![with(group)], ..ClusterChange::of(cluster) };
        given.store.change_cluster(&change).await
    };
    let flavor = Some("g1.small".to_owned());
    change(&|group| NodeGroup { flavor: flavor.clone(), ..group }).await.unwrap();
    given.cloud.add_user_with("alice", "alice-secret", "tenant-a", &["admin"]);
    let asked_placement =
        || given.cloud.count(|call| call.path.ends_with("/allocation_candidates"));

    // A quota that is too small is reported first.
    given.cloud.set_quota("tenant-a", "instances", 5);
    let _working = given.conductor();
    given.until(ConditionKind::NetworkReady, |it| it.reason == "QuotaExceeded").await;
    given.cloud.set_quota("tenant-a", "instances", 6);
    let reported = given.until(ConditionKind::NetworkReady, |it| it.reason == "NoRoom").await;
    assert!(
        !reported.is_final && reported.message.ends_with("of flavor g1.small (4 fit)"),
        "{reported:?}"
    );
    assert!(asked_placement() > 0);
    assert_eq!(given.of_kind(Kind::Network).len(), 0, "nothing is made");

    while change(&|group| resize(&group, 4, &[]).unwrap()).await.is_err() {}
    given.until_complete().await;
    given.assert_once(1, 4);
}

#[tokio::test]
async fn a_cluster_never_gets_other_roles_than_the_allowed_ones() {
    let given = ClusterFixture::cluster(1, 1).await;
    given.cloud.add_user_with("boss", "boss-secret", "tenant-a", &["admin"]);
    let working = given.conductor_as("boss");
    let reported =
        given.until(ConditionKind::InfrastructureReady, |it| it.reason == "NoRole").await;
    assert!(reported.message.contains("none of the roles member,"), "{reported:?}");
    assert_eq!(given.of_kind(Kind::ApplicationCredential).len(), 0);
    working.abort();

    let _working = given.conductor();
    given.until_complete().await;
    given.assert_once(1, 1);
}

#[tokio::test]
async fn a_failed_load_balancer_is_created_again_and_deleted_with_all_its_parts() {
    let given = ClusterFixture::cluster(1, 1).await;
    let end = End::Error("no amphora".to_owned());
    let kind = Kind::LoadBalancer;
    given.cloud.set_fate(CreateOutcome {
        kind,
        name: "**".to_owned(),
        after: 0,
        times: Some(1),
        end,
    });
    let _working = given.conductor();
    given.until_complete().await;
    given.assert_once(1, 1);
    given.deleted().await;
}

#[tokio::test]
async fn a_service_that_is_down_is_named_and_waited_for() {
    let given = ClusterFixture::cluster(1, 1).await;
    let rule = Rule::new("POST", "/network/**/subnets", Act::Close);
    let rule = given.cloud.misbehave(rule);
    let _working = given.conductor();
    let reported =
        given.until(ConditionKind::NetworkReady, |it| it.reason == "CloudUnreachable").await;
    assert_eq!((reported.status, reported.is_final), (ConditionStatus::False, false));
    given.cloud.end_rule(rule);
    given.until_complete().await;
    given.assert_once(1, 1);
}
