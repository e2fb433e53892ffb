//! Parts of load balancers that Octavia forgets, or that somebody deletes.

use openstack::Session;
use openstack::load_balancer::ProvisioningStatus::Active;
use openstack::load_balancer::listeners::NewListener;
use openstack::load_balancer::{listeners, monitors, pools};
use openstack_emulator::Kind;

use crate::given::{ClusterFixture, session};
use crate::life::workers;

/// Whether the listener of the API has an active pool with an active member and an active monitor.
async fn is_whole(session: &Session, balancer: &str) -> bool {
    let listener = listeners::find(session, balancer, "api").await.unwrap().pop();
    let Some(listener) = listener.filter(|it| it.provisioning_status == Active) else {
        return false;
    };
    let pool = pools::find(session, balancer, "api").await.unwrap().pop();
    let is_own = |id: &str| listener.default_pool_id.as_deref() == Some(id);
    let Some(pool) = pool.filter(|it| it.provisioning_status == Active && is_own(&it.id)) else {
        return false;
    };
    let members = pools::members(session, &pool.id).await.unwrap();
    let monitor = monitors::find(session, &pool.id).await.unwrap();
    members.len() == 1
        && members[0].provisioning_status == Active
        && monitor.is_some_and(|it| it.provisioning_status == Active)
}

async fn until_whole(session: &Session, balancer: &str) {
    while !is_whole(session, balancer).await {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn parts_that_octavia_forgot_or_somebody_deleted_are_made_again() {
    let (given, _working) = ClusterFixture::complete(1, 1).await;
    let session = session(&given.cloud);
    let balancer = given.of_kind(Kind::LoadBalancer).remove(0).id;
    until_whole(&session, &balancer).await;

    given.cloud.forget_load_balancer_children(&balancer);
    assert!(!is_whole(&session, &balancer).await);
    until_whole(&session, &balancer).await;

    let pool = pools::find(&session, &balancer, "api").await.unwrap().remove(0).id;
    // The load balancer may be locked by a change of the conductor.
    while pools::delete(&session, &pool).await.is_err() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    while pools::show(&session, &pool).await.unwrap().is_some() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    until_whole(&session, &balancer).await;
    let balancers = given.of_kind(Kind::LoadBalancer);
    assert_eq!(balancers.iter().map(|it| it.id.as_str()).collect::<Vec<_>>(), [balancer.as_str()]);
}

#[tokio::test]
async fn a_listener_that_the_owner_of_a_cluster_adds_stays_and_holds_nothing_up() {
    let (given, _working) = ClusterFixture::complete(1, 1).await;
    let session = session(&given.cloud);
    let balancer = given.of_kind(Kind::LoadBalancer).remove(0).id;
    until_whole(&session, &balancer).await;
    let own = NewListener {
        name: "own".to_owned(),
        protocol: "TCP".to_owned(),
        protocol_port: 8443,
        allowed_cidrs: Vec::new(),
        timeout_client_data: None,
        timeout_member_data: None,
        default_pool: None,
    };
    // The load balancer may be locked by a change of the conductor.
    while listeners::create(&session, &balancer, &own).await.is_err() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    given.ask(|_, group| assert_eq!(group.add_machine().number, 1), workers()).await;
    given.until_complete().await;
    until_whole(&session, &balancer).await;
    assert_eq!(listeners::find(&session, &balancer, "own").await.unwrap().len(), 1);
}
