//! Tests that a list shows all of its pages, whatever the size of a page is.

use axum::extract::Query;
use axum::http::Uri;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

use crate::fixture::run_beside;

/// The rows of every list.
const NAMES: [&str; 3] = ["a", "b", "c"];

/// Answers with one row, and with a link to the next page. As behind a proxy, the host of the link is not the host that was asked.
async fn page(uri: Uri, Query(asked): Query<Vec<(String, String)>>) -> Json<Value> {
    let kinds = ["nodes", "reservations", "clusters", "snapshots", "machines", "audit", "racks"];
    let kind = uri.path().rsplit('/').find(|part| kinds.contains(part)).unwrap();
    let marker = asked.iter().find(|(name, _)| name == "marker");
    let place = marker.map_or(0, |(_, after)| after.parse().unwrap());
    let id = place + 1;
    let at = "2026-01-02T03:04:05Z";
    // The required fields of all kinds.
    let mut row = json!({
        "uuid": id.to_string(), "number": id, "name": NAMES[place], "outcome": "asked", "state": "active",
        "master_count": 1, "node_count": 2, "status": "ACTIVE", "health_status": "HEALTHY",
        "user_id": "u-1", "user_name": "ann", "image": "fcos", "flavor": "m1", "next_action": "",
        "off_by_lease": false, "ram_mib": 1, "has_user_data": false, "idle_since": at, "why": "no login", "machine": "lab-1",
        "created_at": at, "at": at, "times": 1, "source": "192.0.2.1", "target": "/v1/nodes",
        "method": "GET", "route": "/v1/nodes", "action": "GET /v1/nodes",
    });
    if kind == "audit" {
        row["status"] = json!(200);
    }
    let kept: String = asked
        .iter()
        .filter(|(name, _)| !["marker", "limit"].contains(&name.as_str()))
        .map(|(name, value)| format!("{name}={value}&"))
        .collect();
    let link = format!("http://elsewhere.example{}?{kept}limit=1&marker={id}", uri.path());
    match id < NAMES.len() {
        true => Json(json!({kind: [row], "next": link})),
        false => Json(json!({kind: [row]})),
    }
}

#[tokio::test]
async fn a_list_shows_all_of_its_pages() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().fallback(page);
    let _serving = AbortOnDropHandle::new(tokio::spawn(async move {
        axum::serve(listener, router).await.unwrap();
    }));
    for (noun, within) in [
        (&["node", "list"][..], ""),
        (&["reservation", "list"], ""),
        (&["rack", "list"], "/racks"),
        (&["cluster", "list"], "/clusters"),
        (&["vm", "list", "--project", "lab"], ""),
        (&["vm", "idle"], ""),
        (&["vm", "snapshots"], ""),
        (&["vm", "snapshots", "lab-1"], ""),
        (&["audit", "list", "machines"], "/machines"),
    ] {
        let reported = run_beside(&url, &[noun, &["-o", "json"]].concat()).await.done();
        let reported: Value = serde_json::from_str(&reported).unwrap();
        let rows = reported.pointer(within).and_then(Value::as_array);
        let names: Vec<&Value> = rows.unwrap().iter().map(|row| &row["name"]).collect();
        assert_eq!(names, NAMES, "{noun:?}: {reported}");
    }
}
