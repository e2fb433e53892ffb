//! Tests of the clock of a BMC over a real socket.

use std::collections::BTreeMap;

use expect_test::expect;
use jiff::Timestamp;
use redfish::Auth;
use serde_json::{Value, json};

use crate::fixture::{Fixture, empty, silent};

const DELL: &str = include_str!("trees/dell.json");
const MANAGER: &str = "/redfish/v1/Managers/iDRAC.Embedded.1";

/// Dell's tree with a manager that shows this time.
fn with_time(shown: &str) -> String {
    let mut tree: BTreeMap<String, Value> = serde_json::from_str(DELL).unwrap();
    tree.get_mut(MANAGER).unwrap()["DateTime"] = json!(shown);
    serde_json::to_string(&tree).unwrap()
}

async fn set(fixture: &Fixture) -> Result<(), String> {
    let time: Timestamp = "2026-01-31T23:59:00Z".parse().unwrap();
    let clock = fixture.bmc(Auth::Basic).clock.unwrap();
    clock.set_clock(time, None).await.map_err(|error| error.to_string())
}

#[tokio::test]
async fn the_clock_is_set_and_read_back() {
    let tree = with_time("2020-01-01T00:00:00-06:00");
    let fixture = Fixture::serve(&tree, |asked, tree| {
        let time = asked.body.get("DateTime").filter(|_| asked.method == "PATCH")?;
        tree.get_mut(MANAGER).unwrap()["DateTime"] = time.clone();
        Some(empty(204))
    })
    .await;
    assert_eq!(set(&fixture).await, Ok(()));
    expect![[
        r#"PATCH /redfish/v1/Managers/iDRAC.Embedded.1 {"DateTime":"2026-01-31T23:59:00+00:00"}"#
    ]]
    .assert_eq(&fixture.changes());
}

#[tokio::test]
async fn a_clock_that_shows_another_time_afterwards_is_an_error() {
    for shown in ["2026-02-01T00:00:01Z", "soon"] {
        let ignoring = |asked: &crate::fixture::ReceivedRequest, _: &mut _| {
            (asked.method == "PATCH").then(|| empty(200))
        };
        let fixture = Fixture::serve(&with_time(shown), ignoring).await;
        let want = format!(
            "the BMC refused to set its clock to 2026-01-31T23:59:00Z: afterwards it shows {shown:?}"
        );
        assert_eq!(set(&fixture).await, Err(want));
    }
    let fixture = Fixture::serve(DELL, silent).await;
    let want = "this BMC cannot set its clock: it shows no time";
    assert_eq!((set(&fixture).await, fixture.changes()), (Err(want.to_owned()), String::new()));
}
