//! The audit trail: a request is recorded before it is carried out, and its result afterwards.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use cluster_store::Store;
use database::scratch::Scratch;
use futures::StreamExt;
use http::Request;
use openstack_api::{Auth, Htpasswd, Trail};
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::api::{Api, NEWEST};

impl Api {
    /// The rows of the trail, the oldest first.
    async fn trail(&self, query: &str) -> Vec<Value> {
        let path = format!("/bedplate/v1/audit?sort_dir=asc&{query}");
        self.get(&path).await.has(200).json()["audit"].as_array().unwrap().clone()
    }

    async fn verified(&self) -> Value {
        self.get("/bedplate/v1/audit/verify").await.has(200).json()
    }
}

fn reported(row: &Value) -> (&str, &str, &str, u64) {
    let text = |key: &str| row[key].as_str().unwrap();
    (text("outcome"), text("method"), text("route"), row["status"].as_u64().unwrap())
}

/// The API on a database file, and a connection to the file that bypasses the service.
async fn on_a_file() -> (Scratch, Api, Connection) {
    let scratch = Scratch::sqlite();
    let api = Api::on(Store::open(&scratch.url).await.unwrap()).await;
    let around = Connection::open(scratch.url.trim_start_matches("sqlite://")).unwrap();
    (scratch, api, around)
}

#[tokio::test]
async fn a_change_is_recorded_before_and_after() {
    let api = Api::start().await;
    api.small().await;
    api.get("/v1/clusters").await.has(200);
    api.get("/bedplate/v1/clusters/c").await.has(200);
    api.post("/bedplate/v1/plan", r#"{"cluster_template_id": "t"}"#).await.has(200);
    // A kubeconfig contains a key, so the request is recorded although it is a `GET`.
    api.get("/bedplate/v1/clusters/c/kubeconfig").await.has(409);
    let gone = api.delete("/v1/clusters/none").await.has(404);
    let rows = api.trail("").await;
    let kubeconfig = "/bedplate/v1/clusters/{cluster}/kubeconfig";
    assert_eq!(
        rows.iter().map(reported).collect::<Vec<_>>(),
        [
            ("asked", "POST", "/v1/clustertemplates", 0),
            ("answered", "POST", "/v1/clustertemplates", 201),
            ("asked", "POST", "/v1/clusters", 0),
            ("answered", "POST", "/v1/clusters", 202),
            ("asked", "GET", kubeconfig, 0),
            ("answered", "GET", kubeconfig, 409),
            ("asked", "DELETE", "/v1/clusters/{cluster}", 0),
            ("answered", "DELETE", "/v1/clusters/{cluster}", 404),
        ]
    );
    let asked = &rows[6];
    assert_eq!((&asked["target"], &asked["service"]), (&json!("cluster=none"), &json!("clusterd")));
    assert_eq!(asked["action"], "Delete a cluster");
    assert_eq!(asked["result"], json!({"number": 8, "outcome": "answered", "status": 404}));
    let id = gone.headers["openstack-request-id"].to_str().unwrap();
    assert_eq!((&asked["request_id"], &rows[7]["request_id"]), (&json!(id), &json!(id)));
    let verified = api.verified().await;
    assert_eq!((&verified["count"], &verified["broken"]), (&json!(8), &Value::Null));
    let head = format!("8:{}", rows[7]["hash"].as_str().unwrap());
    assert_eq!(verified["head"], head);
}

#[tokio::test]
async fn the_request_id_of_the_client_is_recorded_beside_our_own() {
    let api = Api::start().await;
    let theirs = "req-7c9e6679-7425-40de-944b-e07fc1f90ae7";
    let request = |id: &str| {
        Request::delete("/v1/clusters/none")
            .header("x-openstack-request-id", id)
            .body(Body::empty())
    };
    let answer = api.raw(request(theirs).unwrap()).await.has(404);
    let own = answer.headers["openstack-request-id"].to_str().unwrap();
    assert_ne!(own, theirs);
    for id in [own, theirs] {
        let rows = api.trail(&format!("request_id={id}")).await;
        assert_eq!(rows.len(), 2, "{id}");
        assert_eq!(rows[0]["global_request_id"], theirs);
    }
    api.raw(request("req-<script>").unwrap()).await.has(404);
    assert_eq!(api.trail("marker=2").await[0]["global_request_id"], "");
}

#[tokio::test]
async fn a_request_that_cannot_be_recorded_is_not_carried_out() {
    let (_scratch, api, around) = on_a_file().await;
    api.small().await;
    let id = api.get("/v1/clusters/c").await.json()["uuid"].as_str().unwrap().to_owned();
    assert_eq!(api.trail("").await.len(), 4);
    for sql in ["DROP TRIGGER audit_is_not_cut", "DELETE FROM audit WHERE number = 4"] {
        around.execute_batch(sql).unwrap();
    }
    let words =
        "the request cannot be recorded in the audit trail, so it was not carried out: retry later";
    let refused = api.delete("/v1/clusters/c").await;
    assert!(refused.headers.contains_key("retry-after"));
    refused.refuses(503, words);
    api.post("/v1/clusters", r#"{"name": "d", "cluster_template_id": "t"}"#)
        .await
        .refuses(503, words);
    api.get("/bedplate/v1/clusters/c/kubeconfig").await.refuses(503, words);
    let listed = api.get("/v1/clusters").await.has(200).json();
    let clusters = listed["clusters"].as_array().unwrap();
    assert_eq!((clusters.len(), &clusters[0]["uuid"]), (1, &json!(id)));
    assert_eq!(clusters[0]["status"], "CREATE_IN_PROGRESS");
    let verified = api.verified().await;
    assert_eq!(verified["broken"], json!({"number": 4, "why": "row 4 is missing"}));
    assert_eq!(verified["count"], 3);
}

#[tokio::test]
async fn a_client_that_hangs_up_is_recorded() {
    let api = Arc::new(Api::start().await);
    // A body that never ends: the request passes the gate and waits.
    let body =
        Body::from_stream(futures::stream::pending::<Result<Bytes, std::io::Error>>().boxed());
    let request = Request::post("/v1/clusters")
        .header("content-type", "application/json")
        .header("openstack-api-version", NEWEST)
        .body(body);
    let asking = {
        let (api, request) = (api.clone(), request.unwrap());
        tokio::spawn(async move { api.raw(request).await })
    };
    let until = async |count: usize| loop {
        let rows = api.trail("").await;
        if rows.len() == count {
            return rows;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(until(1).await[0]["result"], Value::Null);
    asking.abort();
    let rows = until(2).await;
    assert_eq!(rows[1]["outcome"], "abandoned");
    assert_eq!(rows[0]["result"], json!({"number": 2, "outcome": "abandoned", "status": 0}));
    assert_eq!(rows[0]["request_id"], rows[1]["request_id"]);
}

#[tokio::test]
async fn guessed_passwords_do_not_fill_the_trail() {
    // The bcrypt hash of "secret", cost 4.
    let users =
        Htpasswd::parse("admin:$2b$04$9PJhBhcXWIeBYt0sOo1NUea2mu/VB2IenebDIUfWQvvcJAumssJmy");
    let api = Api::with(Auth::HttpBasic(Arc::new(users.unwrap()))).await;
    for _ in 0..100 {
        api.delete("/v1/clusters/c").await.has(401);
    }
    let filter = audit::Filter::after(0, 1000);
    assert_eq!(api.store.trail().list(&filter).await.unwrap(), []);
    api.store.trail().flush().await;
    let rows = api.store.trail().list(&filter).await.unwrap();
    let rows: Vec<_> = rows.iter().map(|it| (it.row.status, it.row.times)).collect();
    assert_eq!(rows, [(401, 100)]);
    // A correct password is recorded with the user's name.
    let request =
        Request::delete("/v1/clusters/c").header("authorization", "Basic YWRtaW46c2VjcmV0");
    api.raw(request.body(Body::empty()).unwrap()).await.has(404);
    let rows = api.store.trail().list(&audit::Filter::after(1, 1000)).await.unwrap();
    assert_eq!((rows[0].row.user_id.as_str(), rows[0].row.roles.as_str()), ("admin", "admin"));
}

#[tokio::test]
async fn two_hundred_concurrent_requests_make_one_chain() {
    let (_scratch, api, _around) = on_a_file().await;
    let api = Arc::new(api);
    let asking = (0..200).map(|n| {
        let api = api.clone();
        tokio::spawn(async move { api.template(&format!("t{n}"), "").await })
    });
    for asked in asking.collect::<Vec<_>>() {
        asked.await.unwrap();
    }
    let verified = api.verified().await;
    assert_eq!((&verified["count"], &verified["broken"]), (&json!(400), &Value::Null));
    let rows = api.trail("").await;
    let ended = rows.iter().filter(|row| row["outcome"] == "asked");
    assert!(ended.clone().all(|row| row["result"]["status"] == 201));
    assert_eq!(ended.count(), 200);
}

#[tokio::test]
async fn the_trail_has_pages_and_refuses_unknown_filters() {
    let api = Api::start().await;
    for _ in 0..3 {
        api.delete("/v1/clusters/none").await.has(404);
    }
    let mut path = "/bedplate/v1/audit?limit=4".to_owned();
    let mut numbers = Vec::new();
    loop {
        let page = api.get(&path).await.has(200).json();
        let rows = page["audit"].as_array().unwrap();
        numbers.extend(rows.iter().map(|row| row["number"].as_u64().unwrap()));
        let Some(next) = page.get("next") else { break };
        path = next.as_str().unwrap().strip_prefix("http://api:9511").unwrap().to_owned();
    }
    assert_eq!(numbers, [6, 5, 4, 3, 2, 1]);
    for (query, words) in [
        ("limit=0", "limit: must be positive"),
        ("marker=x", "marker: must be a non-negative number"),
        ("since=yesterday", "since: must be a time such as"),
        ("sort_dir=up", "sort_dir: must be asc or desc"),
        ("zebra=1", "zebra: unknown parameter"),
    ] {
        let refused = api.get(&format!("/bedplate/v1/audit?{query}")).await.has(400);
        assert!(refused.text.contains(words), "{}", refused.text);
    }
    let future = "since=2999-01-01T00:00:00Z";
    assert!(api.trail(future).await.is_empty());
    assert_eq!(api.trail("until=2999-01-01T00:00:00Z&user=nobody").await.len(), 0);
}
