//! Wire tests of inspection rules.

use baremetal_core::InspectionRule;
use serde_json::{Value, json};

use crate::api::{Answer, Api, NEWEST};

const RULE: &str = "5f0c3a52-1c7e-4a8e-8f55-0a1d1be0c001";
const SECRET: &str = "5f0c3a52-1c7e-4a8e-8f55-0a1d1be0c002";
const ALL: &str = "/v1/inspection_rules";

async fn create(api: &Api, body: &Value) -> Answer {
    api.send("POST", ALL, NEWEST, &body.to_string()).await
}

async fn patch(api: &Api, id: &str, patch: &Value) -> Answer {
    api.send("PATCH", &format!("{ALL}/{id}"), NEWEST, &patch.to_string()).await
}

/// An API with an open and a sensitive rule.
async fn with_rules() -> Api {
    let api = Api::start().await;
    let open = json!({
        "uuid": RULE, "description": "small", "priority": 10,
        "conditions": [{"op": "!is-empty", "args": {"value": "{item}"}, "loop": ["a"]}],
        "actions": [
            {"op": "add-trait", "args": {"name": "CUSTOM_SMALL"}},
            {"op": "set-attribute", "args": {"path": "extra", "value": {"a_token": "s3cret"}}},
        ],
    });
    create(&api, &open).await.has(201);
    let secret = json!({
        "uuid": SECRET, "sensitive": true,
        "actions": [{"op": "set-attribute", "args": ["driver_info/ipmi_password", "s3cret"]}],
    });
    create(&api, &secret).await.has(201);
    api
}

async fn stored(api: &Api, id: &str) -> InspectionRule {
    let found = api.store.find_resource(id.parse().unwrap()).await.unwrap().unwrap();
    api.store.secrets().with_rule(&found).unwrap().content
}

#[tokio::test]
async fn a_rule_is_shown_and_a_sensitive_rule_is_hidden() {
    let api = with_rules().await;
    let links = |id: &str| {
        json!([
            {"href": format!("http://api:6385/v1/inspection/{id}"), "rel": "self"},
            {"href": format!("http://api:6385/inspection/{id}"), "rel": "bookmark"},
        ])
    };
    let at = "2026-01-02T03:04:05.000006+00:00";
    let shown = json!({
        "uuid": RULE, "description": "small", "priority": 10, "phase": "main", "sensitive": false,
        "conditions": [{"op": "!is-empty", "args": {"value": "{item}"}, "loop": ["a"], "multiple": "any"}],
        "actions": [
            {"op": "add-trait", "args": {"name": "CUSTOM_SMALL"}},
            {"op": "set-attribute", "args": {"path": "extra", "value": {"a_token": "******"}}},
        ],
        "created_at": at, "updated_at": null, "links": links(RULE),
    });
    api.get(&format!("{ALL}/{RULE}")).await.has(200).is(&shown.to_string());
    let hidden = api.get(&format!("{ALL}/{SECRET}")).await.has(200).json();
    assert_eq!((&hidden["conditions"], &hidden["actions"]), (&Value::Null, &Value::Null));
    let brief = json!({"inspection_rules": [
        {"uuid": SECRET, "description": null, "priority": 0, "phase": "main", "links": links(SECRET)},
        {"uuid": RULE, "description": "small", "priority": 10, "phase": "main", "links": links(RULE)},
    ]});
    api.get(&format!("{ALL}?sort_key=priority")).await.has(200).is(&brief.to_string());
    api.send("GET", ALL, "1.95", "").await.has(404);
    let one = format!("{ALL}/{RULE}");
    for (method, path) in [("POST", ALL), ("DELETE", ALL), ("PATCH", &one), ("DELETE", &one)] {
        api.send(method, path, "1.95", "[]").await.has(405);
    }
}

#[tokio::test]
async fn a_list_is_sorted_and_paged() {
    let api = with_rules().await;
    let ids = async |query: &str| {
        let list = api.get(&format!("{ALL}?{query}")).await.has(200).json();
        let rules = list["inspection_rules"].as_array().unwrap().clone();
        rules.iter().map(|it| it["uuid"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ids("sort_key=priority&sort_dir=desc").await, [RULE, SECRET]);
    assert_eq!(ids("sort_key=uuid&limit=1").await, [RULE]);
    assert_eq!(ids(&format!("sort_key=uuid&marker={RULE}")).await, [SECRET]);
    assert_eq!(ids(&format!("sort_key=uuid&marker={SECRET}")).await, [""; 0]);
    let next = api.get(&format!("{ALL}?sort_key=uuid&limit=1")).await.json()["next"].clone();
    assert_eq!(
        next,
        format!(
            "http://api:6385{ALL}?sort_key=uuid&sort_dir=asc&fields=uuid,description,priority,phase&limit=1&marker={RULE}"
        )
    );
    api.get(&format!("{ALL}?sort_key=actions")).await.has(400);
    api.get(&format!("{ALL}?marker=aaaaaaaa-0000-4000-8000-000000000000")).await.has(404);
}

#[tokio::test]
async fn a_patch_changes_a_part_of_a_sealed_rule() {
    let api = with_rules().await;
    let sealed = api.store.find_resource::<InspectionRule>(SECRET.parse().unwrap()).await.unwrap();
    assert!(sealed.unwrap().content.sealed.is_some());
    let other = json!([{"op": "replace", "path": "/actions/0/args/1", "value": "other"}]);
    patch(&api, SECRET, &other).await.has(200);
    assert_eq!(stored(&api, SECRET).await.actions[0].args[1], "other");

    let more = json!([{"op": "add", "path": "/actions/-", "value": {"op": "log", "args": ["x"]}}]);
    patch(&api, RULE, &more).await.has(200);
    let rule = stored(&api, RULE).await;
    assert_eq!(rule.actions[1].args["value"]["a_token"], "s3cret");
    assert_eq!(rule.actions.len(), 3);

    let open = json!([{"op": "replace", "path": "/sensitive", "value": false}]);
    patch(&api, SECRET, &open).await.refuses(400, "sensitive: a sensitive rule stays sensitive");
    patch(&api, RULE, &json!([{"op": "remove", "path": "/actions"}])).await.has(400);
}

#[tokio::test]
async fn a_malformed_rule_is_refused_by_the_field() {
    let api = with_rules().await;
    let with = |more: Value| {
        let mut body = json!({"actions": [{"op": "fail", "args": {"msg": "a"}}]});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    for (body, problem) in [
        (json!({}), "actions: is required"),
        (with(json!({"actions": []})), "actions: at least one action is required"),
        (with(json!({"conditions": null})), "conditions: must be a list, not null"),
        (with(json!({"priority": 10000})), "priority: must be 0 to 9999"),
        (with(json!({"phase": "early"})), "phase: the only phase is main"),
        (with(json!({"actions": [{"op": "api-call", "args": {}}]})), "api-call"),
        (with(json!({"conditions": [{"op": "ne", "args": {}}]})), "conditions[0]: the operator"),
        (
            with(json!({"actions": [{"op": "fail", "args": {}}]})),
            "actions[0]: args.msg: is required",
        ),
    ] {
        let refused = create(&api, &body).await.has(400);
        assert!(refused.text.contains(problem), "{}", refused.text);
    }
    create(&api, &with(json!({"uuid": RULE}))).await.has(409);
}

#[tokio::test]
async fn one_rule_or_all_are_deleted() {
    let api = with_rules().await;
    api.send("DELETE", &format!("{ALL}/{RULE}"), NEWEST, "").await.has(204);
    api.get(&format!("{ALL}/{RULE}")).await.has(404);
    api.send("DELETE", ALL, NEWEST, "").await.has(204);
    api.get(ALL).await.has(200).is(r#"{"inspection_rules": []}"#);
}
