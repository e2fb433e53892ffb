//! Tests of retries: which calls are repeated, and when.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use openstack::compute::servers;
use openstack::network::{networks, ports};
use openstack::{CallObserver, CloudConfig, CloudError, Service, Session};
use serde_json::json;
use tokio::task::JoinSet;

use crate::answers::server;
use crate::cloud::{Cloud, ReceivedRequest, Reply};

fn busy(status: u16) -> Reply {
    Reply::json(status, json!({"message": "slow down"}))
}

fn fine() -> Reply {
    Reply::json(200, json!({"networks": [], "server": {"id": "s"}}))
}

#[tokio::test]
async fn a_429_is_retried_after_the_requested_wait() {
    let answer =
        |_: &ReceivedRequest, n| if n == 0 { busy(429).with("retry-after", "1") } else { fine() };
    let cloud = Cloud::start(answer).await;
    let began = Instant::now();
    servers::create(&cloud.session(), &server()).await.unwrap();
    assert!(began.elapsed() >= Duration::from_secs(1), "it was not waited for");
    assert_eq!(cloud.asked().len(), 2);
}

#[tokio::test]
async fn an_observer_is_told_about_each_call_once_and_not_about_its_retries() {
    let answer = |asked: &ReceivedRequest, n| match asked.line.contains("/network/") {
        true => Reply::json(403, json!({"message": "no"})),
        false if n == 0 => busy(429),
        false => fine(),
    };
    let cloud = Cloud::start(answer).await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = seen.clone();
    let observer = CallObserver::new(move |service, outcome, _| {
        noted.lock().unwrap().push((service, outcome));
    });
    let session = Session::observed(cloud.config(), observer).unwrap();
    servers::create(&session, &server()).await.unwrap();
    networks::find(&session, "n").await.unwrap_err();
    let seen: Vec<_> = seen.lock().unwrap().clone();
    let others: Vec<_> = seen.iter().filter(|(service, _)| *service != Service::Identity).collect();
    assert_eq!(others, [&(Service::Compute, "ok"), &(Service::Network, "forbidden")], "{seen:?}");
}

#[tokio::test]
async fn simultaneous_calls_are_limited_for_each_service_separately() {
    let silent = |asked: &ReceivedRequest, _| {
        if asked.line.contains("/network/") { Reply::Silence } else { fine() }
    };
    let cloud = Cloud::start(silent).await;
    let calls_at_once = NonZeroUsize::new(2).unwrap();
    let session = Session::new(CloudConfig { calls_at_once, ..cloud.config() }).unwrap();
    let mut asking = JoinSet::new();
    for _ in 0..6 {
        let session = session.clone();
        asking.spawn(async move { networks::find(&session, "n").await.map(drop) });
    }
    servers::create(&session, &server()).await.unwrap();
    asking.join_next().await.unwrap().unwrap().unwrap_err();
    let asked = cloud.lines().iter().filter(|line| line.contains("/network/")).count();
    assert!(asked <= 2 * 3, "two calls of three attempts each, and not {asked} attempts");
}

#[tokio::test]
async fn a_wait_beyond_the_call_timeout_is_left_to_the_caller() {
    let answer = |_: &ReceivedRequest, _| busy(503).with("retry-after", "30");
    let cloud = Cloud::start(answer).await;
    let began = Instant::now();
    let error = networks::find(&cloud.session(), "n").await.unwrap_err();
    assert_eq!(error.retry_after(), Some(Duration::from_secs(30)));
    assert!(error.is_transient());
    assert!(!error.is_outcome_unknown());
    assert!(began.elapsed() < Duration::from_secs(3));
    assert_eq!(cloud.asked().len(), 1);
}

#[tokio::test]
async fn a_503_is_retried_a_limited_number_of_times() {
    let cloud = Cloud::start(|_: &ReceivedRequest, _| busy(503)).await;
    let error = networks::find(&cloud.session(), "n").await.unwrap_err();
    assert!(matches!(error, CloudError::Busy { .. }), "{error:?}");
    assert_eq!(cloud.asked().len(), 3);
}

#[tokio::test]
async fn a_503_to_a_post_is_retried_only_with_retry_after() {
    let cloud = Cloud::start(|_: &ReceivedRequest, _| busy(503)).await;
    servers::create(&cloud.session(), &server()).await.unwrap_err();
    assert_eq!(cloud.asked().len(), 1);

    let answer =
        |_: &ReceivedRequest, n| if n == 0 { busy(503).with("retry-after", "0") } else { fine() };
    let cloud = Cloud::start(answer).await;
    servers::create(&cloud.session(), &server()).await.unwrap();
    assert_eq!(cloud.asked().len(), 2);
}

#[tokio::test]
async fn a_create_with_a_lost_answer_is_not_repeated_and_its_object_is_found() {
    let port = json!({"id": "p1", "name": "mine", "network_id": "n"});
    let answer = move |asked: &ReceivedRequest, _| {
        if asked.line.starts_with("POST") {
            Reply::Lost
        } else {
            Reply::json(200, json!({"ports": [port]}))
        }
    };
    let cloud = Cloud::start(answer).await;
    let session = cloud.session();
    let new = ports::NewPort { name: "mine".to_owned(), ..ports::NewPort::default() };
    let error = ports::create(&session, &new).await.unwrap_err();
    assert!(matches!(error, CloudError::Unreachable { .. }), "{error:?}");
    assert!(error.is_outcome_unknown() && error.is_transient());
    assert!(error.to_string().contains("POST /network/v2.0/ports (req-"), "{error}");
    assert_eq!(ports::find(&session, "mine").await.unwrap()[0].id, "p1");
    assert_eq!(cloud.lines(), ["POST /network/v2.0/ports", "GET /network/v2.0/ports?name=mine"]);
}

#[tokio::test]
async fn a_delete_with_a_lost_answer_is_repeated_and_not_found_is_success() {
    let answer = |_: &ReceivedRequest, n| if n == 0 { Reply::Lost } else { busy(404) };
    let cloud = Cloud::start(answer).await;
    ports::delete(&cloud.session(), "p1").await.unwrap();
    assert_eq!(cloud.lines(), ["DELETE /network/v2.0/ports/p1", "DELETE /network/v2.0/ports/p1"]);
}

#[tokio::test]
async fn silence_ends_each_attempt_and_then_the_call() {
    let cloud = Cloud::start(|_: &ReceivedRequest, _| Reply::Silence).await;
    let began = Instant::now();
    let error = networks::find(&cloud.session(), "n").await.unwrap_err();
    assert!(error.to_string().contains("none within 0.4 s"), "{error}");
    assert_eq!(cloud.asked().len(), 3);
    assert!(began.elapsed() < Duration::from_secs(4));
}

#[tokio::test]
async fn a_missing_cloud_is_unreachable() {
    let cloud = Cloud::start(|_: &ReceivedRequest, _| fine()).await;
    let mut config = cloud.config();
    config.auth_url = "http://127.0.0.1:1".parse().unwrap();
    let error = networks::find(&Session::new(config).unwrap(), "n").await.unwrap_err();
    assert!(matches!(error, CloudError::Unreachable { .. }), "{error:?}");
}

#[tokio::test]
async fn a_500_is_not_retried() {
    let cloud = Cloud::start(|_: &ReceivedRequest, _| busy(500)).await;
    let error = networks::find(&cloud.session(), "n").await.unwrap_err();
    assert!(error.is_outcome_unknown() && error.is_transient(), "{error:?}");
    assert_eq!(cloud.asked().len(), 1);
}

#[tokio::test]
async fn a_load_balancer_being_changed_is_busy_and_not_retried() {
    let reported = json!({"faultcode": "Client", "faultstring": "Load Balancer x is immutable and cannot be updated."});
    let cloud =
        Cloud::start(move |_: &ReceivedRequest, _| Reply::json(409, reported.clone())).await;
    let error =
        openstack::load_balancer::load_balancers::delete(&cloud.session(), "x").await.unwrap_err();
    assert!(error.is_transient() && !error.is_conflict(), "{error:?}");
    assert_eq!(cloud.lines(), ["DELETE /load-balancer/v2/lbaas/loadbalancers/x?cascade=true"]);
}

#[tokio::test]
async fn a_proxy_that_lost_the_service_leaves_the_outcome_unknown() {
    let cloud = Cloud::start(|_: &ReceivedRequest, _| busy(504)).await;
    let error = servers::create(&cloud.session(), &server()).await.unwrap_err();
    assert!(error.is_outcome_unknown() && error.is_transient(), "{error:?}");
    assert_eq!(cloud.asked().len(), 1);
}
