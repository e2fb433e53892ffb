//! Conductors that are killed, and answers that are lost: no object is created twice, and none is left.

use openstack_emulator::{Act, Rule};

use crate::given::ClusterFixture;

#[tokio::test]
async fn the_successor_of_a_killed_conductor_leaves_no_duplicate_and_no_orphan() {
    for after in [1, 4, 7, 10, 13, 20] {
        let given = ClusterFixture::cluster(1, 1).await;
        let first = given.conductor();
        let asked = |cloud: &openstack_emulator::Cloud| {
            cloud.count(|call| call.method == "POST" && !call.path.ends_with("/tokens"))
        };
        given.cloud.wait_until(|cloud| (asked(cloud) >= after).then_some(())).await;
        first.abort();
        assert!(first.await.unwrap_err().is_cancelled());

        let second = given.conductor();
        given.until_complete().await;
        given.assert_once(1, 1);
        given.delete().await;
        let deleted =
            |cloud: &openstack_emulator::Cloud| cloud.count(|call| call.method == "DELETE");
        given.cloud.wait_until(|cloud| (deleted(cloud) >= after / 2).then_some(())).await;
        second.abort();

        let _third = given.conductor();
        given.until_gone().await;
    }
}

#[tokio::test]
async fn lost_answers_make_no_duplicates() {
    let given = ClusterFixture::cluster(3, 2).await;
    for path in [
        "/network/**/networks",
        "/network/**/subnets",
        "/network/**/routers",
        "/network/**/security-groups",
        "/network/**/security-group-rules",
        "/network/**/ports",
        "/network/**/floatingips",
        "/compute/**/os-server-groups",
        "/load-balancer/**/loadbalancers",
        "/dns/**/recordsets",
    ] {
        given.cloud.misbehave(Rule::new("POST", path, Act::LoseAnswer).times(2));
    }
    let _working = given.conductor();
    given.until_complete().await;
    given.assert_once(3, 2);

    given.cloud.misbehave(Rule::new("DELETE", "/**", Act::LoseAnswer).times(5));
    given.deleted().await;
}
