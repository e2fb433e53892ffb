//! Tests of logging in, keeping a session, and logging out.

use crate::fixture::{Fixture, PASSWORD, ReceivedRequest, USER, empty, json, refusal};
use axum::response::{IntoResponse, Response};
use bmc::BmcError;
use hardware::{AllowedHosts, PowerState};
use redfish::{Auth, Connector};
use serde_json::json;

const TREE: &str = include_str!("trees/dell.json");
const SYSTEM: &str = "/redfish/v1/Systems/System.Embedded.1";
const SESSIONS: &str = "/redfish/v1/SessionService/Sessions";

/// A BMC that hands out the tokens `t1`, `t2`, … and accepts the token `valid`.
#[derive(Default)]
struct Guard {
    handed_out: usize,
    /// The only token that the BMC accepts.
    valid: String,
    /// Number of requests after which a token expires.
    expires_after: Option<usize>,
}

impl Guard {
    fn answer(&mut self, asked: &ReceivedRequest) -> Option<Response> {
        if asked.path == "/redfish/v1/" {
            return None;
        }
        if asked.method == "POST" && asked.path == SESSIONS {
            if asked.body != json!({"UserName": USER, "Password": PASSWORD}) {
                return Some(refusal(401, "Base.1.8.NoValidSession", "wrong"));
            }
            self.handed_out += 1;
            self.valid = format!("t{}", self.handed_out);
            let location = format!("{SESSIONS}/{}", self.handed_out);
            let headers = [("x-auth-token", self.valid.clone()), ("location", location)];
            return Some((headers, json(201, json!({}))).into_response());
        }
        if asked.header("x-auth-token") != Some(&self.valid) {
            return Some(refusal(401, "Base.1.8.NoValidSession", "who are you?"));
        }
        if asked.method == "DELETE" {
            self.valid = String::new();
            return Some(empty(204));
        }
        if let Some(left) = &mut self.expires_after {
            if *left == 0 {
                self.expires_after = None;
                self.valid = String::new();
                return Some(refusal(401, "Base.1.8.NoValidSession", "expired"));
            }
            *left -= 1;
        }
        None
    }
}

async fn guarded(mut guard: Guard) -> Fixture {
    Fixture::serve(TREE, move |asked, _| guard.answer(asked)).await
}

#[tokio::test]
async fn one_session_serves_every_request() {
    let fixture = guarded(Guard::default()).await;
    let bmc = fixture.bmc(Auth::Auto);
    for _ in 0..3 {
        assert_eq!(bmc.power.state().await.unwrap(), PowerState::On);
    }
    assert_eq!(fixture.count("POST", SESSIONS), 1);
    assert!(fixture.asked().iter().all(|asked| asked.header("authorization").is_none()));
}

#[tokio::test]
async fn an_expired_session_is_opened_again_once() {
    let fixture = guarded(Guard { expires_after: Some(2), ..Guard::default() }).await;
    let bmc = fixture.bmc(Auth::Auto);
    for _ in 0..4 {
        assert_eq!(bmc.power.state().await.unwrap(), PowerState::On);
    }
    assert_eq!(fixture.count("POST", SESSIONS), 2);
}

#[tokio::test]
async fn a_service_that_forgets_every_token_is_not_retried_forever() {
    let fixture = Fixture::serve(TREE, |asked, _| match asked.method.as_str() {
        "POST" => Some(([("x-auth-token", "t")], json(201, json!({}))).into_response()),
        _ if asked.path == SYSTEM => Some(empty(401)),
        _ => None,
    })
    .await;
    let refused = fixture.bmc(Auth::Auto).power.state().await;
    assert!(matches!(refused, Err(BmcError::Unauthorized { .. })), "{refused:?}");
    assert_eq!(fixture.count("POST", SESSIONS), 2);
}

#[tokio::test]
async fn a_wrong_password_is_tried_once_and_reported() {
    let fixture = guarded(Guard::default()).await;
    let target = redfish::Target { password: "guess".into(), ..fixture.target(Auth::Auto) };
    let bmc = Connector::new(b"", AllowedHosts::anywhere()).unwrap().bmc(target);
    let error = bmc.power.state().await.unwrap_err();
    assert!(matches!(error, BmcError::Unauthorized { .. }), "{error:?}");
    // A second try could lock an account that locks after three failures.
    assert_eq!(fixture.count("POST", SESSIONS), 1);
    assert!(fixture.asked().iter().all(|asked| asked.header("authorization").is_none()));
    assert!(!format!("{error:?}").contains("guess"));
}

#[tokio::test]
async fn dropping_the_bmc_logs_out() {
    let fixture = guarded(Guard::default()).await;
    let bmc = fixture.bmc(Auth::Auto);
    bmc.power.state().await.unwrap();
    drop(bmc);
    // The drop hands the log-out to the runtime, which needs some turns until the request arrives.
    while fixture.count("DELETE", "/redfish/v1/SessionService/Sessions/1") == 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn closing_the_connector_logs_out_everywhere() {
    let fixtures = [guarded(Guard::default()).await, guarded(Guard::default()).await];
    let connector = Connector::new(b"", AllowedHosts::anywhere()).unwrap();
    let bmcs = fixtures.each_ref().map(|fixture| connector.bmc(fixture.target(Auth::Session)));
    for bmc in &bmcs {
        bmc.power.state().await.unwrap();
    }
    connector.close().await;
    for fixture in &fixtures {
        assert_eq!(fixture.count("DELETE", "/redfish/v1/SessionService/Sessions/1"), 1);
    }
    // The next request opens a session again.
    bmcs[0].power.state().await.unwrap();
    assert_eq!(fixtures[0].count("POST", SESSIONS), 2);
}

/// A BMC that answers a login with `login` and accepts only HTTP Basic.
async fn basic_only(login: fn() -> Response) -> Fixture {
    Fixture::serve(TREE, move |asked, _| {
        if asked.path == SESSIONS {
            return Some(login());
        }
        // Base64 of `root:calvin's secret`.
        let basic = asked.header("authorization") == Some("Basic cm9vdDpjYWx2aW4ncyBzZWNyZXQ=");
        (!basic && asked.path != "/redfish/v1/").then(|| empty(401))
    })
    .await
}

fn full() -> Response {
    refusal(400, "Base.1.8.SessionLimitExceeded", "too many sessions")
}

#[tokio::test]
async fn basic_is_used_if_there_are_no_sessions() {
    let logins: [fn() -> Response; 4] = [
        full,
        || empty(404),
        || empty(405),
        || refusal(503, "Base.1.8.ServiceTemporarilyUnavailable", ""),
    ];
    for login in logins {
        let fixture = basic_only(login).await;
        let bmc = fixture.bmc(Auth::Auto);
        assert_eq!(bmc.power.state().await.unwrap(), PowerState::On);
        assert_eq!(bmc.power.state().await.unwrap(), PowerState::On);
        assert_eq!(fixture.count("POST", SESSIONS), 1);
    }
}

#[tokio::test]
async fn requiring_a_session_reports_why_there_is_none() {
    let fixture = basic_only(full).await;
    let busy = fixture.bmc(Auth::Session).power.state().await.unwrap_err();
    assert_eq!(
        busy.to_string(),
        format!(
            "the BMC at 127.0.0.1:{} is busy: every session slot is taken",
            fixture.address.port().unwrap()
        )
    );
    let fixture = basic_only(|| empty(404)).await;
    let none = fixture.bmc(Auth::Session).power.state().await.unwrap_err();
    assert_eq!(none.to_string(), "this BMC cannot open a session");
}

#[tokio::test]
async fn basic_opens_no_session() {
    let fixture = basic_only(full).await;
    assert_eq!(fixture.bmc(Auth::Basic).power.state().await.unwrap(), PowerState::On);
    assert_eq!(fixture.count("POST", SESSIONS), 0);
}

#[tokio::test]
async fn a_root_that_demands_a_login_gets_one() {
    let fixture = Fixture::serve(TREE, |asked, _| {
        asked.header("authorization").is_none().then(|| empty(401))
    })
    .await;
    assert_eq!(fixture.bmc(Auth::Basic).power.state().await.unwrap(), PowerState::On);
}
