//! Wire tests of leases.

use baremetal_core::{State, with_stage_taken};
use jiff::Timestamp;

use crate::api::{Api, NEWEST};

const PATH: &str = "/bedplate/v1/nodes/n1/lease";

const LENT: &str = r#"{
    "lessee": "physics", "lease": {
        "since": "2026-01-02T03:04:05.000006+00:00", "until": "2026-01-04T03:04:05.000006+00:00",
        "ended_at": null, "deleted_at": null,
        "next": {"step": "warn", "at": "2026-01-03T03:04:05.000006+00:00"}
    }
}"#;

async fn with_active_node() -> Api {
    let api = Api::start().await;
    api.enroll(r#", "name": "n1""#).await;
    api.edit(|node| node.provision_state = State::Active).await;
    api
}

#[tokio::test]
async fn a_node_is_lent_and_its_lease_extended() {
    let api = with_active_node().await;
    api.get(PATH).await.has(200).is(r#"{"lessee": null, "lease": null}"#);
    api.send("PUT", PATH, NEWEST, r#"{"for": "1d"}"#)
        .await
        .refuses(409, "node \"n1\" has no lease");
    // The default length is two days.
    api.send("POST", PATH, NEWEST, r#"{"lessee": "physics"}"#).await.has(200).is(LENT);
    api.get(PATH).await.has(200).is(LENT);
    assert_eq!(api.get("/v1/nodes/n1").await.json()["lessee"], "physics");

    let longer = api.send("PUT", PATH, NEWEST, r#"{"for": "9d"}"#).await.has(200).json();
    assert_eq!(longer["lease"]["until"], "2026-01-11T03:04:05.000006+00:00");
    api.send("PUT", PATH, NEWEST, r#"{"for": "11d"}"#).await.has(409);
    api.send("PUT", PATH, NEWEST, r#"{"for": "1d", "until": "2026-01-11T00:00:00Z"}"#)
        .await
        .refuses(400, "until: cannot be used together with for");
    api.send("POST", PATH, NEWEST, r#"{"lessee": "biology", "for": "1d"}"#)
        .await
        .refuses(409, "lessee: node \"n1\" is used by another project");
    api.send("POST", PATH, NEWEST, r#"{"lessee": "biology", "for": "11d"}"#)
        .await
        .refuses(400, "for: a lease lasts at most 10d");
    // A very short lease is refused, because each end of a lease causes a warning.
    api.send("POST", PATH, NEWEST, r#"{"lessee": "physics", "for": "1s"}"#)
        .await
        .refuses(400, "for: a lease lasts at least 1h");
}

#[tokio::test]
async fn a_node_whose_lease_has_ended_stays_off_until_the_end_is_undone() {
    let api = with_active_node().await;
    api.send("POST", PATH, NEWEST, r#"{"lessee": "physics"}"#).await.has(200);
    let end: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
    api.edit(|node| {
        *node = with_stage_taken(node, lease::LeaseStage::SwitchOff { deleted_at: end }, end).0
    })
    .await;
    let power = "/v1/nodes/n1/states/power";
    let refused = api.send("PUT", power, NEWEST, r#"{"target": "power on"}"#).await.has(400);
    assert!(refused.text.contains("has ended"), "{}", refused.text);
    assert!(api.get(PATH).await.json()["lease"]["ended_at"].is_string());
    api.send("PUT", PATH, NEWEST, r#"{"for": "1s"}"#).await.refuses(
        409,
        "a lease lasts at least 1h from now; request an end no earlier than 2026-01-02T04:04:05.000006Z",
    );
    let undone = api.send("POST", &format!("{PATH}/undo"), NEWEST, "").await.has(200).json();
    assert!(undone["lease"]["ended_at"].is_null());
    api.send("PUT", power, NEWEST, r#"{"target": "power on"}"#).await.has(202);
}
