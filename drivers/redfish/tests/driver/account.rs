//! Tests of the account of a BMC over a real socket.

use std::sync::Arc;

use axum::response::Response;
use bmc::{Account, BmcError};
use redfish::Auth;
use serde_json::{Value, json};

use crate::fixture::{self, Fixture, ReceivedRequest, empty, refusal, silent};

const SERVICE: &str = "/redfish/v1/AccountService";
const OURS: &str = "/redfish/v1/AccountService/Accounts/2";
const NEW: &str = "Aa1-Bb2-Cc3-Dd4-";

fn tree() -> String {
    let link = |path: &str| json!({"@odata.id": path});
    let accounts = format!("{SERVICE}/Accounts");
    let empty_slot = format!("{accounts}/1");
    let tree = json!({
        "/redfish/v1": {"Systems": link("/redfish/v1/Systems"), "AccountService": link(SERVICE)},
        "/redfish/v1/Systems": {"Members": []},
        SERVICE: {"MinPasswordLength": 12, "MaxPasswordLength": 0, "Accounts": link(&accounts)},
        accounts.as_str(): {"Members": [link(&empty_slot), link(OURS)]},
        empty_slot.as_str(): {"@odata.id": empty_slot, "UserName": "", "Enabled": false},
        OURS: {"@odata.id": OURS, "@odata.etag": "W/\"7\"", "UserName": fixture::USER},
    });
    tree.to_string()
}

fn account(fixture: &Fixture) -> Arc<dyn Account> {
    fixture.bmc(Auth::Basic).account.unwrap()
}

/// A BMC that gives this answer to each change of a password.
async fn answering(answer: impl Fn() -> Response + Send + 'static) -> Fixture {
    Fixture::serve(&tree(), move |asked, _| (asked.method == "PATCH").then(&answer)).await
}

#[tokio::test]
async fn the_password_of_the_account_with_our_name_is_changed() {
    let fixture = answering(|| empty(204)).await;
    let account = account(&fixture);
    assert_eq!(account.password_length().await.unwrap(), 12..=20);
    account.set_password(NEW).await.unwrap();
    assert_eq!(fixture.changes(), format!(r#"PATCH {OURS} {{"Password":"{NEW}"}}"#));
    let asked = fixture.asked().into_iter().find(|asked| asked.method == "PATCH").unwrap();
    assert_eq!(asked.header("if-match"), Some("W/\"7\""));
}

#[tokio::test]
async fn a_tag_that_does_not_match_is_read_again() {
    let (tree, mut is_first) = (tree(), true);
    let fixture = Fixture::serve(&tree, move |asked, _| {
        let is_change = asked.method == "PATCH";
        let is_stale = is_change && std::mem::take(&mut is_first);
        is_change.then(|| empty(if is_stale { 412 } else { 204 }))
    });
    let fixture = fixture.await;
    account(&fixture).set_password(NEW).await.unwrap();
    assert_eq!(fixture.count("PATCH", OURS), 2);
    let last = fixture.asked().pop().unwrap();
    assert_eq!(last.header("if-match"), Some("\"7\""), "a weak tag may never match");
}

#[tokio::test]
async fn a_refusal_does_not_repeat_the_password() {
    let id = "Base.1.8.PropertyValueFormatError";
    for (words, is_shown) in [
        ("The new password has no special character.", true),
        ("The value Aa1-Bb2-Cc3-Dd4- is malformed.", false),
        ("The value Bb2-Cc3 is malformed.", false),
    ] {
        let fixture = answering(move || refusal(400, id, words)).await;
        let error = account(&fixture).set_password(NEW).await.unwrap_err();
        assert!(matches!(error, BmcError::Refused { transient: false, .. }), "{error:?}");
        assert_eq!(error.to_string().contains(words), is_shown, "{error}");
        assert!(!format!("{error:?}").contains("Bb2-Cc3"), "{error:?}");
    }
}

#[tokio::test]
async fn a_missing_privilege_is_no_wrong_password() {
    let privilege = || refusal(403, "Base.1.8.InsufficientPrivilege", "not you");
    let error = account(&answering(privilege).await).set_password(NEW).await.unwrap_err();
    let want = format!("the BMC refused PATCH {OURS}: 403 Forbidden: not you");
    assert_eq!(error.to_string(), want);
}

#[tokio::test]
async fn an_account_that_must_change_its_password_first_is_named_by_the_bmc() {
    let tree = tree();
    let fixture = Fixture::serve(&tree, |asked, _| match (&*asked.method, &*asked.path) {
        ("PATCH", _) => Some(empty(200)),
        (_, OURS | "/redfish/v1/") => None,
        _ => {
            let message =
                json!({"MessageId": "Base.1.8.PasswordChangeRequired", "MessageArgs": [OURS]});
            let body = json!({"error": {"@Message.ExtendedInfo": [message]}});
            Some(fixture::json(403, body))
        }
    });
    let fixture = fixture.await;
    let account = account(&fixture);
    assert!(account.try_password().await.unwrap());
    assert_eq!(account.password_length().await.unwrap(), 8..=20);
    account.set_password(NEW).await.unwrap();
    assert_eq!(fixture.count("PATCH", OURS), 1);
}

#[tokio::test]
async fn a_login_shows_whether_the_password_is_right() {
    let told = |status: u16, id: &'static str| {
        move |asked: &ReceivedRequest, _: &mut _| {
            (asked.path == "/redfish/v1/Systems").then(|| refusal(status, id, "no"))
        }
    };
    for (status, id, is_right) in [
        (401, "Base.1.8.NoValidSession", false),
        (403, "Base.1.8.NoValidSession", false),
        (403, "Base.1.8.InsufficientPrivilege", true),
    ] {
        let fixture = Fixture::serve(&tree(), told(status, id)).await;
        assert_eq!(account(&fixture).try_password().await.unwrap(), is_right, "{status} {id}");
    }
    let fixture = Fixture::serve(&tree(), silent).await;
    assert!(account(&fixture).try_password().await.unwrap());
    let demanding = |_: &ReceivedRequest, _: &mut _| Some(empty(401));
    let fixture = Fixture::serve(&tree(), demanding).await;
    assert!(!account(&fixture).try_password().await.unwrap(), "the root demands a login too");
}

#[tokio::test]
async fn a_bmc_without_our_account_is_told_apart() {
    let mut tree: Value = serde_json::from_str(&tree()).unwrap();
    tree[OURS]["UserName"] = json!("somebody");
    let fixture = Fixture::serve(&tree.to_string(), silent).await;
    let error = account(&fixture).set_password(NEW).await.unwrap_err();
    let want = "this BMC cannot change the password: it lists no account with the user name";
    assert_eq!(error.to_string(), want);
    tree["/redfish/v1"] = json!({"Systems": {"@odata.id": "/redfish/v1/Systems"}});
    let fixture = Fixture::serve(&tree.to_string(), silent).await;
    let error = account(&fixture).password_length().await.unwrap_err();
    assert_eq!(error.to_string(), "this BMC cannot change a password: it has no AccountService");
}
