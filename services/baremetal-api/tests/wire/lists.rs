//! Wire tests of lists of nodes: filters, pages and fields.

use crate::api::{Api, ID, NEWEST};

async fn three() -> Api {
    let api = Api::start().await;
    api.enroll(r#", "name": "a", "owner": "x", "shard": "s1""#).await;
    for (name, owner) in [("b", "y"), ("c", "x")] {
        let body = format!(r#"{{"driver": "ipmi", "name": "{name}", "owner": "{owner}"}}"#);
        api.send("POST", "/v1/nodes", NEWEST, &body).await.has(201);
    }
    api
}

async fn names(api: &Api, query: &str) -> Vec<String> {
    let body = api.get(&format!("/v1/nodes?{query}")).await.has(200).json();
    let nodes = body["nodes"].as_array().unwrap();
    nodes.iter().map(|node| node["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_list_shows_a_few_fields_of_each_node() {
    let api = Api::start().await;
    api.get("/v1/nodes").await.has(200).is(r#"{"nodes": []}"#);
    api.enroll(r#", "name": "a""#).await;
    let links = format!(
        r#"[{{"href": "http://api:6385/v1/nodes/{ID}", "rel": "self"}},
            {{"href": "http://api:6385/nodes/{ID}", "rel": "bookmark"}}]"#
    );
    api.get("/v1/nodes").await.has(200).is(&format!(
        r#"{{"nodes": [{{
            "uuid": "{ID}", "name": "a", "instance_uuid": null, "maintenance": false, "power_state": null,
            "provision_state": "enroll", "links": {links}
        }}]}}"#
    ));
    api.get("/v1/nodes?fields=name,name")
        .await
        .has(200)
        .is(&format!(r#"{{"nodes": [{{"name": "a", "links": {links}}}]}}"#));
    let one = api.get(&format!("/v1/nodes/{ID}")).await.json();
    for path in ["/v1/nodes/detail", "/v1/nodes?detail=True"] {
        assert_eq!(api.get(path).await.has(200).json()["nodes"][0], one);
    }
}

#[tokio::test]
async fn pages_follow_one_another() {
    let api = three().await;
    let first = api.get("/v1/nodes?fields=uuid,name&limit=2&sort_key=name&sort_dir=desc").await;
    let first = first.has(200).json();
    let last = first["nodes"][1]["uuid"].as_str().unwrap();
    let next = first["next"].as_str().unwrap();
    assert_eq!(
        next,
        format!(
            "http://api:6385/v1/nodes?sort_key=name&sort_dir=desc&fields=uuid,name&limit=2&marker={last}"
        )
    );
    let second = api.get(next.strip_prefix("http://api:6385").unwrap()).await.has(200).json();
    assert_eq!(second["nodes"].as_array().unwrap().len(), 1);
    assert_eq!(second["nodes"][0]["name"], "a");
    assert_eq!(second.get("next"), None);
}

#[tokio::test]
async fn filters_narrow_a_list() {
    let api = three().await;
    assert_eq!(names(&api, "sort_key=name").await, ["a", "b", "c"]);
    assert_eq!(names(&api, "owner=x&sort_key=name&sort_dir=desc").await, ["c", "a"]);
    assert_eq!(names(&api, "driver=fake-hardware").await, ["a"]);
    assert_eq!(
        names(&api, "provision_state=enroll&maintenance=False&associated=0&sort_key=name")
            .await
            .len(),
        3
    );
    assert_eq!(names(&api, "shard=s0,s1").await, ["a"]);
    assert_eq!(names(&api, "sharded=false&sort_key=name").await, ["b", "c"]);
    assert_eq!(names(&api, "conductor=host-1").await.len(), 3);
    assert!(names(&api, "conductor=elsewhere").await.is_empty());
    assert!(names(&api, "fault=clean+failure").await.is_empty());
    for none in ["parent_node=a", "parent_node=zz", "driver=zz", "driver=zz&owner=x"] {
        assert!(names(&api, none).await.is_empty(), "{none}");
    }
}

#[tokio::test]
async fn an_invalid_list_parameter_is_refused_by_name() {
    let api = Api::start().await;
    let get = async |version: &str, query: &str, status: u16, words: &str| {
        api.send("GET", &format!("/v1/nodes?{query}"), version, "").await.refuses(status, words);
    };
    get(NEWEST, "bogus=1", 400, "bogus: unknown parameter").await;
    get(NEWEST, "limit=abc", 400, "limit: must be an integer").await;
    get(NEWEST, "limit=0", 400, "limit: must be positive").await;
    get(NEWEST, "sort_key=properties", 400, "sort_key: nodes cannot be sorted by \"properties\"")
        .await;
    get(NEWEST, "sort_dir=up", 400, "sort_dir: must be asc or desc").await;
    get(NEWEST, "marker=zz", 400, "marker: must be a UUID").await;
    get(NEWEST, &format!("marker={ID}"), 404, &format!("marker: the marker {ID} was not found"))
        .await;
    get(NEWEST, "fields=links", 400, "fields: a node has no field \"links\"").await;
    get(NEWEST, "fields=uuid,nope", 400, "fields: a node has no field \"nope\"").await;
    get(NEWEST, "provision_state=zz", 400, "provision_state: \"zz\" is not a provision state")
        .await;
    get(NEWEST, "maintenance=zz", 400, "maintenance: must be true or false").await;
    get(NEWEST, "instance_uuid=zz", 400, "instance_uuid: must be a UUID").await;
    get(NEWEST, "detail=True&fields=uuid", 400, "fields: cannot be used together with detail")
        .await;
    let since = |field: &str, asked: &str, came: &str| {
        format!(
            "{field}: the requested version is {asked}; the minimal required API version is {came}"
        )
    };
    get("1.20", "fields=uuid,owner", 406, &since("owner", "1.20", "1.50")).await;
    get("1.7", "fields=uuid", 406, &since("fields", "1.7", "1.8")).await;
    get("1.49", "owner=x", 406, &since("owner", "1.49", "1.50")).await;
    get("1.8", "provision_state=enroll", 406, &since("provision_state", "1.8", "1.9")).await;
    get("1.42", "detail=True", 400, "detail: is known since version 1.43").await;
    get("1.20", "sort_key=owner", 406, &since("owner", "1.20", "1.50")).await;
    for (version, query) in [("1.60", "retired=true"), ("1.50", "description_contains=rack")] {
        let path = format!("/v1/nodes?{query}");
        api.send("GET", &path, version, "").await.has(200).is(r#"{"nodes": []}"#);
    }
}
