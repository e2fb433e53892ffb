//! Leases of clusters.

use serde_json::{Value, json};

use crate::api::Api;

const LEASE: &str = "/bedplate/v1/clusters/c/lease";

async fn with_lease(labels: &str) -> Api {
    let api = Api::start().await;
    api.template("t", "").await;
    api.cluster("c", &format!(r#", "labels": {labels}"#)).await;
    api
}

#[tokio::test]
async fn a_lease_is_shown_and_extended() {
    let api = with_lease(r#"{"lease": "14d", "lease_contact": "ann@example.org"}"#).await;
    let (now, then) = ("2026-01-02T03:04:05.000006+00:00", "2026-01-16T03:04:05.000006+00:00");
    let lease = |until: &str, since: &str, next: &Value| {
        json!({
            "granted_at": now, "since": since, "until": until, "ended_at": null, "deleted_at": null,
            "notify": "ann@example.org", "next": next,
        })
    };
    let warned = json!({"step": "warn", "at": "2026-01-09T03:04:05.000006+00:00"});
    let shown = api.get(LEASE).await.has(200).json();
    assert_eq!(shown["lease"], lease(then, now, &warned));
    assert_eq!(api.get("/bedplate/v1/clusters/c").await.json()["lease"], shown["lease"]);

    // An earlier end changes nothing.
    let same = api.send("PUT", LEASE, "", r#"{"for": "1d"}"#).await.has(200).json();
    assert_eq!(same["lease"], shown["lease"]);
    let longer =
        api.send("PUT", LEASE, "", r#"{"until": "2026-03-01T00:00:00Z"}"#).await.has(200).json();
    assert_eq!(longer["lease"]["until"], "2026-03-01T00:00:00.000000+00:00");
    let events = api.get("/bedplate/v1/clusters/c/events").await.json();
    let events = events["events"].as_array().unwrap().clone();
    let reported = events.iter().filter(|event| event["reason"] == "LeaseExtended").count();
    assert_eq!(reported, 1, "{events:?}");

    let undo = "/bedplate/v1/clusters/c/lease/undo";
    api.post(undo, "{}").await.refuses(409, "the lease has not ended: there is nothing to undo");
}

#[tokio::test]
async fn an_invalid_lease_request_is_refused_by_field() {
    let api = with_lease(r#"{"lease": "14d"}"#).await;
    let put = async |body: &str| api.send("PUT", LEASE, "", body).await;
    put(r#"{"for": "1d", "until": "2026-03-01T00:00:00Z"}"#)
        .await
        .refuses(400, "for: set either for or until, not both");
    put("{}").await.refuses(400, "for: a duration is required, such as 14d");
    assert_eq!(put(r#"{"for": "soon"}"#).await.status, 400);
    assert_eq!(put(r#"{"forever": true}"#).await.status, 400);
}

#[tokio::test]
async fn a_cluster_without_a_lease_is_lent_without_end() {
    let api = with_lease("{}").await;
    assert_eq!(api.get(LEASE).await.has(200).json()["lease"], Value::Null);
    let refused = api.send("PUT", LEASE, "", r#"{"for": "1d"}"#).await;
    refused.refuses(409, "cluster c has no lease to extend or undo");
}

#[tokio::test]
async fn leases_are_no_longer_than_the_limits_of_project_and_user() {
    let api = Api::start().await;
    api.template("t", "").await;
    api.limit("default", &json!({"lease_seconds": 864_000})).await;
    api.limit("default/users/anonymous", &json!({"lease_seconds": 432_000})).await;
    let ask = async |labels: &str| {
        let body = format!(r#"{{"name": "c", "cluster_template_id": "t", "labels": {labels}}}"#);
        api.post("/v1/clusters", &body).await
    };
    let too_long = "labels/lease: a lease lasts at most 5d";
    ask(r#"{"lease": "6d"}"#).await.refuses(400, too_long);
    // A request without a duration gets the longest that the limits permit.
    ask("{}").await.has(202);
    let lease = api.get(LEASE).await.json()["lease"].clone();
    assert_eq!(lease["until"], "2026-01-07T03:04:05.000006+00:00");
    let refused = api.send("PUT", LEASE, "", r#"{"for": "6d"}"#).await;
    refused.refuses(
        400,
        "a lease lasts at most 5d from now; request an end no later than 2026-01-07T03:04:05.000006Z",
    );
}
