//! Wire tests of version documents, headers and negotiation.

use crate::api::{Api, ID, NEWEST};

#[tokio::test]
async fn the_root_shows_the_versions_to_anyone() {
    let api = Api::start().await;
    let version = r#"{
        "id": "v1", "status": "CURRENT", "min_version": "1.1", "version": "1.115",
        "links": [{"href": "http://api:6385/v1/", "rel": "self"}]
    }"#;
    let want = format!(
        r#"{{
            "name": "OpenStack Ironic API",
            "description": "Bedplate provisions bare metal machines by the OpenStack Bare Metal API.",
            "default_version": {version}, "versions": [{version}]
        }}"#
    );
    api.send("GET", "/", "", "").await.has(200).is(&want);
}

#[tokio::test]
async fn v1_lists_the_resources_of_the_requested_version() {
    let api = Api::start().await;
    let links = |name: &str| {
        format!(
            r#""{name}": [
                {{"href": "http://api:6385/v1/{name}/", "rel": "self"}},
                {{"href": "http://api:6385/{name}/", "rel": "bookmark"}}
            ]"#
        )
    };
    let want = format!(
        r#"{{
            "id": "v1", "links": [{{"href": "http://api:6385/v1/", "rel": "self"}}],
            "media_types": {{"base": "application/json", "type": "application/vnd.openstack.ironic.v1+json"}},
            {}, {}, {}, {},
            "version": {{
                "id": "v1", "status": "CURRENT", "min_version": "1.1", "version": "1.115",
                "links": [{{"href": "http://api:6385/v1/", "rel": "self"}}]
            }}
        }}"#,
        links("chassis"),
        links("nodes"),
        links("ports"),
        links("drivers")
    );
    api.send("GET", "/v1", "1.1", "").await.has(200).is(&want);
    let newest = api.get("/v1/").await.has(200).json();
    assert!(newest.get("conductors").is_some() && newest.get("shards").is_some());
}

#[tokio::test]
async fn every_answer_names_version_range_version_and_request_id() {
    let api = Api::start().await;
    for (asked, served) in [("", "1.1"), ("latest", "1.115"), ("1.50", "1.50")] {
        let answer = api.send("GET", "/v1/nodes", asked, "").await.has(200);
        assert_eq!(answer.headers["x-openstack-ironic-api-version"], served);
        assert_eq!(answer.headers["x-openstack-ironic-api-minimum-version"], "1.1");
        assert_eq!(answer.headers["x-openstack-ironic-api-maximum-version"], "1.115");
        let id = &answer.headers["openstack-request-id"];
        assert!(id.to_str().unwrap().starts_with("req-"));
        assert_eq!(id, &answer.headers["x-openstack-request-id"]);
    }
}

#[tokio::test]
async fn a_version_out_of_range_is_not_acceptable() {
    let api = Api::start().await;
    let answer = api.send("GET", "/v1/nodes", "1.999", "").await.has(406);
    assert_eq!(
        answer.text,
        r#"{"error_message":"{\"code\":406,\"description\":\"version 1.999 was requested but is not supported by this service; the supported version range is [1.1, 1.115]\",\"title\":\"Not Acceptable\"}"}"#
    );
    assert_eq!(answer.headers["x-openstack-ironic-api-minimum-version"], "1.1");
    assert_eq!(answer.headers["x-openstack-ironic-api-maximum-version"], "1.115");
    assert!(answer.headers.get("x-openstack-ironic-api-version").is_none());
    api.send("GET", "/v1/nodes", "2.1", "").await.has(406);
    api.send("GET", "/v1/nodes", "new", "").await.has(406);
}

#[tokio::test]
async fn an_unknown_path_is_refused_in_the_envelope() {
    let api = Api::start().await;
    let answer = api.get("/v1/blah").await.has(404);
    assert_eq!(
        answer.text,
        r#"{"error_message":"{\"code\":404,\"description\":\"path not found\",\"title\":\"Not Found\"}"}"#
    );
    assert_eq!(answer.headers["content-type"], "application/json");
    api.send("PUT", "/v1/nodes", NEWEST, "").await.has(405);
    // Ironic counts the parts of a path: one too many or too few is a wrong request.
    let part = "/v1/nodes/n1/no-such-part";
    api.send("DELETE", "/v1/nodes", NEWEST, "")
        .await
        .refuses(400, "method not allowed for this path");
    api.get(part).await.refuses(400, "path not found");
    api.send("DELETE", part, NEWEST, "").await.refuses(404, "path not found");
    api.get("/v1/nodes/a%ffb").await.has(400);
}

#[tokio::test]
async fn a_path_that_came_later_is_refused_in_the_form_of_ironic() {
    let api = Api::start().await;
    api.enroll("").await;
    let later = |came: &str, asked: &str| {
        format!("this path requires API version {came}; the requested version is {asked}")
    };
    let refused = async |path: &str, version: &str| api.send("GET", path, version, "").await;
    refused("/v1/conductors", "1.48").await.refuses(404, &later("1.49", "1.48"));
    let traits = format!("/v1/nodes/{ID}/traits");
    refused(&traits, "1.36").await.refuses(406, &later("1.37", "1.36"));
    for (path, came, before) in
        [("/v1/volume/targets", "1.32", "1.31"), ("/v1/runbooks", "1.92", "1.91")]
    {
        let answer = refused(path, before).await.has(404);
        let why = later(came, before);
        assert_eq!(
            answer.text,
            format!(
                r#"{{"error_message":"{{\"code\":404,\"description\":\"{why}\",\"title\":\"Not Found\"}}"}}"#
            )
        );
    }
}

#[tokio::test]
async fn a_path_may_lack_its_version_and_have_a_suffix() {
    let api = Api::start().await;
    api.enroll(r#", "name": "n1""#).await;
    let named = async |path: &str, version: &str| {
        let node = api.send("GET", path, version, "").await.has(200).json();
        assert_eq!(node["name"], "n1", "{path}");
    };
    for path in ["/nodes/n1", "/nodes/n1/", "/nodes/n1.json?fields=name", "/v1/nodes/n1.json"] {
        named(path, "1.90").await;
    }
    named("/nodes/n1?fields=name", NEWEST).await;
    for version in [NEWEST, ""] {
        api.send("GET", "/v1/nodes/n1.json", version, "").await.has(404);
    }
    api.get("/node/n1").await.has(404);
}
