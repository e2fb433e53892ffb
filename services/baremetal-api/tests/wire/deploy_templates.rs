//! Wire tests of deploy templates, and of the deploy steps that a deployment gets.

use baremetal_core::{DeployStep, DeployTemplate, Node, State, WantedSteps};
use serde_json::{Value, json};

use crate::api::{Answer, Api, ID, NEWEST};

const TEMPLATE: &str = "6c2f2f0e-6a4b-4b0a-9a55-2f7a8e0c1d33";

/// An API with a template for instances with the trait `CUSTOM_RAID`.
async fn with_template() -> Api {
    let api = Api::start().await;
    let steps = json!([
        {"interface": "raid", "step": "create", "args": {"password": "s3cret", "level": 1}, "priority": "90"},
        {"interface": "bios", "step": "apply", "args": {}, "priority": 85},
    ]);
    let body = json!({"uuid": TEMPLATE, "name": "CUSTOM_RAID", "steps": steps});
    api.send("POST", "/v1/deploy_templates", NEWEST, &body.to_string()).await.has(201);
    api
}

async fn patch(api: &Api, patch: &Value) -> Answer {
    api.send("PATCH", "/v1/deploy_templates/CUSTOM_RAID", NEWEST, &patch.to_string()).await
}

async fn stored_password(api: &Api) -> Value {
    let found =
        api.store.find_resource_by_name::<DeployTemplate>("CUSTOM_RAID").await.unwrap().unwrap();
    let template = api.store.secrets().with_template(&found).unwrap();
    template.steps[0].step.args["password"].clone()
}

/// The steps of the deployment that has begun, as `interface.step priority`.
async fn deployment(api: &Api) -> Vec<String> {
    let node = api.store.find_node(&ID.parse().unwrap()).await.unwrap().unwrap();
    let node = api.store.secrets().with_steps(&node).unwrap();
    let WantedSteps::Deployment(steps) = node.work.unwrap().steps else { panic!("not deploying") };
    let shown = |DeployStep { step, priority }| {
        format!("{} {priority} {}", step.name, Value::from(step.args))
    };
    steps.into_iter().map(shown).collect()
}

#[tokio::test]
async fn a_template_is_shown_with_masked_secrets() {
    let api = with_template().await;
    let at = "2026-01-02T03:04:05.000006+00:00";
    let links = json!([
        {"href": format!("http://api:6385/v1/deploy_templates/{TEMPLATE}"), "rel": "self"},
        {"href": format!("http://api:6385/deploy_templates/{TEMPLATE}"), "rel": "bookmark"},
    ]);
    let shown = json!({
        "uuid": TEMPLATE, "name": "CUSTOM_RAID", "description": null, "extra": {},
        "steps": [
            {"interface": "raid", "step": "create", "args": {"password": "******", "level": 1}, "priority": 90},
            {"interface": "bios", "step": "apply", "args": {}, "priority": 85},
        ],
        "created_at": at, "updated_at": null, "links": links,
    });
    for ident in [TEMPLATE, "CUSTOM_RAID"] {
        let answer = api.get(&format!("/v1/deploy_templates/{ident}")).await.has(200);
        answer.is(&shown.to_string());
    }
    let brief = json!({"uuid": TEMPLATE, "name": "CUSTOM_RAID", "links": links});
    let listed = json!({"deploy_templates": [brief]});
    api.get("/v1/deploy_templates").await.has(200).is(&listed.to_string());
    assert_eq!(stored_password(&api).await, "s3cret");
    api.send("DELETE", "/v1/deploy_templates/CUSTOM_RAID", NEWEST, "").await.has(204);
    api.get(&format!("/v1/deploy_templates/{TEMPLATE}")).await.has(404);
}

#[tokio::test]
async fn a_patch_changes_one_step_and_keeps_masked_secrets() {
    let api = with_template().await;
    let changed =
        patch(&api, &json!([{"op": "replace", "path": "/steps/1/priority", "value": 5}])).await;
    assert_eq!(changed.has(200).json()["steps"][1]["priority"], 5);
    assert_eq!(stored_password(&api).await, "s3cret");

    let args = json!({"password": "******", "level": 5});
    let steps = json!([{"interface": "raid", "step": "create", "args": args, "priority": 70}]);
    let whole = json!([{"op": "replace", "path": "/steps", "value": steps}]);
    let changed = patch(&api, &whole).await.has(200).json();
    assert_eq!(changed["steps"], steps);
    assert_eq!(stored_password(&api).await, "s3cret");

    let steps = json!([{"interface": "raid", "step": "other", "args": args, "priority": 70}]);
    let whole = json!([{"op": "replace", "path": "/steps", "value": steps}]);
    let why = "steps[0].args.password: is the mask ******, but no secret is stored: send the secret itself";
    patch(&api, &whole).await.refuses(400, why);
}

#[tokio::test]
async fn a_patch_keeps_unchanged_steps_in_front_of_sorted_new_ones() {
    let api = with_template().await;
    let names = |shown: Value| -> Vec<String> {
        let steps = shown["steps"].as_array().unwrap().iter();
        steps.map(|step| step["step"].as_str().unwrap().to_owned()).collect()
    };
    let priority = json!([{"op": "replace", "path": "/steps/0/priority", "value": 70}]);
    let changed = patch(&api, &priority).await.has(200).json();
    assert_eq!(names(changed), ["apply", "create"]);
    assert_eq!(
        names(api.get("/v1/deploy_templates/CUSTOM_RAID").await.json()),
        ["apply", "create"]
    );
    let new = |interface: &str, step: &str| {
        let step = json!({"interface": interface, "step": step, "args": {}, "priority": 1});
        json!({"op": "add", "path": "/steps/0", "value": step})
    };
    let more = json!([new("bios", "reset"), new("raid", "erase")]);
    let changed = patch(&api, &more).await.has(200).json();
    assert_eq!(names(changed), ["apply", "create", "reset", "erase"]);
}

#[tokio::test]
async fn a_malformed_template_is_refused_by_the_field() {
    let api = with_template().await;
    let step = |more: Value| {
        let mut step = json!({"interface": "bios", "step": "apply", "args": {}, "priority": 1});
        step.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        step
    };
    let plain = step(json!({}));
    for (name, steps, problem) in [
        ("CUSTOM_NEW", json!([]), "steps: at least one step is required"),
        ("CUSTOM_NEW", json!({}), "steps: "),
        ("not-a-trait", json!([plain]), "name: \"not-a-trait\" is not a valid trait"),
        (
            "CUSTOM_NEW",
            json!([step(json!({"interface": "boot"}))]),
            "steps[0]: unknown variant `boot`",
        ),
        ("CUSTOM_NEW", json!([step(json!({"priority": -1}))]), "steps[0]: "),
        (
            "CUSTOM_NEW",
            json!([step(json!({"priority": "x"}))]),
            "steps[0].priority: must be a whole number",
        ),
        ("CUSTOM_NEW", json!([step(json!({"color": "red"}))]), "steps[0]: unknown field `color`"),
        (
            "CUSTOM_NEW",
            json!([plain, step(json!({"priority": 2}))]),
            "steps: the step bios.apply is requested twice",
        ),
    ] {
        let body = json!({"name": name, "steps": steps}).to_string();
        let refused = api.send("POST", "/v1/deploy_templates", NEWEST, &body).await.has(400);
        let text = refused.text.replace(r#"\\\""#, "\"");
        assert!(text.contains(problem), "{text}");
    }
    let body = json!({"name": "CUSTOM_RAID", "steps": [plain]}).to_string();
    api.send("POST", "/v1/deploy_templates", NEWEST, &body).await.has(409);
}

/// Makes the node available again.
fn free(node: &mut Node) {
    node.provision_state = State::Available;
    node.work = None;
}

#[tokio::test]
async fn a_deployment_has_the_requested_steps_and_those_of_the_traits() {
    let api = with_template().await;
    api.enroll("").await;
    let path = format!("/v1/nodes/{ID}/states/provision");
    let deploy = async |version: &str, steps: Value| {
        let body = json!({"target": "active", "deploy_steps": steps}).to_string();
        api.send("PUT", &path, version, &body).await
    };
    let bios = json!([{"interface": "bios", "step": "apply", "args": {"a": 1}, "priority": 60}]);
    api.edit(free).await;
    deploy("1.68", bios.clone()).await.has(406);
    deploy(NEWEST, bios.clone()).await.has(202);
    assert_eq!(deployment(&api).await, [r#"bios.apply 60 {"a":1}"#]);

    api.edit(|node| {
        free(node);
        node.instance_info.insert("traits".to_owned(), json!(["CUSTOM_RAID", "CUSTOM_NONE"]));
    })
    .await;
    deploy(NEWEST, bios.clone()).await.has(202);
    let raid = r#"raid.create 90 {"level":1,"password":"s3cret"}"#;
    assert_eq!(deployment(&api).await, [r#"bios.apply 60 {"a":1}"#, raid]);

    let other = json!({"name": "CUSTOM_NONE", "steps": [{"interface": "raid", "step": "create", "args": {}, "priority": 1}]});
    api.send("POST", "/v1/deploy_templates", NEWEST, &other.to_string()).await.has(201);
    api.edit(free).await;
    let why = "instance_info.traits: the deploy templates CUSTOM_NONE and CUSTOM_RAID both have the step raid.create";
    deploy(NEWEST, bios).await.refuses(400, why);
}
