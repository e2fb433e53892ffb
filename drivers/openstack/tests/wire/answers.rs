//! Tests of answers: parsed values, errors, and hostile answers.

use std::collections::BTreeMap;

use openstack::compute::servers::{self, Boot, ConfigDrive, NewServer};
use openstack::identity::tokens;
use openstack::network::{ports, routers};
use openstack::{CloudError, identity};
use serde_json::json;
use spans::{EndedSpan, KeptSpans, SpanKind, TraceContext};

use crate::cloud::{Cloud, ReceivedRequest, Reply};

/// Returns an arbitrary server.
pub(crate) fn server() -> NewServer {
    NewServer {
        name: "s".to_owned(),
        tags: Vec::new(),
        flavor_id: "f".to_owned(),
        boot: Boot::Image { id: "i".to_owned() },
        disks: Vec::new(),
        ports: vec!["p".to_owned()],
        user_data: None,
        config_drive: ConfigDrive::AsConfigured,
        key_name: None,
        availability_zone: None,
        server_group: None,
        hints: BTreeMap::new(),
        metadata: BTreeMap::new(),
    }
}

#[tokio::test]
async fn an_error_has_everything_except_secrets() {
    let reported = json!({"forbidden": {"code": 403, "message": "Quota exceeded for instances: Requested 1, but already used 10 of 10 instances"}});
    let answer = move |_: &ReceivedRequest, _| {
        Reply::json(403, reported.clone()).with("x-openstack-request-id", "req-of-nova")
    };
    let cloud = Cloud::start(answer).await;
    let error = servers::create(&cloud.session(), &server()).await.unwrap_err();
    assert!(matches!(error, CloudError::QuotaExceeded(_)), "{error:?}");
    assert_eq!(
        error.to_string(),
        "the compute service answered 403 Forbidden to POST /compute/v2.1/servers (req-of-nova): \
         Quota exceeded for instances: Requested 1, but already used 10 of 10 instances"
    );
    assert!(!format!("{error:?}").contains("token-1"));
}

#[tokio::test]
async fn our_own_id_goes_along() {
    let cloud = Cloud::start(|_: &ReceivedRequest, _| Reply::json(200, json!({"ports": []}))).await;
    ports::find(&cloud.session(), "p").await.unwrap();
    let id = cloud.asked()[0].header("x-openstack-request-id").unwrap().to_owned();
    assert!(id.starts_with("req-") && id.len() == 40, "{id}");

    let ours = "req-7c9e6679-7425-40de-944b-e07fc1f90ae7";
    let session = cloud.session();
    openstack::on_behalf_of(ours.to_owned(), ports::find(&session, "p")).await.unwrap();
    let asked = cloud.asked();
    assert_eq!(asked.last().unwrap().header("x-openstack-request-id"), Some(ours));
}

#[tokio::test]
async fn a_call_carries_the_trace_of_its_request() {
    let cloud = Cloud::start(|_: &ReceivedRequest, _| Reply::json(200, json!({"ports": []}))).await;
    let session = cloud.session();
    ports::find(&session, "p").await.unwrap();
    assert_eq!(cloud.asked().last().unwrap().header("traceparent"), None);

    let kept = KeptSpans::default();
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let parent = TraceContext::of_headers(parent, &["a=1"]).unwrap();
    let request = kept.tracer(0.0).begin(Some(&parent), SpanKind::Server, || "request");
    request.run(ports::find(&session, "p")).await.unwrap();
    let [call]: [EndedSpan; 1] = kept.take_all().try_into().unwrap();
    let asked = cloud.asked();
    let asked = asked.last().unwrap();
    assert_eq!(asked.header("traceparent"), Some(&*call.context.traceparent()));
    assert_eq!(asked.header("tracestate"), Some("a=1"));
    assert_eq!((&*call.name, call.kind, call.is_failed), ("GET network", SpanKind::Client, false));
    assert_eq!(call.context.trace_id, parent.trace_id);
    assert_eq!(call.parent, request.context().map(|context| context.span_id));
    assert_eq!(call.attributes.last(), Some(&("http.response.status_code", 200_u16.into())));
}

#[tokio::test]
async fn endless_answers_are_cut_off() {
    let cloud = Cloud::start(|_: &ReceivedRequest, _| Reply::Endless).await;
    let mut config = cloud.config();
    config.patience.attempt_timeout = std::time::Duration::from_secs(30);
    let session = openstack::Session::new(config).unwrap();
    let error = ports::find(&session, "p").await.unwrap_err();
    assert!(error.to_string().ends_with("it is larger than 16 MiB"), "{error}");
}

#[tokio::test]
async fn hostile_answers_are_errors() {
    let deep = "[".repeat(200_000);
    for body in
        ["", "null", "[]", "{}", "{\"ports\": 7}", "{\"ports\": [{\"id\": 7}]}", "<html>", &deep]
    {
        let reply = body.to_owned();
        let answer =
            move |_: &ReceivedRequest, _| Reply::Full(200, Vec::new(), reply.clone().into_bytes());
        let cloud = Cloud::start(answer).await;
        let error = ports::find(&cloud.session(), "p").await.unwrap_err();
        assert!(matches!(error, CloudError::Malformed { .. }), "{error:?}");
        assert!(error.to_string().len() < 600);
    }
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let answer = |_: &ReceivedRequest, _| {
        Reply::json(302, json!({})).with("location", "http://127.0.0.1:1/")
    };
    let cloud = Cloud::start(answer).await;
    let error = ports::find(&cloud.session(), "p").await.unwrap_err();
    assert_eq!(error.refusal().unwrap().status, 302);
    assert_eq!(cloud.asked().len(), 1);
}

#[tokio::test]
async fn an_invalid_id_is_never_sent() {
    let cloud = Cloud::start(|_: &ReceivedRequest, _| Reply::json(200, json!({}))).await;
    let session = cloud.session();
    for id in ["", ".", "..", "a/b"] {
        let error = ports::delete(&session, id).await.unwrap_err();
        assert!(matches!(error, CloudError::InvalidId { .. }), "{error:?}");
    }
    assert_eq!(cloud.asked().len(), 0);
    // An unusual character is escaped and stays in its path segment.
    let _ = ports::delete(&session, "a?b#c%2f").await;
    assert_eq!(cloud.lines(), ["DELETE /network/v2.0/ports/a%3Fb%23c%252f"]);
}

#[tokio::test]
async fn keystones_answers_are_never_quoted() {
    let reported = json!({"token": {"user": "s3cret"}});
    let cloud =
        Cloud::start(move |_: &ReceivedRequest, _| Reply::json(200, reported.clone())).await;
    let error = tokens::validate(&cloud.session(), &"other".into()).await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains("s3cret"), "{error:?}");
    assert_eq!(cloud.asked()[0].header("x-subject-token"), Some("other"));
}

#[tokio::test]
async fn an_invalid_token_has_no_identity() {
    let reported = json!({"error": {"message": "Could not find token."}});
    let cloud =
        Cloud::start(move |_: &ReceivedRequest, _| Reply::json(404, reported.clone())).await;
    let session = cloud.session();
    assert_eq!(identity::tokens::validate(&session, &"x".into()).await.unwrap(), None);
    // A text that cannot be a header cannot be a token, and is not sent.
    assert!(tokens::validate(&session, &"a\nb".into()).await.is_err());
}

#[tokio::test]
async fn connecting_a_connected_router_succeeds() {
    let answer = |asked: &ReceivedRequest, _| {
        if asked.line.starts_with("PUT") {
            let message = "Bad router request: Router already has a port on subnet s.";
            return Reply::json(
                400,
                json!({"NeutronError": {"type": "BadRequest", "message": message}}),
            );
        }
        let address = json!({"subnet_id": "s", "ip_address": "10.0.0.1"});
        Reply::json(200, json!({"ports": [{"id": "p", "fixed_ips": [address]}]}))
    };
    let cloud = Cloud::start(answer).await;
    let session = cloud.session();
    routers::add_subnet(&session, "r", "s").await.unwrap();
    let error = routers::add_subnet(&session, "r", "another").await.unwrap_err();
    assert!(matches!(error, CloudError::Refused(_)), "{error:?}");
}
