//! Wire tests of hypervisor profiles, and of nodes that join a cloud by a profile.

use baremetal_core::{EarlierReport, Hypervisor, JoinLimits, JoinState, State};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::{Api, ID, NEWEST};

const PROFILES: &str = "/bedplate/v1/hypervisor-profiles";

fn profile() -> Value {
    json!({
        "name": "kvm", "kind": "cloud-init",
        "instance_info": {"image_source": "http://i/x", "image_checksum": "a".repeat(64)},
        "settings": {
            "keystone": {"auth_url": "http://k:5000/v3", "username": "nova", "password": "canary-1"},
            "message_bus": {"transport_url": "rabbit://nova:canary-2@bus/"},
            "hugepages": [{"size": "2M", "count": 4}],
        },
        "placement": {"availability_zone": "rack"},
    })
}

#[tokio::test]
async fn a_profile_is_created_shown_without_secrets_changed_and_deleted() {
    let api = Api::start().await;
    api.get(PROFILES).await.has(200).is(r#"{"hypervisor_profiles": []}"#);
    let text = profile().to_string();
    let made = api.send("POST", PROFILES, NEWEST, &text).await.has(201);
    assert!(!made.text.contains("canary"), "{}", made.text);
    made.is(&format!(
        r#"{{
            "name": "kvm", "description": null, "kind": "cloud-init",
            "instance_info": {{"image_source": "http://i/x", "image_checksum": "{}"}},
            "settings": {{
                "keystone": {{
                    "auth_url": "http://k:5000/v3", "username": "nova", "password": "******", "user_domain": "Default",
                    "project": "service", "project_domain": "Default", "region": null
                }},
                "message_bus": {{"transport_url": "******"}},
                "neutron": {{"bridge_mappings": {{}}, "tunnels": false}},
                "compute": {{"virtualization": "kvm", "cpu_mode": null}},
                "storage": "qcow2", "kernel_arguments": [], "hugepages": [{{"size": "2M", "count": 4}}], "iommu": null,
                "passthrough": [], "ssh_keys": [], "base_ignition": null
            }},
            "joining": {{
                "compute_service": "PT20M", "hypervisor": "PT10M", "resource_provider": "PT5M", "placement": "PT5M"
            }},
            "placement": {{"availability_zone": "rack", "aggregate": null}},
            "created_at": "2026-01-02T03:04:05.000006+00:00", "updated_at": null
        }}"#,
        "a".repeat(64)
    ));
    api.send("POST", PROFILES, NEWEST, &text)
        .await
        .refuses(409, r#"name: "kvm" is already in use"#);

    // A mask in place of a secret keeps the stored secret.
    let one = format!("{PROFILES}/kvm");
    let mut changed = api.get(&one).await.has(200).json();
    for field in ["created_at", "updated_at"] {
        changed.as_object_mut().unwrap().remove(field);
    }
    changed["description"] = json!("for trains");
    changed["settings"]["message_bus"]["transport_url"] = json!("rabbit://nova:canary-3@bus/");
    api.send("PUT", &one, NEWEST, &changed.to_string()).await.has(200);
    let row = api.store.find_profile("kvm").await.unwrap().unwrap();
    assert!(!serde_json::to_string(&row.profile).unwrap().contains("canary"));
    let opened = api.store.secrets().with_profile(&row.profile).unwrap();
    assert_eq!(opened.settings.keystone.password.expose(), "canary-1");
    assert_eq!(opened.settings.message_bus.transport_url.expose(), "rabbit://nova:canary-3@bus/");
    let listed = api.get(PROFILES).await.has(200);
    assert!(!listed.text.contains("canary") && listed.text.contains("for trains"));

    changed["name"] = json!("other");
    let refused = api.send("PUT", &one, NEWEST, &changed.to_string()).await;
    refused.refuses(400, "name: cannot be changed");
    api.send("DELETE", &one, NEWEST, "").await.has(204);
    api.get(&one).await.refuses(404, "Hypervisor profile kvm could not be found.");
    api.send("DELETE", &one, NEWEST, "").await.has(404);
}

#[tokio::test]
async fn an_invalid_profile_is_refused_by_field() {
    let api = Api::start().await;
    let post = async |change: &dyn Fn(&mut Value)| {
        let mut asked = profile();
        change(&mut asked);
        let refused = api.send("POST", PROFILES, NEWEST, &asked.to_string()).await.has(400);
        refused.json()["error_message"].as_str().unwrap().to_owned()
    };
    let reported = post(&|it| it["settings"]["keystone"]["password"] = json!("******")).await;
    assert!(reported.contains("settings.keystone.password: is the mask ******"), "{reported}");
    let sealed = "sealed:v1:1:AAAA";
    let reported = post(&|it| it["settings"]["keystone"]["password"] = json!(sealed)).await;
    assert!(reported.contains("settings.keystone.password: must not look like"), "{reported}");
    let reported = post(&|it| it["settings"]["keystone"]["passwrd"] = json!("x")).await;
    assert!(reported.contains("settings.keystone.passwrd"), "{reported}");
    let reported = post(&|it| it["instance_info"] = json!({})).await;
    assert!(reported.contains("instance_info.image_source: missing"), "{reported}");
    let reported =
        post(&|it| it["instance_info"]["image_source"] = json!("http://127.0.0.1/x")).await;
    assert!(reported.contains("image_source: 127.0.0.1 is a loopback address"), "{reported}");
    let reported = post(&|it| it["settings"]["iommu"] = json!("arm")).await;
    assert!(reported.contains("settings.iommu"), "{reported}");
    api.get(PROFILES).await.is(r#"{"hypervisor_profiles": []}"#);
}

#[tokio::test]
async fn a_rack_goal_with_a_profile_is_refused_if_impossible() {
    let api = Api::start().await;
    api.send("POST", PROFILES, NEWEST, &profile().to_string()).await.has(201);
    let rack = r#"{"name": "r1", "machines": []}"#;
    api.send("POST", "/bedplate/v1/racks", NEWEST, rack).await.has(200);
    let up = async |body: Value| {
        api.send("PUT", "/bedplate/v1/racks/r1/up", NEWEST, &body.to_string()).await
    };
    up(json!({"profile": "kvm"})).await.refuses(
        400,
        "profile: no cloud is configured: set [cloud] in the configuration of the service",
    );
    up(json!({"profile": "kvm", "reach": "available"}))
        .await
        .refuses(400, "reach: must be \"installed\" with a profile");
    up(json!({"profile": "kvm", "instance_info": {"image_source": "http://x/y"}})).await.refuses(
        400,
        "instance_info: is not allowed together with profile, which contains its own",
    );
}

#[tokio::test]
async fn a_node_shows_its_hypervisor_and_can_join_again() {
    let api = Api::start().await;
    api.enroll(r#", "name": "n1""#).await;
    let path = "/bedplate/v1/nodes/n1/hypervisor";
    let join = format!("{path}/join");
    api.get(path).await.refuses(404, "Node n1 is not a hypervisor.");
    api.send("PUT", &join, NEWEST, "")
        .await
        .refuses(400, "hypervisor: the node was not installed by a hypervisor profile");
    let since: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
    api.edit(|node| {
        node.provision_state = State::Active;
        node.hypervisor = Some(Hypervisor {
            profile: "kvm".to_owned(),
            host: "n1".to_owned(),
            availability_zone: Some("r1".to_owned()),
            aggregate: None,
            limits: JoinLimits::default(),
            state: JoinState::Joined,
            since,
            before: EarlierReport::None,
            id: Some("u1".to_owned()),
        });
    })
    .await;
    let reported = r#"{
        "profile": "kvm", "host": "n1", "id": "u1", "availability_zone": "r1", "aggregate": null, "state": "joined",
        "since": "2026-01-02T03:04:05.000000+00:00", "joined_at": "2026-01-02T03:04:05.000000+00:00"
    }"#;
    api.get(path).await.has(200).is(reported);
    let explained = api.get("/bedplate/v1/nodes/n1/explain").await.has(200).json();
    assert_eq!(explained["hypervisor"], serde_json::from_str::<Value>(reported).unwrap());
    let again = api.send("PUT", &join, NEWEST, "").await.has(202).json();
    assert_eq!((&again["state"], &again["joined_at"]), (&json!("awaiting_service"), &Value::Null));
    let history = api.get(&format!("/v1/nodes/{ID}/history")).await.has(200);
    assert!(history.text.contains("host n1: joining again"), "{}", history.text);
}
