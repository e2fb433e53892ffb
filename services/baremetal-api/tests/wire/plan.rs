//! Wire tests of plans.

use std::collections::BTreeMap;

use baremetal_core::{
    Interface, ListedSteps, OfferedStep, State, StepArgument, StepKind, StepName, StepRunner,
};
use serde_json::{Value, json};

use crate::api::{Answer, Api, ID, NEWEST};

/// An API with a manageable node, whose machine boots the ramdisk.
async fn with_node() -> Api {
    let api = Api::start().await;
    let body = json!({
        "uuid": ID, "driver": "redfish", "name": "n1", "bios_interface": "no-bios", "raid_interface": "agent",
        "management_interface": "noop", "firmware_interface": "no-firmware",
        "driver_info": {"redfish_address": "https://192.0.2.9"},
    });
    api.send("POST", "/v1/nodes", NEWEST, &body.to_string()).await.has(201);
    api.edit(|node| node.provision_state = State::Manageable).await;
    api
}

/// Records that the agent listed these two clean steps.
async fn list_steps(api: &Api) {
    let step = |interface, step: &str, priority, args| OfferedStep {
        runner: StepRunner::Agent,
        name: StepName { interface, step: step.to_owned() },
        priority,
        args,
        reboots: false,
        needs_ramdisk: true,
    };
    let password = StepArgument { description: "the key".to_owned(), is_required: true };
    let steps = vec![
        step(Interface::Deploy, "erase_devices_metadata", 99, BTreeMap::new()),
        step(Interface::Raid, "create", 0, [("password".to_owned(), password)].into()),
    ];
    let listed_at = "2026-01-02T03:04:05Z".parse().unwrap();
    let list = ListedSteps { kind: StepKind::Clean, listed_at, steps };
    api.store.keep_listed_steps(ID.parse().unwrap(), &list).await.unwrap();
}

async fn plan(api: &Api, query: &str) -> Answer {
    api.get(&format!("/bedplate/v1/nodes/n1/plan{query}")).await
}

fn tasks(plan: &Value) -> Vec<&str> {
    plan["tasks"].as_array().unwrap().iter().map(|task| task["what"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_plan_has_steps_once_the_agent_has_listed_them() {
    let api = with_node().await;
    let before = plan(&api, "?target=provide").await.has(200).json();
    let boot = [
        "switching the machine off",
        "making the ramdisk the next boot",
        "switching the machine on",
        "waiting for the agent",
        "listing the clean steps",
    ];
    let end =
        ["flushing caches to disk", "switching the machine off", "making the disk the next boot"];
    assert_eq!(tasks(&before), [&boot[..], &end[..]].concat());
    assert_eq!(before["offered"], json!({"listed_at": null, "complete": false, "steps": []}));

    list_steps(&api).await;
    let after = plan(&api, "?target=provide").await.has(200).json();
    let erase = ["running the clean step deploy.erase_devices_metadata"];
    assert_eq!(tasks(&after), [&boot[..], &erase[..], &end[..]].concat());
    let step = json!({
        "interface": "deploy", "step": "erase_devices_metadata", "priority": 99, "args": {},
        "runner": "agent", "reboots": false,
    });
    assert_eq!(after["tasks"][5], json!({"what": erase[0], "state": "planned", "step": step}));
    let password = json!([{"name": "password", "description": "the key", "required": true}]);
    let offered = json!({
        "listed_at": "2026-01-02T03:04:05.000000+00:00", "complete": true,
        "steps": [
            {"interface": "deploy", "step": "erase_devices_metadata", "priority": 99, "args": [],
             "runner": "agent", "reboots": false},
            {"interface": "raid", "step": "create", "priority": 0, "args": password,
             "runner": "agent", "reboots": false},
        ],
    });
    assert_eq!(after["offered"], offered);
    for (name, want) in
        [("target", json!("provide")), ("problem", Value::Null), ("drains", Value::Null)]
    {
        assert_eq!(after[name], want, "{name}");
    }
}

#[tokio::test]
async fn the_plan_of_a_runbook_masks_secrets_and_names_the_step_that_is_missing() {
    let api = with_node().await;
    list_steps(&api).await;
    for (name, step, args) in [
        ("CUSTOM_RAID", "create", json!({"password": "s3cret"})),
        ("CUSTOM_OTHER", "delete", json!({})),
    ] {
        let steps = json!([{"interface": "raid", "step": step, "args": args, "order": 1}]);
        let body = json!({"name": name, "steps": steps}).to_string();
        api.send("POST", "/v1/runbooks", NEWEST, &body).await.has(201);
        let approval = format!("/v1/runbooks/{name}/traits/CUSTOM_OK");
        api.send("PUT", &approval, NEWEST, "").await.has(204);
    }
    api.send("PUT", "/v1/nodes/n1/traits/CUSTOM_OK", NEWEST, "").await.has(204);
    let shown = plan(&api, "?target=clean&runbook=CUSTOM_RAID").await.has(200).json();
    assert_eq!(shown["tasks"][5]["step"]["args"], json!({"password": "******"}));
    assert!(!shown.to_string().contains("s3cret"));

    let refused = plan(&api, "?target=clean&runbook=CUSTOM_OTHER").await.has(200).json();
    assert_eq!(refused["problem"], "the machine does not offer the step raid.delete");
    assert_eq!(tasks(&refused).last(), Some(&"listing the clean steps"));

    let steps = json!([{"interface": "raid", "step": "create", "args": {"password": "t0ken"}}]);
    let body = json!({"target": "clean", "clean_steps": steps}).to_string();
    api.send("PUT", "/v1/nodes/n1/states/provision", NEWEST, &body).await.has(202);
    let running = plan(&api, "").await.has(200).json();
    assert_eq!((&running["target"], &running["offered"]), (&Value::Null, &Value::Null));
    let states: Vec<_> =
        running["tasks"].as_array().unwrap().iter().map(|it| &it["state"]).collect();
    assert_eq!(states[..3], ["current", "planned", "planned"]);
}

#[tokio::test]
async fn a_request_that_the_node_would_refuse_has_no_plan() {
    let api = with_node().await;
    for (query, status, why) in [
        ("", 400, "target: is required, because the node has no work in progress"),
        ("?target=fly", 400, "unknown variant `fly`"),
        ("?target=abort", 400, "target: has no plan of its own"),
        ("?target=provide&runbook=x", 400, "runbook: goes only with the targets clean and service"),
        ("?target=clean&runbook=x", 404, "x"),
        ("?runbook=x", 400, "runbook: goes only with a target"),
        ("?target=provide&x=1", 400, "x"),
        ("?target=active", 400, "image_source"),
        ("?target=rescue", 400, "manageable"),
    ] {
        let answer = plan(&api, query).await.has(status);
        assert!(answer.text.contains(why), "{query}: {}", answer.text);
    }
    api.get("/bedplate/v1/nodes/other/plan?target=provide").await.has(404);
}
