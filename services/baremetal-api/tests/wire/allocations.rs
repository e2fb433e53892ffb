//! Wire tests of allocations.

use baremetal_core::{Node, State};
use hardware::PowerState;

use crate::api::{Api, ID, NEWEST};

const WISH: &str = "0d4b7a5e-7c1a-4c39-9d0c-2f6a0a1b2c3d";

/// An API with a node that can be allocated.
async fn with_free_node() -> Api {
    let api = Api::start().await;
    api.enroll(r#", "name": "n1", "resource_class": "gpu""#).await;
    api.edit(|node| {
        node.provision_state = State::Available;
        node.power_state = Some(PowerState::Off);
        node.traits = ["CUSTOM_FAST", "CUSTOM_LOUD"].map(str::to_owned).into();
    })
    .await;
    api
}

fn body(more: &str) -> String {
    format!(r#"{{"uuid": "{WISH}", "resource_class": "gpu"{more}}}"#)
}

async fn reserved() -> Api {
    let api = with_free_node().await;
    api.send("POST", "/v1/allocations", NEWEST, &body(r#", "name": "job-1""#)).await.has(201);
    api
}

const ACTIVE: &str = r#"{
    "uuid": "0d4b7a5e-7c1a-4c39-9d0c-2f6a0a1b2c3d", "name": "job-1", "node_uuid": "7c9e6679-7425-40de-944b-e07fc1f90ae7",
    "state": "active", "last_error": null, "resource_class": "gpu", "traits": ["CUSTOM_FAST"],
    "candidate_nodes": ["7c9e6679-7425-40de-944b-e07fc1f90ae7"], "extra": {"a": 1}, "owner": null,
    "created_at": "2026-01-02T03:04:05.000006+00:00", "updated_at": "2026-01-02T03:04:05.000006+00:00", "links": [
        {"href": "http://api:6385/v1/allocations/0d4b7a5e-7c1a-4c39-9d0c-2f6a0a1b2c3d", "rel": "self"},
        {"href": "http://api:6385/allocations/0d4b7a5e-7c1a-4c39-9d0c-2f6a0a1b2c3d", "rel": "bookmark"}
    ]
}"#;

#[tokio::test]
async fn an_allocation_reserves_a_matching_node() {
    let api = with_free_node().await;
    let body = body(
        r#", "name": "job-1", "traits": ["CUSTOM_FAST"], "candidate_nodes": ["n1"], "extra": {"a": 1}"#,
    );
    let answer = api.send("POST", "/v1/allocations", NEWEST, &body).await.has(201);
    assert_eq!(answer.headers["location"], format!("http://api:6385/v1/allocations/{WISH}"));
    let allocating = answer.json();
    assert_eq!(
        (&allocating["state"], &allocating["node_uuid"]),
        (&"allocating".into(), &None::<()>.into())
    );

    for path in [
        format!("/v1/allocations/{WISH}"),
        "/v1/allocations/job-1".to_owned(),
        "/v1/nodes/n1/allocation".to_owned(),
    ] {
        api.get(&path).await.has(200).is(ACTIVE);
    }
    let shown = api.get("/v1/nodes/n1").await.has(200).json();
    assert_eq!(shown["allocation_uuid"], WISH);
    assert_eq!(shown["instance_uuid"], WISH);
    assert_eq!(shown["instance_info"], serde_json::json!({"traits": ["CUSTOM_FAST"]}));
}

#[tokio::test]
async fn allocations_are_listed_and_filtered() {
    let api = reserved().await;
    // Both are created at the same time of the test's clock, so the list is sorted by their ids.
    let other = r#"{"uuid": "1d4b7a5e-7c1a-4c39-9d0c-2f6a0a1b2c3d", "resource_class": "none", "name": "job-2"}"#;
    api.send("POST", "/v1/allocations", NEWEST, other).await.has(201);
    let failed = api.get("/v1/allocations/job-2").await.has(200).json();
    assert_eq!((&failed["state"], &failed["node_uuid"]), (&"error".into(), &None::<()>.into()));
    assert_eq!(
        failed["last_error"],
        format!(
            "Failed to process allocation {}: no available nodes match the resource class none.",
            failed["uuid"].as_str().unwrap()
        )
    );
    let both = r#"[{"name": "job-1"}, {"name": "job-2"}]"#;
    let first = r#"[{"name": "job-1"}]"#;
    let second = r#"[{"name": "job-2"}]"#;
    for (query, want) in [
        ("", both),
        ("node=n1&", first),
        ("state=active&", first),
        ("state=error&", second),
        ("resource_class=none&", second),
        ("owner=nobody&", "[]"),
        ("sort_key=name&sort_dir=asc&", both),
    ] {
        let found = api.get(&format!("/v1/allocations?{query}fields=name")).await.has(200).json();
        let names = found["allocations"].as_array().unwrap().iter();
        let names: Vec<_> = names.map(|it| serde_json::json!({"name": it["name"]})).collect();
        assert_eq!(serde_json::json!(names).to_string().replace(' ', ""), want.replace(' ', ""));
    }
    let page = api.get("/v1/allocations?limit=1&fields=uuid").await.has(200).json();
    assert_eq!(
        page["next"],
        format!(
            "http://api:6385/v1/allocations?sort_key=id&sort_dir=asc&fields=uuid&limit=1&marker={WISH}"
        )
    );
    let none = api.get("/v1/allocations?state=zz").await.has(200).json();
    assert_eq!(none, serde_json::json!({"allocations": []}));
    api.get("/v1/allocations?node=zz").await.refuses(400, "node: Node zz could not be found.");
}

#[tokio::test]
async fn each_version_has_the_features_it_introduced() {
    let api = reserved().await;
    let path = format!("/v1/allocations/{WISH}");
    let older = api.send("GET", &path, "1.59", "").await.has(200).json();
    assert!(older.get("owner").is_none());
    for path in ["/v1/allocations", &path, "/v1/nodes/n1/allocation"] {
        api.send("GET", path, "1.51", "").await.has(404);
    }
    api.send("POST", "/v1/allocations", "1.51", &body("")).await.has(405);
    api.send("DELETE", &path, "1.51", "").await.has(405);
    let patch = r#"[{"op": "replace", "path": "/name", "value": "other"}]"#;
    api.send("PATCH", &path, "1.56", patch).await.has(405);
    let owner = body(r#", "owner": "physics""#);
    api.send("POST", "/v1/allocations", "1.59", &owner).await.has(406);
    let node = body(r#", "node": "n1""#);
    api.send("POST", "/v1/allocations", "1.57", &node).await.has(400);
    api.send("GET", "/v1/allocations?owner=x", "1.59", "").await.has(406);
    api.send("GET", "/v1/allocations?fields=owner", "1.59", "").await.has(400);
}

#[tokio::test]
async fn a_name_and_notes_can_be_changed_and_nothing_else() {
    let api = reserved().await;
    let path = format!("/v1/allocations/{WISH}");
    let patch = r#"[{"op": "replace", "path": "/name", "value": "job-9"},
                    {"op": "add", "path": "/extra/a", "value": 2}]"#;
    let changed = api.send("PATCH", &path, "1.57", patch).await.has(200).json();
    assert_eq!(changed["name"], "job-9");
    assert_eq!(changed["extra"], serde_json::json!({"a": 2}));
    assert_eq!(changed["updated_at"], "2026-01-02T03:04:05.000006+00:00");
    for field in ["resource_class", "traits", "state", "node_uuid", "owner", "uuid"] {
        let patch = format!(r#"[{{"op": "replace", "path": "/{field}", "value": null}}]"#);
        let refused = api.send("PATCH", &path, NEWEST, &patch).await;
        refused.refuses(400, &format!("{field}: cannot be changed"));
    }
}

#[tokio::test]
async fn a_mistake_in_an_allocation_request_is_named() {
    let api = with_free_node().await;
    let required = "resource_class: is required, unless the allocation is for a node in use";
    for (body, status, words) in [
        ("{}", 400, required),
        (r#"{"resource_class": "gpu", "zz": 1}"#, 400, "zz: unknown field of an allocation"),
        (
            r#"{"resource_class": "gpu", "state": "active"}"#,
            400,
            "state: cannot be set when an allocation is created",
        ),
        (
            r#"{"resource_class": "gpu", "traits": "x"}"#,
            400,
            "traits: must be a list, not a string",
        ),
        (
            r#"{"resource_class": "gpu", "candidate_nodes": ["zz"]}"#,
            400,
            "candidate_nodes: Node zz could not be found.",
        ),
        (r#"{"node": "zz"}"#, 400, "node: Node zz could not be found."),
        (
            r#"{"node": "n1"}"#,
            409,
            "node: node \"n1\" is in state \"available\" but must be active",
        ),
    ] {
        api.send("POST", "/v1/allocations", NEWEST, body).await.refuses(status, words);
    }
    api.get("/v1/allocations").await.has(200).is(r#"{"allocations": []}"#);
    api.get("/v1/nodes/n1/allocation").await.refuses(404, "Allocation for node n1 was not found");
    api.get("/v1/allocations/zz").await.refuses(404, "Allocation zz could not be found.");
}

#[tokio::test]
async fn a_deleted_allocation_frees_its_node() {
    for path in [format!("/v1/allocations/{WISH}"), format!("/v1/nodes/{ID}/allocation")] {
        let api = reserved().await;
        api.edit(|node| node.provision_state = State::Active).await;
        let words = "the allocation of node \"n1\" cannot be removed while it is in state \"active\": \
                     undeploy the node, or put it into maintenance";
        api.send("DELETE", &path, NEWEST, "").await.refuses(409, words);
        api.edit(|node| node.provision_state = State::Available).await;
        api.send("DELETE", &path, NEWEST, "").await.has(204);
        api.send("DELETE", &path, NEWEST, "").await.has(404);
        let shown = api.get("/v1/nodes/n1").await.json();
        assert!(shown["instance_uuid"].is_null() && shown["allocation_uuid"].is_null());
        api.send("POST", "/v1/allocations", NEWEST, &body("")).await.has(201);
        assert_eq!(api.get("/v1/nodes/n1").await.json()["allocation_uuid"], WISH);
    }
}

#[tokio::test]
async fn the_owner_of_an_allocation_keeps_the_node() {
    let api = with_free_node().await;
    let take = r#"[{"op": "add", "path": "/owner", "value": "a"}]"#;
    api.send("PATCH", "/v1/nodes/n1", NEWEST, take).await.has(200);
    let own = body(r#", "name": "job-1", "owner": "a""#);
    api.send("POST", "/v1/allocations", NEWEST, &own).await.has(201);
    let give = r#"[{"op": "add", "path": "/owner", "value": "b"}]"#;
    let refused = api.send("PATCH", "/v1/nodes/n1", NEWEST, give).await;
    refused.refuses(409, "owner: node n1 is allocated to a project");
    api.send("DELETE", "/v1/allocations/job-1", NEWEST, "").await.has(204);
    api.send("PATCH", "/v1/nodes/n1", NEWEST, give).await.has(200);
}

#[tokio::test]
async fn a_node_that_loses_its_instance_loses_its_allocation() {
    let api = reserved().await;
    let patch = r#"[{"op": "remove", "path": "/instance_uuid"}]"#;
    api.edit(|node| node.provision_state = State::Active).await;
    api.send("PATCH", "/v1/nodes/n1", NEWEST, patch).await.has(409);
    api.edit(|node| node.provision_state = State::Available).await;
    let shown = api.send("PATCH", "/v1/nodes/n1", NEWEST, patch).await.has(200).json();
    assert!(shown["allocation_uuid"].is_null());
    api.get("/v1/allocations").await.has(200).is(r#"{"allocations": []}"#);
}

#[tokio::test]
async fn an_allocation_can_be_recorded_for_a_node_in_use() {
    let api = with_free_node().await;
    let active = |node: &mut Node| {
        node.provision_state = State::Active;
        node.instance_uuid = Some(WISH.parse().unwrap());
    };
    api.edit(active).await;
    let shown = api.send("POST", "/v1/allocations", "1.58", r#"{"node": "n1"}"#).await;
    let shown = shown.has(201).json();
    assert_eq!((&shown["uuid"], &shown["state"]), (&WISH.into(), &"active".into()));
    assert_eq!((&shown["node_uuid"], &shown["resource_class"]), (&ID.into(), &"gpu".into()));
    let why = "expected a UUID or a name, and received \"a b\"";
    api.get("/v1/allocations/a%20b").await.refuses(400, why);
    let words = format!("node: node \"n1\" is used by instance {WISH}");
    api.send("POST", "/v1/allocations", NEWEST, r#"{"node": "n1"}"#).await.refuses(409, &words);
}

#[tokio::test]
async fn allocations_are_limited_for_each_project_separately() {
    let api = Api::start().await;
    for (name, owner) in [("n1", "ann"), ("n2", "ann"), ("n3", "ann"), ("n4", "bob")] {
        let body = format!(
            r#"{{"driver": "fake-hardware", "name": "{name}", "resource_class": "gpu", "owner": "{owner}"}}"#
        );
        api.send("POST", "/v1/nodes", NEWEST, &body).await.has(201);
        let ident = name.parse().unwrap();
        let mut node = api.store.find_node(&ident).await.unwrap().unwrap();
        node.provision_state = State::Available;
        node.power_state = Some(PowerState::Off);
        api.store.update_node(&node, &[]).await.unwrap();
    }
    let ask = async |kind: &str, owner: &str| {
        let body = format!(r#"{{"resource_class": "{kind}", "owner": "{owner}"}}"#);
        api.send("POST", "/v1/allocations", NEWEST, &body).await
    };
    // The allocation that the answer names, once its node is chosen.
    let given = async |kind: &str, owner: &str| {
        let asked = ask(kind, owner).await.has(201).json();
        api.get(&format!("/v1/allocations/{}", asked["uuid"].as_str().unwrap())).await.json()
    };
    for _ in 0..5 {
        ask("none", "ann").await.has(201);
    }
    let first = given("gpu", "ann").await;
    assert_eq!(first["state"], "active", "those that came to nothing are not counted");
    ask("gpu", "ann").await.has(201);
    let why = "allocations: the project uses 2 of its limit of 2";
    ask("gpu", "ann").await.refuses(403, why);
    ask("none", "ann").await.refuses(403, why);
    let living = api.get("/v1/allocations?state=active&owner=ann").await.json();
    assert_eq!(living["allocations"].as_array().unwrap().len(), 2, "nothing was changed");
    assert_eq!(given("gpu", "bob").await["state"], "active");
    let path = format!("/v1/allocations/{}", first["uuid"].as_str().unwrap());
    api.send("DELETE", &path, NEWEST, "").await.has(204);
    assert_eq!(given("gpu", "ann").await["state"], "active");
}
