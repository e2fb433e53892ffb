//! Faults, sessions and actions of the guest, over HTTP.

use std::time::Duration;

use bmc_emulator::{FaultSet, ReportedPower, StatusFault, serve_control};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::rack::{PASSWORD, TestMachine, USER};

const RESET: &str = "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset";
const SYSTEM: &str = "/redfish/v1/Systems/1";
const SESSIONS: &str = "/redfish/v1/SessionService/Sessions";

async fn log_in(bench: &TestMachine) -> reqwest::Response {
    let login = json!({"UserName": USER, "Password": PASSWORD});
    bench.client.post(bench.url(SESSIONS)).json(&login).send().await.unwrap()
}

async fn with_token(bench: &TestMachine, token: &str) -> StatusCode {
    bench.client.get(bench.url(SYSTEM)).header("x-auth-token", token).send().await.unwrap().status()
}

#[tokio::test]
async fn a_session_token_works_until_the_session_is_deleted() {
    let bench = TestMachine::redfish("generic").await;
    let opened = log_in(&bench).await;
    assert_eq!(opened.status(), 201);
    let token = opened.headers()["x-auth-token"].to_str().unwrap().to_owned();
    let location = opened.headers()["location"].to_str().unwrap().to_owned();
    assert_eq!(with_token(&bench, &token).await, 200);
    assert_eq!(with_token(&bench, "nonsense").await, 401);

    let closed = bench
        .client
        .delete(bench.url(&location))
        .header("x-auth-token", &token)
        .send()
        .await
        .unwrap();
    assert_eq!(closed.status(), 204);
    assert_eq!(with_token(&bench, &token).await, 401);
}

#[tokio::test]
async fn session_slots_run_out() {
    let bench = TestMachine::redfish("dell-idrac").await;
    for _ in 0..8 {
        assert_eq!(log_in(&bench).await.status(), 201);
    }
    assert_eq!(log_in(&bench).await.status(), 503);
}

#[tokio::test]
async fn a_bmc_forgets_its_sessions() {
    let bench = TestMachine::redfish("generic").await;
    let opened = log_in(&bench).await;
    let token = opened.headers()["x-auth-token"].to_str().unwrap().to_owned();
    bench.machine.faults().update(|faults| faults.forget_sessions = true);
    assert_eq!(with_token(&bench, &token).await, 401);
    assert_eq!(log_in(&bench).await.status(), 201);
}

#[tokio::test]
async fn a_bmc_refuses_and_fills_up() {
    let bench = TestMachine::redfish("generic").await;
    bench.machine.faults().update(|faults| faults.refuse_credentials = true);
    assert_eq!(log_in(&bench).await.status(), 401);
    assert_eq!(bench.ask(Method::GET, SYSTEM).send().await.unwrap().status(), 401);
    bench.machine.faults().clear();
    bench.machine.faults().update(|faults| faults.sessions_full = true);
    assert_eq!(log_in(&bench).await.status(), 503);
}

#[tokio::test]
async fn a_bmc_locks_its_account() {
    let bench = TestMachine::redfish("generic").await;
    bench.machine.faults().update(|faults| faults.lock_account_after = Some(2));
    // A right password begins a new count.
    for refuses in [true, false, true, true] {
        bench.machine.faults().update(|faults| faults.refuse_credentials = refuses);
        assert_eq!(log_in(&bench).await.status(), if refuses { 401 } else { 201 });
    }
    bench.machine.faults().update(|faults| faults.refuse_credentials = false);
    assert_eq!(log_in(&bench).await.status(), 401, "the right password does not open it");
}

#[tokio::test]
async fn a_bmc_answers_again_after_it_dropped_requests() {
    let bench = TestMachine::redfish("generic").await;
    bench.machine.faults().update(|faults| faults.drop = true);
    let asked = bench.ask(Method::GET, SYSTEM).timeout(Duration::from_millis(200)).send().await;
    assert!(asked.unwrap_err().is_timeout());
    bench.machine.faults().clear();
    bench.get(SYSTEM).await;
}

#[tokio::test]
async fn a_stalled_bmc_answers_once_the_stall_is_over() {
    let bench = TestMachine::redfish("generic").await;
    bench.machine.faults().update(|faults| faults.stall = Some(Duration::from_millis(400)));
    let asked = bench.ask(Method::GET, SYSTEM).timeout(Duration::from_millis(100)).send().await;
    assert!(asked.unwrap_err().is_timeout());
    bench.get(SYSTEM).await;
    bench.get(SYSTEM).await;
}

#[tokio::test]
async fn a_bmc_lies_about_power_and_ignores_the_button() {
    let bench = TestMachine::redfish("generic").await;
    bench.machine.faults().update(|faults| {
        faults.ignore_power_on = true;
        faults.reported_power = Some(ReportedPower::On);
    });
    assert_eq!(bench.send(Method::POST, RESET, json!({"ResetType": "On"})).await.0, 204);
    assert_eq!(bench.get(SYSTEM).await["PowerState"], "On");
    assert!(!bench.machine.power().borrow().on);
}

#[tokio::test]
async fn power_follows_late() {
    let bench = TestMachine::redfish("generic").await;
    bench.machine.faults().update(|faults| faults.power_delay = Some(Duration::from_millis(300)));
    assert_eq!(bench.send(Method::POST, RESET, json!({"ResetType": "On"})).await.0, 204);
    assert_eq!(bench.get(SYSTEM).await["PowerState"], "Off");
    bench.machine.power().wait_for(|power| power.on).await.unwrap();
    assert_eq!(bench.get(SYSTEM).await["PowerState"], "On");
}

#[tokio::test]
async fn some_requests_get_an_error() {
    let bench = TestMachine::redfish("generic").await;
    let fault = StatusFault {
        status: 503,
        method: Some("POST".to_owned()),
        path_prefix: None,
        times: Some(1),
        retry_after: None,
    };
    bench.machine.faults().set(FaultSet { status: vec![fault], ..FaultSet::default() });
    bench.get(SYSTEM).await;
    assert_eq!(bench.send(Method::POST, RESET, json!({"ResetType": "On"})).await.0, 503);
    assert!(!bench.machine.power().borrow().on);
    assert_eq!(bench.send(Method::POST, RESET, json!({"ResetType": "On"})).await.0, 204);
    assert_eq!(bench.machine.log().len(), 2);
}

#[tokio::test]
async fn a_guest_shuts_down_when_asked_and_restarts_by_itself() {
    let bench = TestMachine::redfish("generic").await;
    bench.send(Method::POST, RESET, json!({"ResetType": "On"})).await;
    bench.machine.guest_reboot();
    assert_eq!(bench.machine.power().borrow().generation, 2);

    bench.send(Method::POST, RESET, json!({"ResetType": "GracefulRestart"})).await;
    assert!(bench.machine.power().borrow().soft_off_requested);
    bench.machine.guest_power_off();
    let power = *bench.machine.power().borrow();
    assert_eq!((power.on, power.generation, power.soft_off_requested), (true, 3, false));

    bench.send(Method::POST, RESET, json!({"ResetType": "GracefulShutdown"})).await;
    assert_eq!(bench.get(SYSTEM).await["PowerState"], "On");
    bench.machine.guest_power_off();
    assert_eq!(bench.get(SYSTEM).await["PowerState"], "Off");
    assert_eq!(bench.send(Method::POST, RESET, json!({"ResetType": "ForceRestart"})).await.0, 409);
}

#[tokio::test]
async fn another_process_can_set_faults() {
    let bench = TestMachine::redfish("generic").await;
    let control =
        serve_control("127.0.0.1:0".parse().unwrap(), vec![bench.machine.clone()]).await.unwrap();
    let at = |path: &str| format!("http://{}/_control/machines{path}", control.address);

    let set =
        bench.client.put(at("/r1u7/faults")).json(&json!({"reported_power": "on", "slow": 1}));
    assert_eq!(set.send().await.unwrap().status(), 200);
    assert_eq!(bench.get(SYSTEM).await["PowerState"], "On");
    let wrong = bench.client.put(at("/r1u7/faults")).json(&json!({"dorp": true}));
    let wrong = wrong.send().await.unwrap();
    assert_eq!(wrong.status(), 400);
    assert!(wrong.text().await.unwrap().contains("dorp"));

    bench.client.delete(at("/r1u7/faults")).send().await.unwrap();
    assert_eq!(bench.get(SYSTEM).await["PowerState"], "Off");
    bench.send(Method::POST, RESET, json!({"ResetType": "On"})).await;
    let log: Value = bench.client.get(at("/r1u7/log")).send().await.unwrap().json().await.unwrap();
    assert_eq!(log[0]["request"], json!({"power": "on"}));
    assert_eq!(log[0]["outcome"], "accepted");
    let machines: Value = bench.client.get(at("")).send().await.unwrap().json().await.unwrap();
    assert_eq!(machines[0]["on"], true);
    assert_eq!(bench.client.get(at("/nobody/log")).send().await.unwrap().status(), 404);
}
