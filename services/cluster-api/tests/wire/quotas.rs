//! Magnum's quotas, statistics and services.

use crate::api::Api;

#[tokio::test]
async fn a_quota_is_set_shown_changed_and_deleted() {
    let api = Api::start().await;
    let made = api
        .post("/v1/quotas", r#"{"project_id": "p", "resource": "Cluster", "hard_limit": 5}"#)
        .await
        .has(201);
    let id = made.json()["id"].as_str().unwrap().to_owned();
    let quota = |limit: u32, updated: &str| {
        format!(
            r#"{{"id": "{id}", "project_id": "p", "resource": "Cluster", "hard_limit": {limit},
                 "created_at": "2026-01-02T03:04:05.000006+00:00", "updated_at": {updated}}}"#
        )
    };
    made.is(&quota(5, "null"));
    api.get("/v1/quotas/p/Cluster").await.has(200).is(&quota(5, "null"));
    // `PATCH` reads an object, not a JSON patch.
    let changed = api.patch(
        "/v1/quotas/p/Cluster",
        r#"{"project_id": "p", "resource": "Cluster", "hard_limit": 6}"#,
    );
    let changed = changed.await.has(202);
    changed.is(&quota(6, "\"2026-01-02T03:04:05.000006+00:00\""));
    api.get("/v1/quotas").await.is(r#"{"quotas": []}"#);
    let all = api.get("/v1/quotas?all_tenants=True").await.json();
    assert_eq!(all["quotas"].as_array().unwrap().len(), 1);
    api.delete("/v1/quotas/p/Cluster").await.has(204);
    api.delete("/v1/quotas/p/Cluster").await.refuses(404, "Quota p/Cluster could not be found.");
    api.get("/v1/quotas/p/Cluster").await.is(
        r#"{"id": null, "project_id": "p", "resource": "Cluster", "hard_limit": 20, "created_at": null, "updated_at": null}"#,
    );
    api.get("/v1/quotas/p/Server").await.refuses(400, "resource: must be Cluster");
    // Magnum serves quotas and statistics in every version.
    api.send("GET", "/v1/quotas", "container-infra 1.1", "").await.has(200);
    api.send("GET", "/v1/stats", "container-infra 1.1", "").await.has(200);
}

#[tokio::test]
async fn quotas_are_sorted_and_paged() {
    let api = Api::start().await;
    for (project, limit) in [("b", 1), ("a", 3), ("c", 2)] {
        let body = format!(r#"{{"project_id": "{project}", "hard_limit": {limit}}}"#);
        api.post("/v1/quotas", &body).await.has(201);
    }
    let projects = async |query: &str| {
        let page = api.get(&format!("/v1/quotas?all_tenants=true&{query}")).await.has(200).json();
        let all = page["quotas"].as_array().unwrap().iter();
        let all: Vec<String> = all.map(|it| it["project_id"].as_str().unwrap().into()).collect();
        (all.concat(), page["next"].as_str().map(str::to_owned))
    };
    assert_eq!(projects("sort_key=project_id").await, ("abc".to_owned(), None));
    assert_eq!(projects("sort_key=hard_limit&sort_dir=desc").await, ("acb".to_owned(), None));
    let (first, next) = projects("sort_key=project_id&limit=2").await;
    let query = next.unwrap().rsplit('?').next().unwrap().replace("all_tenants=true&", "");
    assert_eq!((first.as_str(), projects(&query).await), ("ab", ("c".to_owned(), None)));
    let keys = "sort_key: must be id, project_id, resource, hard_limit, created_at or updated_at";
    api.get("/v1/quotas?sort_key=x").await.refuses(400, keys);
    let nobody = "00000000-0000-0000-0000-000000000001";
    let why = format!("marker: the list has no {nobody}");
    api.get(&format!("/v1/quotas?marker={nobody}")).await.refuses(400, &why);
}

#[tokio::test]
async fn clusters_and_machines_are_counted() {
    let api = Api::start().await;
    api.template("t", "").await;
    api.cluster("c", r#", "node_count": 4"#).await;
    api.get("/v1/stats").await.has(200).is(r#"{"clusters": 1, "nodes": 5}"#);
    api.get("/v1/stats?project_id=default").await.is(r#"{"clusters": 1, "nodes": 5}"#);
    api.get("/v1/stats?project_id=other").await.is(r#"{"clusters": 0, "nodes": 0}"#);
}

#[tokio::test]
async fn services_are_listed_as_up_or_down() {
    let api = Api::start().await;
    api.store.touch_service("host-1", "2026-01-02T03:04:00Z".parse().unwrap()).await.unwrap();
    api.store.touch_service("host-2", "2026-01-02T03:00:00Z".parse().unwrap()).await.unwrap();
    let service = |id: u32, host: &str, state: &str, at: &str| {
        format!(
            r#"{{"id": {id}, "host": "{host}", "binary": "magnum-conductor", "state": "{state}", "disabled": false,
                 "disabled_reason": null, "report_count": 1, "created_at": "{at}", "updated_at": "{at}"}}"#
        )
    };
    let want = [
        service(1, "host-1", "up", "2026-01-02T03:04:00.000000+00:00"),
        service(2, "host-2", "down", "2026-01-02T03:00:00.000000+00:00"),
    ];
    api.get("/v1/mservices").await.is(&format!(r#"{{"mservices": [{}]}}"#, want.join(",")));
}
