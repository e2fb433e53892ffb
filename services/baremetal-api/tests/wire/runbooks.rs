//! Wire tests of runbooks, and of the clean steps that a node gets from one.

use baremetal_core::{Runbook, State, WantedSteps};
use serde_json::{Value, json};

use crate::api::{Answer, Api, ID, NEWEST};

const RUNBOOK: &str = "6c2f2f0e-6a4b-4b0a-9a55-2f7a8e0c1d44";

fn step(step: &str, order: u32) -> Value {
    json!({"interface": "deploy", "step": step, "order": order})
}

/// An API with a runbook whose second step runs first.
async fn with_runbook() -> Api {
    let api = Api::start().await;
    let steps = json!([
        {"interface": "raid", "step": "create", "args": {"password": "s3cret", "level": 1}, "order": "9"},
        step("erase_devices", 1),
    ]);
    let body = json!({"uuid": RUNBOOK, "name": "CUSTOM_RAID", "steps": steps});
    let made = api.send("POST", "/v1/runbooks", "1.92", &body.to_string()).await.has(201);
    assert_eq!(made.headers["location"], format!("http://api:6385/v1/runbooks/{RUNBOOK}"));
    api
}

async fn patch(api: &Api, patch: &Value) -> Answer {
    api.send("PATCH", "/v1/runbooks/CUSTOM_RAID", NEWEST, &patch.to_string()).await
}

fn replace(path: &str, value: Value) -> Value {
    json!([{"op": "replace", "path": path, "value": value}])
}

async fn stored_password(api: &Api) -> Value {
    let found = api.store.find_resource_by_name::<Runbook>("CUSTOM_RAID").await.unwrap().unwrap();
    let runbook = api.store.secrets().with_runbook(&found).unwrap();
    runbook.steps[0].step.args["password"].clone()
}

#[tokio::test]
async fn a_runbook_is_shown_with_masked_secrets() {
    let api = with_runbook().await;
    let at = "2026-01-02T03:04:05.000006+00:00";
    let links = json!([
        {"href": format!("http://api:6385/v1/runbooks/{RUNBOOK}"), "rel": "self"},
        {"href": format!("http://api:6385/runbooks/{RUNBOOK}"), "rel": "bookmark"},
    ]);
    let mut shown = json!({
        "uuid": RUNBOOK, "name": "CUSTOM_RAID", "description": null, "traits": [], "extra": {},
        "steps": [
            {"interface": "raid", "step": "create", "args": {"password": "******", "level": 1}, "order": 9},
            {"interface": "deploy", "step": "erase_devices", "args": {}, "order": 1},
        ],
        "disable_ramdisk": false, "public": false, "owner": null,
        "created_at": at, "updated_at": null, "links": links,
    });
    for ident in [RUNBOOK, "CUSTOM_RAID"] {
        let answer = api.get(&format!("/v1/runbooks/{ident}")).await.has(200);
        answer.is(&shown.to_string());
    }
    let brief = json!({"uuid": RUNBOOK, "name": "CUSTOM_RAID", "links": links});
    let listed = json!({"runbooks": [brief]});
    api.get("/v1/runbooks").await.has(200).is(&listed.to_string());
    for field in ["description", "traits"] {
        shown.as_object_mut().unwrap().remove(field);
    }
    let listed = json!({"runbooks": [shown]});
    let answer = api.send("GET", "/v1/runbooks?detail=true", "1.111", "").await.has(200);
    answer.is(&listed.to_string());
    assert_eq!(stored_password(&api).await, "s3cret");
    api.send("DELETE", "/v1/runbooks/CUSTOM_RAID", NEWEST, "").await.has(204);
    api.get(&format!("/v1/runbooks/{RUNBOOK}")).await.has(404);
}

#[tokio::test]
async fn earlier_versions_do_not_know_runbooks_and_their_later_fields() {
    let api = with_runbook().await;
    let one = format!("/v1/runbooks/{RUNBOOK}");
    let asked = async |method: &str, path: &str, version: &str| {
        api.send(method, path, version, "{}").await.status.as_u16()
    };
    assert_eq!(asked("GET", &one, "1.91").await, 404);
    assert_eq!(asked("DELETE", &one, "1.91").await, 405);
    assert_eq!(asked("GET", &format!("{one}/traits"), "1.111").await, 404);
    assert_eq!(asked("DELETE", &format!("{one}/traits"), "1.111").await, 404);
    for field in ["description", "traits"] {
        assert_eq!(asked("GET", &format!("{one}?fields={field}"), "1.111").await, 400);
        assert_eq!(asked("GET", &format!("{one}?fields={field}"), "1.112").await, 200);
    }
    // A name that is no trait came with the traits.
    let body = json!({"name": "wipe", "steps": [step("erase_devices", 1)]}).to_string();
    let refused = api.send("POST", "/v1/runbooks", "1.111", &body).await;
    assert!(refused.has(400).text.contains("name: "));
    api.send("POST", "/v1/runbooks", "1.112", &body).await.has(201);
    let described = replace("/description", json!("d")).to_string();
    api.send("PATCH", &one, "1.111", &described).await.has(400);
    api.send("PATCH", &one, "1.112", &described).await.has(200);
    let renamed = replace("/name", json!("wipe-2")).to_string();
    api.send("PATCH", "/v1/runbooks/wipe", "1.92", &renamed).await.has(200);
}

#[tokio::test]
async fn a_patch_changes_one_step_and_keeps_masked_secrets() {
    let api = with_runbook().await;
    let changed = patch(&api, &replace("/steps/1/order", json!(5))).await;
    assert_eq!(changed.has(200).json()["steps"][1]["order"], 5);
    assert_eq!(stored_password(&api).await, "s3cret");

    let args = json!({"password": "******", "level": 5});
    let steps = json!([{"interface": "raid", "step": "create", "args": args, "order": 70}]);
    let changed = patch(&api, &replace("/steps", steps.clone())).await.has(200).json();
    assert_eq!(changed["steps"], steps);
    assert_eq!(stored_password(&api).await, "s3cret");

    let steps = json!([{"interface": "raid", "step": "other", "args": args, "order": 70}]);
    let why = "steps[0].args.password: is the mask ******, but no secret is stored: send the secret itself";
    patch(&api, &replace("/steps", steps)).await.refuses(400, why);
}

#[tokio::test]
async fn a_public_runbook_has_no_owner() {
    let api = with_runbook().await;
    let owned = patch(&api, &replace("/owner", json!("p"))).await.has(200).json();
    assert_eq!((&owned["owner"], &owned["public"]), (&json!("p"), &json!(false)));
    let public = patch(&api, &replace("/public", json!(true))).await.has(200).json();
    assert_eq!((&public["owner"], &public["public"]), (&json!(null), &json!(true)));
    let why = "owner: a public runbook has no owner: set public to false first";
    patch(&api, &replace("/owner", json!("p"))).await.refuses(400, why);
    let both = json!([
        {"op": "replace", "path": "/owner", "value": "p"},
        {"op": "replace", "path": "/public", "value": false},
    ]);
    let owned = patch(&api, &both).await.has(200).json();
    assert_eq!((&owned["owner"], &owned["public"]), (&json!("p"), &json!(false)));
}

#[tokio::test]
async fn lists_are_sorted_and_narrowed_to_what_the_project_sees() {
    let api = with_runbook().await;
    for (name, public, owner) in [("a", true, json!(null)), ("b", false, json!("p"))] {
        let steps = [step("erase_devices", 1)];
        let body = json!({"name": name, "steps": steps, "public": public, "owner": owner});
        api.send("POST", "/v1/runbooks", NEWEST, &body.to_string()).await.has(201);
    }
    let names = async |query: &str| {
        let listed = api.get(&format!("/v1/runbooks?{query}")).await.has(200).json();
        let names = listed["runbooks"].as_array().unwrap().iter().map(|it| &it["name"]);
        names.map(|name| name.as_str().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names("sort_key=name").await, "CUSTOM_RAID a b");
    assert_eq!(names("sort_key=name&sort_dir=desc").await, "b a CUSTOM_RAID");
    assert_eq!(names("sort_key=owner&sort_dir=desc&limit=1").await, "b");
    assert_eq!(names("sort_key=public&sort_dir=desc&limit=1").await, "a");
    assert_eq!(names("project=false&sort_key=name").await, "CUSTOM_RAID a b");
    assert_eq!(names("project=true").await, "a");
    for query in ["project=maybe", "sort_key=steps", "sort_key=traits", "sort_key=extra"] {
        api.get(&format!("/v1/runbooks?{query}")).await.has(400);
    }
}

#[tokio::test]
async fn traits_are_set_at_their_own_path() {
    let api = with_runbook().await;
    let path = format!("/v1/runbooks/{RUNBOOK}/traits");
    let put =
        async |path: &str, body: Value| api.send("PUT", path, NEWEST, &body.to_string()).await;
    put(&path, json!({"traits": ["CUSTOM_B", "CUSTOM_A"]})).await.has(204);
    let added = put(&format!("{path}/CUSTOM_C"), json!({})).await.has(204);
    assert_eq!(added.headers["location"], format!("http://api:6385{path}/CUSTOM_C"));
    let listed = r#"{"traits": ["CUSTOM_A", "CUSTOM_B", "CUSTOM_C"]}"#;
    api.get("/v1/runbooks/CUSTOM_RAID/traits").await.has(200).is(listed);
    let shown = api.get(&format!("/v1/runbooks/{RUNBOOK}?fields=traits,updated_at")).await.json();
    let traits = json!(["CUSTOM_A", "CUSTOM_B", "CUSTOM_C"]);
    assert_eq!((&shown["traits"], &shown["updated_at"]), (&traits, &Value::Null));
    for wrong in [json!({}), json!({"traits": "CUSTOM_A"}), json!({"traits": ["a"]})] {
        put(&path, wrong).await.has(400);
    }
    put(&format!("{path}/CUSTOM_D"), json!({"traits": ["CUSTOM_E"]})).await.has(400);
    put(&format!("{path}/not-a-trait"), json!({})).await.has(400);
    let many: Vec<String> = (0..51).map(|number| format!("CUSTOM_{number}")).collect();
    put(&path, json!({"traits": many})).await.refuses(400, "traits: a runbook has 50 at most");
    for _ in 0..2 {
        api.send("DELETE", &format!("{path}/CUSTOM_C"), NEWEST, "").await.has(204);
    }
    api.get(&path).await.is(r#"{"traits": ["CUSTOM_A", "CUSTOM_B"]}"#);
    api.send("DELETE", &path, NEWEST, "").await.has(204);
    api.get(&path).await.is(r#"{"traits": []}"#);
    // A runbook is neither created nor changed with traits.
    let body = json!({"name": "n", "steps": [step("a", 1)], "traits": ["CUSTOM_A"]}).to_string();
    api.send("POST", "/v1/runbooks", NEWEST, &body).await.has(400);
    patch(&api, &replace("/traits", json!(["CUSTOM_A"]))).await.has(400);
}

#[tokio::test]
async fn a_malformed_runbook_is_refused_by_the_field() {
    let api = with_runbook().await;
    let with = |more: Value| {
        let mut step = step("apply", 1);
        step.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        step
    };
    let plain = step("apply", 1);
    for (name, steps, problem) in [
        ("new", json!([]), "steps: at least one step is required"),
        ("new", json!({}), "steps: "),
        ("not a name", json!([plain]), "name: \"not a name\" is not a valid name"),
        ("new", json!([with(json!({"interface": "network"}))]), "unknown variant `network`"),
        ("new", json!([with(json!({"order": -1}))]), "steps[0]: "),
        ("new", json!([with(json!({"order": "x"}))]), "steps[0].order: must be a whole number"),
        ("new", json!([with(json!({"priority": 1}))]), "steps[0]: unknown field `priority`"),
        ("new", json!([{"interface": "bios", "step": "a"}]), "steps[0]: missing field `order`"),
        (
            "new",
            json!([plain, step("apply", 2)]),
            "steps: the step deploy.apply is requested twice",
        ),
    ] {
        let body = json!({"name": name, "steps": steps}).to_string();
        let refused = api.send("POST", "/v1/runbooks", NEWEST, &body).await.has(400);
        let text = refused.text.replace(r#"\\\""#, "\"");
        assert!(text.contains(problem), "{text}");
    }
    let body = json!({"name": "CUSTOM_RAID", "steps": [plain]}).to_string();
    api.send("POST", "/v1/runbooks", NEWEST, &body).await.has(409);
}

#[tokio::test]
async fn cleaning_runs_the_steps_of_a_runbook_that_is_approved_for_the_node() {
    let api = with_runbook().await;
    api.enroll("").await;
    api.edit(|node| node.provision_state = State::Manageable).await;
    let path = format!("/v1/nodes/{ID}/states/provision");
    let put =
        async |version: &str, body: Value| api.send("PUT", &path, version, &body.to_string()).await;
    let clean = |runbook: &str| json!({"target": "clean", "runbook": runbook});
    put("1.91", clean("CUSTOM_RAID")).await.has(406);
    put(NEWEST, clean("none")).await.has(404);
    put(NEWEST, json!({"target": "clean", "runbook": 1})).await.has(400);
    let mut both = clean("CUSTOM_RAID");
    both["clean_steps"] = json!([{"interface": "deploy", "step": "erase_devices"}]);
    let why = "runbook: cannot be used together with clean_steps";
    put(NEWEST, both).await.refuses(400, why);
    let why = "runbook: goes only with the targets clean and service";
    put(NEWEST, json!({"target": "provide", "runbook": "CUSTOM_RAID"})).await.refuses(400, why);
    let why = "runbook: the runbook CUSTOM_RAID has no traits: add a trait of the node to the runbook first";
    put(NEWEST, clean("CUSTOM_RAID")).await.refuses(400, why);
    let refused = put("1.111", clean("CUSTOM_RAID")).await.has(400);
    assert!(refused.text.contains("one of CUSTOM_RAID"), "{}", refused.text);

    let add = format!("/v1/runbooks/{RUNBOOK}/traits/CUSTOM_FAST");
    api.send("PUT", &add, NEWEST, "").await.has(204);
    for (version, name, is_quiet) in
        [("1.111", "CUSTOM_RAID", true), (NEWEST, "CUSTOM_FAST", false)]
    {
        put(version, clean(RUNBOOK)).await.has(400);
        api.edit(|node| node.traits = [name.to_owned()].into()).await;
        patch(&api, &replace("/disable_ramdisk", json!(is_quiet))).await.has(200);
        put(version, clean(RUNBOOK)).await.has(202);
        let node = api.store.find_node(&ID.parse().unwrap()).await.unwrap().unwrap();
        assert!(!format!("{:?}", node.work).contains("s3cret"));
        let node = api.store.secrets().with_steps(&node).unwrap();
        let work = node.work.unwrap();
        assert_eq!(work.disables_ramdisk, is_quiet);
        let WantedSteps::Requested(steps) = work.steps else { panic!("no steps") };
        let names: Vec<String> = steps.iter().map(|step| step.name.to_string()).collect();
        assert_eq!(names, ["deploy.erase_devices", "raid.create"]);
        assert_eq!(steps[1].args["password"], "s3cret");
        api.edit(|node| {
            node.provision_state = State::Manageable;
            node.work = None;
            node.traits.clear();
        })
        .await;
    }
}
