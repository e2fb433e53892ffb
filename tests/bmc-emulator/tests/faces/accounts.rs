//! The account over Redfish.

use bmc_emulator::{Machine, Request};
use reqwest::Method;
use serde_json::{Value, json};

use crate::rack::{TestMachine, USER};

const NEW: &str = "Enough-kinds-4";

/// The account of the client, found by its links and its user name.
async fn account(bench: &TestMachine) -> Value {
    let service = bench.get("/redfish/v1/AccountService").await;
    let accounts = bench.get(service["Accounts"]["@odata.id"].as_str().unwrap()).await;
    for member in accounts["Members"].as_array().unwrap() {
        let account = bench.get(member["@odata.id"].as_str().unwrap()).await;
        if account["UserName"] == USER {
            return account;
        }
    }
    panic!("no account of {USER}: {accounts}");
}

fn password(new: &str) -> Value {
    json!({"Password": new})
}

/// The status of a change that names the entity tag.
async fn change(bench: &TestMachine, account: &Value, body: &Value) -> u16 {
    let request = bench.ask(Method::PATCH, account["@odata.id"].as_str().unwrap()).json(body);
    let tag = account["@odata.etag"].as_str().unwrap();
    request.header("if-match", tag).send().await.unwrap().status().as_u16()
}

#[tokio::test]
async fn a_new_password_replaces_the_old_one() {
    for profile in ["generic", "dell-idrac", "hpe-ilo", "supermicro", "lenovo-xcc", "ami-megarac"] {
        let bench = TestMachine::redfish(profile).await;
        let account = account(&bench).await;
        assert_eq!(account["Password"], Value::Null, "{profile}");
        assert_eq!(change(&bench, &account, &password(NEW)).await, 200, "{profile}");
        assert_eq!(bench.machine.log()[0].request, Request::ChangePassword, "{profile}");
        assert_eq!(bench.send(Method::GET, "/redfish/v1/Systems", json!({})).await.0, 401);
        let systems = bench.client.get(bench.url("/redfish/v1/Systems"));
        let answer = systems.basic_auth(USER, Some(NEW)).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{profile}");
        let again = Machine::resumed(bench.machine.spec().clone(), bench.machine.kept());
        assert_eq!(again.password(), NEW, "the password survives a restart of the emulator");
    }
}

#[tokio::test]
async fn a_password_that_breaks_the_rules_changes_nothing() {
    let bench = TestMachine::redfish("supermicro").await;
    let before = bench.machine.password();
    let account = account(&bench).await;
    for wrong in [
        password("Short-1"),
        password("Longer-than-20-characters"),
        password("lower-and-others"),
        json!({"Password": 1}),
        json!({"UserName": "eve"}),
        json!({"Nothing": 1}),
    ] {
        assert_eq!(change(&bench, &account, &wrong).await, 400, "{wrong}");
    }
    bench.machine.faults().update(|faults| faults.refuse_passwords = true);
    assert_eq!(change(&bench, &account, &password(NEW)).await, 400);
    assert_eq!(bench.machine.password(), before);
}

#[tokio::test]
async fn a_bmc_can_accept_a_password_and_ignore_it() {
    let bench = TestMachine::redfish("generic").await;
    let before = bench.machine.password();
    bench.machine.faults().update(|faults| faults.ignore_passwords = true);
    let account = account(&bench).await;
    assert_eq!(change(&bench, &account, &password(NEW)).await, 200);
    assert_eq!(bench.machine.password(), before);
}

#[tokio::test]
async fn slots_without_an_account_have_no_user_name() {
    let bench = TestMachine::redfish("dell-idrac").await;
    let accounts = bench.get("/redfish/v1/AccountService/Accounts").await;
    assert_eq!(accounts["Members@odata.count"], 3);
    assert_eq!(account(&bench).await["Id"], "2");
    let empty = bench.get("/redfish/v1/AccountService/Accounts/1").await;
    assert_eq!(empty["UserName"], "");
}
