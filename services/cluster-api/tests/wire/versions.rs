//! Version documents, headers and negotiation.

use crate::api::Api;

#[tokio::test]
async fn the_root_tells_the_versions_to_anyone() {
    let api = Api::start().await;
    let version = r#"{
        "id": "v1", "status": "CURRENT", "min_version": "1.1", "version": "1.14",
        "links": [{"href": "http://api:9511/v1/", "rel": "self"}]
    }"#;
    let want = format!(
        r#"{{
            "name": "OpenStack Magnum API",
            "description": "Bedplate manages Kubernetes clusters through the OpenStack Container Infra API.",
            "default_version": {version}, "versions": [{version}]
        }}"#
    );
    api.send("GET", "/", "", "").await.has(200).is(&want);
}

#[tokio::test]
async fn v1_tells_the_same_resources_in_every_version() {
    let api = Api::start().await;
    let oldest = api.send("GET", "/v1", "", "").await.has(200).json();
    assert!(oldest.get("clusters").is_some() && oldest.get("credentials").is_some());
    let newest = api.get("/v1/").await.has(200).json();
    assert_eq!(newest["nodegroups"][0]["href"], "http://api:9511/v1/nodegroups/");
    assert_eq!(newest["media_types"][0]["type"], "application/vnd.openstack.magnum.v1+json");
}

#[tokio::test]
async fn every_answer_tells_range_version_and_request_id() {
    let api = Api::start().await;
    for (asked, served) in [
        ("", "container-infra 1.1"),
        ("container-infra latest", "container-infra 1.14"),
        ("container-infra 1.9", "container-infra 1.9"),
        ("compute 2.1", "container-infra 1.1"),
    ] {
        let answer = api.send("GET", "/v1/clusters", asked, "").await.has(200);
        assert_eq!(answer.headers["openstack-api-version"], served);
        assert_eq!(answer.headers["openstack-api-minimum-version"], "1.1");
        assert_eq!(answer.headers["openstack-api-maximum-version"], "1.14");
        let id = &answer.headers["openstack-request-id"];
        assert!(id.to_str().unwrap().starts_with("req-"));
        assert_eq!(id, &answer.headers["x-openstack-request-id"]);
    }
}

#[tokio::test]
async fn an_older_version_lacks_the_routes_that_magnum_gates() {
    let api = Api::start().await;
    api.small().await;
    for (method, path, came) in [
        ("GET", "/v1/clusters/c/nodegroups", 9),
        ("GET", "/v1/clusters/c/nodegroups/default-worker", 9),
        ("DELETE", "/v1/clusters/c/nodegroups/default-worker", 9),
        ("POST", "/v1/clusters/c/actions/resize", 7),
        ("POST", "/v1/clusters/c/actions/upgrade", 8),
        ("PATCH", "/v1/credentials/c", 12),
    ] {
        let version = |minor: u32| format!("container-infra 1.{minor}");
        api.send(method, path, &version(came - 1), "{}").await.has(406);
        let answer = api.send(method, path, &version(came), "{}").await;
        assert_ne!(answer.status, 406, "{method} {path}");
    }
}

#[tokio::test]
async fn an_unknown_version_is_not_acceptable() {
    let api = Api::start().await;
    api.send("GET", "/v1/clusters", "container-infra 1.15", "").await.refuses(
        406,
        "version 1.15 was requested but is not supported by this service; the supported version range is [1.1, 1.14]",
    );
    api.send("GET", "/v1/clusters", "container-infra newest", "").await.has(406);
}
