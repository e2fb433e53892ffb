//! The routes that Magnum does not have.

use cluster_core::{Ident, LeafCertificate, MemberCertificates};
use cluster_store::{ClusterChange, Scope};
use serde_json::json;

use crate::api::{Api, NEWEST};

#[tokio::test]
async fn plan_events_members_and_ledger_of_a_cluster_are_shown() {
    let api = Api::start().await;
    api.small().await;
    let plan = api.get("/bedplate/v1/clusters/c/plan").await.has(200).json();
    let objects: Vec<&str> = plan["objects"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["object"].as_str().unwrap())
        .collect();
    assert!(objects.contains(&"server/default-worker-0") && objects.contains(&"load-balancer/api"));
    let events = api.get("/bedplate/v1/clusters/c/events").await.has(200).json();
    let first = &events["events"][0];
    assert_eq!(
        (&first["reason"], &first["message"]),
        (&json!("CreateRequested"), &json!("cluster of 2 members requested"))
    );
    let after = first["id"].as_str().unwrap();
    api.get(&format!("/bedplate/v1/clusters/c/events?marker={after}"))
        .await
        .is(r#"{"events": []}"#);
    api.get("/bedplate/v1/clusters/c/ledger").await.has(200).is(r#"{"ledger": []}"#);
    api.get("/bedplate/v1/clusters/c/machines").await.has(200).is(
        r#"{"machines": [
            {"name": "default-master-0", "nodegroup": "default-master", "role": "master", "server_id": null, "address": null,
             "certificates_end_at": null},
            {"name": "default-worker-0", "nodegroup": "default-worker", "role": "worker", "server_id": null, "address": null,
             "certificates_end_at": null}
        ]}"#,
    );
}

#[tokio::test]
async fn a_member_shows_when_its_certificates_end() {
    let api = Api::start().await;
    let ident = Ident::Id(api.small().await.parse().unwrap());
    let mut cluster = api.store.find_clusters(&ident, &Scope::All).await.unwrap().remove(0);
    let ends_at = "2027-01-31T00:00:00Z".parse().unwrap();
    let first = LeafCertificate::new("etcd/peer".to_owned(), ends_at, ends_at, ends_at);
    let held = MemberCertificates { first, renewing_since: None, renewed_at: None };
    cluster.certificates.insert("default-worker-0".parse().unwrap(), held);
    api.store.change_cluster(&ClusterChange::of(cluster)).await.unwrap();
    let shown = api.get("/bedplate/v1/clusters/c/machines").await.has(200).json();
    let ends = |at: usize| shown["machines"][at]["certificates_end_at"].clone();
    assert_eq!((ends(0), ends(1)), (json!(null), json!("2027-01-31T00:00:00.000000+00:00")));
}

#[tokio::test]
async fn a_cluster_without_an_api_address_has_no_kubeconfig() {
    let api = Api::start().await;
    api.small().await;
    api.get("/bedplate/v1/clusters/c/kubeconfig").await.refuses(
        409,
        "the cluster's API has no address yet; the conditions in GET /bedplate/v1/clusters/ID tell why",
    );
}

#[tokio::test]
async fn a_kubeconfig_has_the_address_of_the_clusters_api() {
    let api = Api::start().await;
    let id = api.small().await;
    let ident = Ident::Id(id.parse().unwrap());
    let mut cluster = api.store.find_clusters(&ident, &Scope::All).await.unwrap().remove(0);
    cluster.api_address = Some("https://192.0.2.7:6443".to_owned());
    api.store.change_cluster(&ClusterChange::of(cluster)).await.unwrap();
    let config = api.get("/bedplate/v1/clusters/c/kubeconfig").await.has(200);
    assert_eq!(config.headers["content-type"], "application/yaml");
    assert_eq!(config.json()["clusters"][0]["cluster"]["server"], "https://192.0.2.7:6443");
    let events = api.get("/bedplate/v1/clusters/c/events").await.text;
    assert!(
        events.contains("anonymous got an administrator's kubeconfig")
            && !events.contains("PRIVATE")
    );
}

#[tokio::test]
async fn the_explanation_of_a_new_cluster_is_shown() {
    let api = Api::start().await;
    let id = api.small().await;
    let answer = api.get("/bedplate/v1/clusters/c").await.has(200);
    let by = answer.json()["asked_by"].as_str().unwrap().to_owned();
    assert!(by.starts_with("req-"), "{by}");
    answer.is(&format!(
        r#"{{"uuid": "{id}", "name": "c", "status": "CREATE_IN_PROGRESS", "status_reason": null,
             "health_status": "UNKNOWN", "kubernetes": "v1.34.1", "asked_by": "{by}", "lease": null, "upgrade": null,
             "conditions": []}}"#
    ));
}

#[tokio::test]
async fn a_node_group_may_have_its_own_ignition_config() {
    let api = Api::start().await;
    api.small().await;
    let path = "/bedplate/v1/clusters/c/nodegroups/default-worker/ignition";
    let put = async |path: &str, body: &str| api.send("PUT", path, NEWEST, body).await;
    put(path, r#"{"ignition": {"version": "3.4.0"}}"#)
        .await
        .has(200)
        .is(r#"{"nodegroup": "default-worker", "ignition_version": "3.4.0"}"#);
    let refused = put(path, r#"{"ignition": {"version": "2.3.0"}}"#).await.has(400).json();
    let why = refused["errors"][0]["detail"].as_str().unwrap().to_owned();
    assert!(why.starts_with("ignition.version: "), "{why}");
    put(&path.replace("default-worker", "other"), "{}").await.has(404);
    api.delete(path).await.has(204);
    let events = api.get("/bedplate/v1/clusters/c/events").await.has(200).json();
    let reasons: Vec<_> =
        events["events"].as_array().unwrap().iter().map(|it| &it["reason"]).collect();
    assert_eq!(reasons[1..], [&json!("OwnConfigGiven"), &json!("OwnConfigTaken")]);
}
