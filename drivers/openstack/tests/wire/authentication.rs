//! Tests of tokens: requested once, renewed when they expire or are refused, and never endlessly.

use openstack::compute::{keypairs, servers};
use openstack::network::networks;
use openstack::{CloudError, Session};
use serde_json::json;

use crate::cloud::{Cloud, ReceivedRequest, Reply};

fn no_networks(_: &ReceivedRequest, _: usize) -> Reply {
    Reply::json(200, json!({"networks": []}))
}

#[tokio::test]
async fn one_token_serves_many_calls_at_once() {
    let cloud = Cloud::start(no_networks).await;
    let session = cloud.session();
    let calls = (0..20).map(|_| networks::find(&session, "n"));
    for found in futures::future::join_all(calls).await {
        found.unwrap();
    }
    assert_eq!(cloud.tokens(), 1);
    assert_eq!(cloud.asked().len(), 20);
    assert_eq!(cloud.asked()[0].header("x-auth-token"), Some("token-1"));
}

#[tokio::test]
async fn a_token_that_ends_soon_is_renewed_in_time() {
    let cloud = Cloud::start(no_networks).await;
    cloud.tokens_live(0);
    let session = cloud.session();
    for calls in 1..=2 {
        networks::find(&session, "n").await.unwrap();
        assert_eq!(cloud.tokens(), calls, "a token that has ended is not used again");
    }
    cloud.tokens_live(3600);
    for _ in 0..3 {
        networks::find(&session, "n").await.unwrap();
        assert_eq!(cloud.tokens(), 3, "one that has not is");
    }
}

#[tokio::test]
async fn a_refused_token_is_renewed_once_and_the_call_repeated() {
    let cloud = Cloud::start(|asked: &ReceivedRequest, _| match asked.header("x-auth-token") {
        Some("token-1") => Reply::json(401, json!({"error": {"message": "it was taken away"}})),
        _ => Reply::json(202, json!({"server": {"id": "s"}})),
    })
    .await;
    let session = cloud.session();
    // A POST is repeated as well: a service that refuses the token has done nothing.
    assert_eq!(servers::create(&session, &crate::answers::server()).await.unwrap(), "s");
    assert_eq!(cloud.tokens(), 2);
    assert_eq!(cloud.lines(), ["POST /compute/v2.1/servers", "POST /compute/v2.1/servers"]);
}

#[tokio::test]
async fn a_token_refused_twice_is_an_error() {
    let refuse =
        |_: &ReceivedRequest, _| Reply::json(401, json!({"error": {"message": "go away"}}));
    let cloud = Cloud::start(refuse).await;
    let error = networks::find(&cloud.session(), "n").await.unwrap_err();
    assert!(matches!(error, CloudError::Unauthorized(_)), "{error:?}");
    assert!(!error.is_transient());
    assert_eq!((cloud.tokens(), cloud.asked().len()), (2, 2));
}

#[tokio::test]
async fn many_refused_calls_renew_the_token_once() {
    let cloud = Cloud::start(|asked: &ReceivedRequest, _| match asked.header("x-auth-token") {
        Some("token-1") => Reply::json(401, json!({})),
        _ => Reply::json(200, json!({"networks": []})),
    })
    .await;
    let session = cloud.session();
    let calls = (0..20).map(|_| networks::find(&session, "n"));
    for found in futures::future::join_all(calls).await {
        found.unwrap();
    }
    assert_eq!(cloud.tokens(), 2);
}

#[tokio::test]
async fn a_closed_session_revokes_its_token() {
    let cloud =
        Cloud::start(|_: &ReceivedRequest, _| Reply::Full(204, Vec::new(), Vec::new())).await;
    let session = cloud.session();
    session.close().await.unwrap();
    assert_eq!(cloud.asked().len(), 0, "there was no token to revoke");
    assert_eq!(session.identity().await.unwrap().roles, ["member"]);
    session.close().await.unwrap();
    let asked = cloud.asked();
    assert_eq!(asked[0].line, "DELETE /v3/auth/tokens");
    assert_eq!(asked[0].header("x-subject-token"), Some("token-1"));
}

#[tokio::test]
async fn a_missing_service_is_reported_with_region_and_interface() {
    let cloud = Cloud::start(no_networks).await;
    let mut config = cloud.config();
    config.region = Some("elsewhere".to_owned());
    let error = networks::find(&Session::new(config).unwrap(), "n").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the catalogue has no public endpoint of the network service in region elsewhere"
    );
}

#[tokio::test]
async fn a_wrong_password_is_reported_without_the_password() {
    let cloud = Cloud::start(no_networks).await;
    let mut config = cloud.config();
    // A server without a Keystone for this user.
    config.auth_url = format!("http://127.0.0.1:{}/nobody/v3", cloud.port).parse().unwrap();
    let session = Session::new(config).unwrap();
    let error = networks::find(&session, "n").await.unwrap_err();
    assert!(matches!(error, CloudError::Malformed { .. }), "{error}");
    assert!(!format!("{error:?} {error} {session:?}").contains("hunter2"));
}

#[tokio::test]
async fn each_project_has_its_own_token_and_renews_it_alone() {
    let cloud = Cloud::start(|asked: &ReceivedRequest, _| match asked.header("x-auth-token") {
        Some("token-2") => Reply::json(401, json!({})),
        _ => Reply::json(200, json!({"networks": []})),
    })
    .await;
    let own = cloud.session();
    let there = own.in_project("p2").unwrap();
    for session in [&own, &there, &own, &there] {
        networks::find(session, "n").await.unwrap();
    }
    assert_eq!(cloud.tokens(), 3);
    let asked = cloud.asked();
    let tokens: Vec<_> = asked.iter().map(|it| it.header("x-auth-token").unwrap()).collect();
    assert_eq!(tokens, ["token-1", "token-2", "token-3", "token-1", "token-3"]);
}

#[tokio::test]
async fn a_call_for_another_user_has_the_token_of_that_user_and_no_other() {
    let cloud = Cloud::start(|asked: &ReceivedRequest, _| match asked.header("x-auth-token") {
        Some("theirs") => {
            Reply::json(200, json!({"keypair": {"name": "k", "public_key": "ssh-ed25519 AAAA"}}))
        }
        _ => Reply::json(401, json!({"error": {"message": "who is that?"}})),
    })
    .await;
    let session = cloud.session();
    let found = keypairs::find_of_user(&session, &"theirs".into(), "k").await.unwrap().unwrap();
    assert_eq!(found.public_key, "ssh-ed25519 AAAA");
    let refused = keypairs::find_of_user(&session, &"expired".into(), "k").await.unwrap_err();
    assert!(matches!(refused, CloudError::Unauthorized(_)), "{refused:?}");
    // The session's own token was neither sent nor replaced.
    assert_eq!((cloud.tokens(), cloud.asked().len()), (1, 2));
    assert_eq!(cloud.lines()[0], "GET /compute/v2.1/os-keypairs/k");
}
