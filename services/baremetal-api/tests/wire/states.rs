//! Wire tests of requests for changes: provision state, power, maintenance, traits, boot device.

use baremetal_core::{
    ChildNodes, ChildStep, Driver, Fault, Maintenance, Node, RequestedStep, State, Step, StepKind,
    StepRunner, Task, WantedSteps,
};
use hardware::PowerState;
use jiff::Timestamp;

use crate::api::{Answer, Api, ID, NEWEST};

async fn provision(api: &Api, version: &str, body: &str) -> Answer {
    api.send("PUT", &format!("/v1/nodes/{ID}/states/provision"), version, body).await
}

#[tokio::test]
async fn a_verb_is_recorded_and_shown() {
    let api = Api::start().await;
    api.enroll("").await;
    api.edit(|node| node.power_state = Some(PowerState::Off)).await;
    let answer = provision(&api, NEWEST, r#"{"target": "manage"}"#).await.has(202);
    assert_eq!(answer.headers["location"], format!("http://api:6385/v1/nodes/{ID}/states"));
    assert_eq!(answer.text, "");
    api.get(&format!("/v1/nodes/{ID}/states")).await.has(200).is(
        r#"{
            "console_enabled": false, "last_error": null, "power_state": "power off", "provision_state": "verifying",
            "provision_updated_at": "2026-01-02T03:04:05.000006+00:00", "target_power_state": null,
            "target_provision_state": "manageable", "raid_config": {}, "target_raid_config": {}, "boot_mode": null,
            "secure_boot": null
        }"#,
    );
    let history = api.get(&format!("/v1/nodes/{ID}/history")).await.has(200).json();
    let event = history["history"][0]["uuid"].as_str().unwrap();
    let entry = format!(
        r#""uuid": "{event}", "created_at": "2026-01-02T03:04:05.000006+00:00", "severity": "INFO",
            "event": "\"manage\" requested",
            "links": [{{"href": "http://api:6385/v1/nodes/{ID}/history/{event}", "rel": "self"}}]"#
    );
    api.get(&format!("/v1/nodes/{ID}/history"))
        .await
        .is(&format!(r#"{{"history": [{{{entry}}}]}}"#));
    let detailed = format!(
        r#"{{{entry}, "event_type": "verifying", "conductor": "host-1", "user": null, "project": null,
            "state": "enroll", "target_provision_state": null, "duration_seconds": null}}"#
    );
    api.get(&format!("/v1/nodes/{ID}/history/{event}")).await.has(200).is(&detailed);
    api.get(&format!("/v1/nodes/{ID}/history/zz")).await.has(404);
}

#[tokio::test]
async fn a_verb_the_state_does_not_allow_is_refused() {
    let api = Api::start().await;
    api.enroll(r#", "name": "n1""#).await;
    let words = "the requested action \"provide\" can not be performed on node \"n1\" while it is in state \"enroll\"";
    provision(&api, NEWEST, r#"{"target": "provide"}"#).await.refuses(400, words);
    for (body, problem) in [
        (r#"{"target": "rescue"}"#, "rescue_password: is required"),
        (r#"{"target": "rescue", "rescue_password": " "}"#, "rescue_password: is required"),
        (
            r#"{"target": "rescue", "rescue_password": "a\u0000b"}"#,
            "rescue_password: must have up to 255 bytes and no NUL",
        ),
        (r#"{"target": "service"}"#, "service_steps: at least one step is required"),
        (
            r#"{"target": "manage", "disable_ramdisk": true}"#,
            "disable_ramdisk: goes only with the target clean and service",
        ),
        (
            r#"{"target": "unrescue", "rescue_password": "a"}"#,
            "rescue_password: goes only with the target rescue",
        ),
        (
            r#"{"target": "rebuild", "service_steps": [{"interface": "bios", "step": "a"}]}"#,
            "service_steps: goes only with the target service",
        ),
    ] {
        provision(&api, NEWEST, body).await.refuses(400, problem);
    }
    let quiet = r#"{"interface": "bios", "step": "a"}"#;
    let clean =
        format!(r#"{{"target": "clean", "clean_steps": [{quiet}], "disable_ramdisk": true}}"#);
    let service =
        format!(r#"{{"target": "service", "service_steps": [{quiet}], "disable_ramdisk": true}}"#);
    for (body, version, came) in [(clean, "1.69", "1.70"), (service, "1.107", "1.108")] {
        let words = format!(
            "disable_ramdisk: the requested version is {version}; the minimal required API version is {came}"
        );
        provision(&api, version, &body).await.refuses(406, &words);
    }
    for (target, version, came) in [
        ("deploy", "1.72", "1.73"),
        ("inspect", "1.5", "1.6"),
        ("abort", "1.12", "1.13"),
        ("adopt", "1.16", "1.17"),
        ("rescue", "1.37", "1.38"),
        ("service", "1.86", "1.87"),
    ] {
        let words = format!(
            "target: the requested version is {version}; the minimal required API version is {came}"
        );
        let body = format!(r#"{{"target": "{target}"}}"#);
        provision(&api, version, &body).await.refuses(406, &words);
    }
    // The state refuses this verb before the version does.
    let body = r#"{"target": "unhold"}"#;
    provision(&api, "1.84", body).await.has(400);
    api.edit(|node| node.provision_state = State::CleanHold).await;
    provision(&api, "1.84", body).await.has(406);
    api.edit(|node| node.provision_state = State::Enroll).await;
    let refused = provision(&api, NEWEST, r#"{"target": "zz"}"#).await.has(400);
    assert!(
        refused.text.contains("target: unknown variant `zz`, expected one of `manage`"),
        "{}",
        refused.text
    );
    let refused = provision(&api, NEWEST, r#"{"target": "manage", "x": 1}"#).await.has(400);
    assert!(refused.text.contains("x: unknown field `x`"), "{}", refused.text);
    provision(&api, NEWEST, r#"{"target": "manage", "clean_steps": []}"#)
        .await
        .refuses(400, "clean_steps: goes only with the target clean");
    api.get(&format!("/v1/nodes/{ID}/history")).await.is(r#"{"history": []}"#);
}

#[tokio::test]
async fn a_deployment_that_cannot_succeed_does_not_begin() {
    let api = Api::start().await;
    api.enroll("").await;
    api.edit(|node| {
        node.driver = baremetal_core::Driver::Redfish;
        node.provision_state = State::Available;
    })
    .await;
    let deploy = async |info: &str, words: &str| {
        let info: serde_json::Value = serde_json::from_str(info).unwrap();
        api.edit(|node| node.instance_info = info.as_object().unwrap().clone()).await;
        provision(&api, NEWEST, r#"{"target": "active"}"#).await.refuses(400, words);
        let states = api.get(&format!("/v1/nodes/{ID}/states")).await.json();
        assert_eq!(states["provision_state"], "available");
    };
    deploy(
        "{}",
        "instance_info.image_source: missing; set it to the http or https URL of an image",
    )
    .await;
    deploy(
        r#"{"image_source": "ftp://h/i"}"#,
        "instance_info.image_source: must be an http or https URL",
    )
    .await;
    deploy(
        r#"{"image_source": "http://h/i"}"#,
        "instance_info.image_os_hash_value: missing; an image is installed only with a known checksum",
    )
    .await;
    let image = r#""image_source": "http://h/i", "image_os_hash_value": "SUM""#
        .replace("SUM", &"0".repeat(64));
    for (more, words) in [
        (r#""image_type": "disk""#, r#"image_type: "disk" is neither whole-disk nor partition"#),
        (r#""image_type": "partition""#, "root_gb: missing; a partition image needs the size"),
        (r#""kernel": "http://h/k""#, "root_gb: missing; a partition image needs the size"),
        (
            r#""image_type": "partition", "root_gb": "1", "ephemeral_format": "xfs""#,
            r#"ephemeral_format: "xfs" is not ext2, ext3 or ext4"#,
        ),
        (
            r#""root_device": {"colour": "red"}"#,
            r#"root_device: the root device hint "colour" names no property of a disk"#,
        ),
    ] {
        deploy(&format!("{{{image}, {more}}}"), &format!("instance_info.{words}")).await;
    }
    let drive = r#"{"target": "active", "configdrive": {"meta_data": {}}}"#;
    let words = "configdrive: is known as an object since version 1.56";
    provision(&api, "1.55", drive).await.refuses(400, words);
    let drive = r#"{"target": "active", "configdrive": {"vendor_data": {}}}"#;
    let words = "configdrive: is known with vendor_data since version 1.59";
    provision(&api, "1.58", drive).await.refuses(400, words);
    let drive = r#"{"target": "active", "configdrive": {"meta_data": "words"}}"#;
    provision(&api, NEWEST, drive).await.refuses(400, "configdrive: meta_data must be an object");
    for (url, words) in [
        ("http:///c", "instance_info.configdrive: the URL names no host"),
        (
            "http://127.0.0.1/c",
            "instance_info.configdrive: 127.0.0.1 is a loopback address; \
             allow the host with images.hosts in the configuration of the service",
        ),
    ] {
        let body = format!(r#"{{"target": "active", "configdrive": "{url}"}}"#);
        provision(&api, NEWEST, &body).await.refuses(400, words);
    }
}

#[tokio::test]
async fn a_config_drive_is_kept_and_never_shown() {
    let api = Api::start().await;
    api.enroll("").await;
    api.edit(|node| node.provision_state = State::Available).await;
    let body = r#"{"target": "active", "configdrive": {"user_data": "s3cret"}}"#;
    provision(&api, NEWEST, body).await.has(202);
    let shown = api.get(&format!("/v1/nodes/{ID}")).await.json();
    assert_eq!(shown["instance_info"], serde_json::json!({"configdrive": "******"}));
    let node = api.store.find_node(&ID.parse().unwrap()).await.unwrap().unwrap();
    let node = api.store.secrets().with_instance(&node).unwrap();
    assert_eq!(node.instance_info["configdrive"]["user_data"], "s3cret");
}

#[tokio::test]
async fn manual_cleaning_records_the_requested_steps() {
    let api = Api::start().await;
    api.enroll("").await;
    api.edit(|node| node.provision_state = State::Manageable).await;
    let clean = async |steps: &str| {
        let body = format!(r#"{{"target": "clean", "clean_steps": [{steps}]}}"#);
        provision(&api, NEWEST, &body).await
    };
    provision(&api, NEWEST, r#"{"target": "clean"}"#)
        .await
        .refuses(400, "clean_steps: at least one step is required");
    clean(r#"{"interface": "deploy", "step": ""}"#)
        .await
        .refuses(400, "clean_steps[0].step: needs 1 to 255 characters without NUL");
    for (step, problem) in [
        (
            r#"{"interface": "boot", "step": "a"}"#,
            "clean_steps[0].interface: unknown variant `boot`",
        ),
        (r#"{"interface": "bios", "step": "a", "priority": 9}"#, "unknown field `priority`"),
        (r#"{"interface": "bios", "step": "a", "args": []}"#, "clean_steps[0].args: "),
    ] {
        let refused = clean(step).await.has(400);
        assert!(refused.text.contains(problem), "{}", refused.text);
    }
    let burn =
        r#"{"interface": "deploy", "step": "burn_in", "args": {"password": "s3cret", "hours": 2}}"#;
    clean(burn).await.has(202);
    let shown = api.get(&format!("/v1/nodes/{ID}/states")).await.json();
    assert_eq!(shown["target_provision_state"], "manageable");

    api.edit(|node| {
        let work = node.work.as_mut().unwrap();
        let WantedSteps::Requested(steps) = &work.steps else { panic!("{:?}", work.steps) };
        let RequestedStep { name, args, .. } = steps[0].clone();
        let (kind, runner) = (StepKind::Clean, StepRunner::Agent);
        work.tasks[work.cursor] = Task::Step(Step {
            kind,
            runner,
            name,
            args,
            priority: 0,
            reboots: false,
            children: None,
        });
    })
    .await;
    let shown = api.get(&format!("/v1/nodes/{ID}")).await.json();
    let want = serde_json::json!({
        "interface": "deploy", "step": "burn_in", "priority": 0,
        "args": {"password": "******", "hours": 2},
    });
    assert_eq!(shown["clean_step"], want);
}

#[tokio::test]
async fn a_step_on_child_nodes_names_only_nodes_whose_parent_the_node_is() {
    let api = Api::start().await;
    api.enroll("").await;
    api.edit(|node| node.provision_state = State::Manageable).await;
    let child = "11111111-1111-4111-8111-111111111111";
    let other = "22222222-2222-4222-8222-222222222222";
    for (id, parent) in [(child, Some(ID.parse().unwrap())), (other, None)] {
        let node = Node::new(id.parse().unwrap(), Driver::FakeHardware, Timestamp::UNIX_EPOCH);
        let node = Node { parent_node: parent, ..node };
        api.store.insert_node(&node).await.unwrap();
    }
    let clean = async |step: &str, more: &str| {
        let step = format!(r#"{{"interface": "power", "step": "{step}", {more}}}"#);
        let body = format!(r#"{{"target": "clean", "clean_steps": [{step}]}}"#);
        provision(&api, NEWEST, &body).await
    };
    let limited = |id: &str| {
        format!(r#""execute_on_child_nodes": true, "limit_child_node_execution": ["{id}"]"#)
    };
    let field = "clean_steps[0].limit_child_node_execution";
    let refused = format!("{field}: \"n1\" is no UUID");
    clean("power_on", &limited("n1")).await.refuses(400, &refused);
    let refused = format!("{field}: node {other} is no child node of this node");
    clean("power_on", &limited(other)).await.refuses(400, &refused);
    let missing = "33333333-3333-4333-8333-333333333333";
    let refused = format!("Node {missing} could not be found.");
    clean("power_on", &limited(missing)).await.refuses(404, &refused);
    let refused = format!("{field}: goes only with execute_on_child_nodes");
    let alone = format!(r#""limit_child_node_execution": ["{child}"]"#);
    clean("power_on", &alone).await.refuses(400, &refused);
    let refused = "clean_steps[0].execute_on_child_nodes: the step power.erase_devices cannot run on child nodes, only the steps power_on, power_off and reboot can";
    clean("erase_devices", r#""execute_on_child_nodes": true"#).await.refuses(400, refused);

    clean("reboot", &limited(child)).await.has(202);
    api.edit(|node| {
        let work = node.work.as_mut().unwrap();
        let WantedSteps::Requested(steps) = &work.steps else { panic!("{:?}", work.steps) };
        let RequestedStep { name, args, children } = steps[0].clone();
        assert_eq!(children, Some(ChildNodes::Named(vec![child.parse().unwrap()])));
        let (kind, runner) = (StepKind::Clean, StepRunner::Conductor);
        let step = Step { kind, runner, name, args, priority: 0, reboots: false, children };
        let run = ChildStep { step, asked: None };
        work.tasks[work.cursor] = Task::StepOnChildren(Box::new(run));
    })
    .await;
    let shown = api.get(&format!("/v1/nodes/{ID}")).await.json();
    let want = serde_json::json!({
        "interface": "power", "step": "reboot", "priority": 0, "args": {},
        "execute_on_child_nodes": true, "limit_child_node_execution": [child],
    });
    assert_eq!(shown["clean_step"], want);
}

#[tokio::test]
async fn a_node_in_use_is_serviced_and_held_work_goes_on() {
    let api = Api::start().await;
    api.enroll("").await;
    api.edit(|node| node.provision_state = State::Active).await;
    let step = r#"{"interface": "bios", "step": "apply", "args": {"password": "s3cret"}}"#;
    let service = format!(r#"{{"target": "service", "service_steps": [{step}]}}"#);
    provision(&api, NEWEST, &service).await.has(202);
    let states = api.get(&format!("/v1/nodes/{ID}/states")).await.json();
    assert_eq!(states["provision_state"], "servicing");
    assert_eq!(states["target_provision_state"], "active");

    api.edit(|node| {
        node.provision_state = State::ServiceHold;
        let work = node.work.as_mut().unwrap();
        work.tasks[work.cursor] = Task::Hold;
    })
    .await;
    let why = format!(
        "the requested action \"manage\" can not be performed on node \"{ID}\" while it is in state \"service hold\""
    );
    provision(&api, NEWEST, r#"{"target": "manage"}"#).await.refuses(400, &why);
    provision(&api, NEWEST, r#"{"target": "unhold"}"#).await.has(202);
    let states = api.get(&format!("/v1/nodes/{ID}/states")).await.json();
    assert_eq!(states["provision_state"], "service wait");
    assert_eq!(states["target_provision_state"], "active");

    api.edit(|node| {
        let work = node.work.as_mut().unwrap();
        let WantedSteps::Service(steps) = &work.steps else { panic!("{:?}", work.steps) };
        let RequestedStep { name, args, .. } = steps[0].clone();
        let (kind, runner) = (StepKind::Service, StepRunner::Agent);
        work.tasks[work.cursor] = Task::Step(Step {
            kind,
            runner,
            name,
            args,
            priority: 0,
            reboots: false,
            children: None,
        });
    })
    .await;
    let shown = api.get(&format!("/v1/nodes/{ID}")).await.json();
    let want = serde_json::json!({
        "interface": "bios", "step": "apply", "priority": 0, "args": {"password": "******"},
    });
    assert_eq!(shown["service_step"], want);
}

#[tokio::test]
async fn only_a_node_with_a_rescue_interface_is_rescued() {
    let api = Api::start().await;
    api.enroll(r#", "name": "n1", "rescue_interface": "no-rescue""#).await;
    api.edit(|node| node.provision_state = State::Active).await;
    let rescue = r#"{"target": "rescue", "rescue_password": "s3cret"}"#;
    let why = "rescue_interface: node \"n1\" has no-rescue and cannot boot a rescue system";
    provision(&api, NEWEST, rescue).await.refuses(400, why);
    api.edit(|node| node.interfaces.rescue = None).await;
    let answer = provision(&api, NEWEST, rescue).await.has(202);
    assert!(!answer.text.contains("s3cret"));
    let node = api.get(&format!("/v1/nodes/{ID}")).await;
    assert_eq!(node.json()["provision_state"], "rescuing");
    let masked =
        serde_json::json!({"rescue_password": "******", "hashed_rescue_password": "******"});
    assert_eq!(node.json()["instance_info"], masked);
    assert!(!node.text.contains("s3cret"));
    let stored = api.store.find_node(&ID.parse().unwrap()).await.unwrap().unwrap();
    let stored = api.store.secrets().with_instance(&stored).unwrap().instance_info;
    let hash = stored["hashed_rescue_password"].as_str().unwrap();
    assert!(hash.starts_with("$6$rounds=5000$"), "{hash}");
    assert_eq!(stored["rescue_password"], "******", "the password itself is stored nowhere");
}

#[tokio::test]
async fn a_change_of_power_is_recorded_and_shown() {
    let api = Api::start().await;
    api.enroll(r#", "name": "n1""#).await;
    let power = async |version: &str, body: &str| {
        api.send("PUT", &format!("/v1/nodes/{ID}/states/power"), version, body).await
    };
    let answer = power(NEWEST, r#"{"target": "power on"}"#).await.has(202);
    assert_eq!(answer.headers["location"], format!("http://api:6385/v1/nodes/{ID}/states"));
    let states = api.get("/v1/nodes/n1/states").await.json();
    assert_eq!(states["target_power_state"], "power on");
    power(NEWEST, r#"{"target": "soft power off", "timeout": 5}"#).await.has(202);
    let words = "target: the requested version is 1.26; the minimal required API version is 1.27";
    power("1.26", r#"{"target": "soft power off"}"#).await.refuses(406, words);
    let refused = power(NEWEST, r#"{"target": "power on", "timeout": 0}"#).await.has(400);
    assert!(refused.text.contains("timeout: invalid value: integer `0`"), "{}", refused.text);
    let refused = power(NEWEST, "{}").await.has(400);
    assert!(refused.text.contains("body: missing field `target`"), "{}", refused.text);

    api.edit(|node| node.provision_state = State::Deploying).await;
    power(NEWEST, r#"{"target": "power on"}"#).await.refuses(
        409,
        "node \"n1\" is locked while it is deploying; try again when its work is done",
    );
}

#[tokio::test]
async fn maintenance_begins_and_ends() {
    let api = Api::start().await;
    api.enroll("").await;
    let path = format!("/v1/nodes/{ID}/maintenance");
    let shown = async || {
        let node = api.get(&format!("/v1/nodes/{ID}?fields=maintenance,maintenance_reason")).await;
        let node = node.json();
        (node["maintenance"].clone(), node["maintenance_reason"].clone())
    };
    assert_eq!(api.send("PUT", &path, "", r#"{"reason": "fan"}"#).await.has(202).text, "");
    assert_eq!(shown().await, (true.into(), "fan".into()));
    api.send("PUT", &path, "", "").await.has(202);
    assert_eq!(shown().await, (true.into(), serde_json::Value::Null));
    api.send("DELETE", &path, "", r#"{"reason": "done"}"#).await.has(400);
    assert_eq!(shown().await, (true.into(), serde_json::Value::Null));
    api.send("DELETE", &path, "", "").await.has(202);
    assert_eq!(shown().await, (false.into(), serde_json::Value::Null));
}

#[tokio::test]
async fn a_person_takes_over_the_maintenance_of_a_fault() {
    let api = Api::start().await;
    api.enroll("").await;
    let for_fault = Maintenance { reason: None, fault: Some(Fault::PowerFailure) };
    api.edit(|node| node.maintenance = Some(for_fault.clone())).await;
    let fault =
        async || api.get(&format!("/v1/nodes/{ID}?fields=fault")).await.json()["fault"].clone();
    let listed = async |fault: &str| {
        let list = api.get(&format!("/v1/nodes?fault={fault}")).await.has(200).json();
        list["nodes"].as_array().unwrap().len()
    };
    assert_eq!(fault().await, "power failure");
    assert_eq!((listed("power%20failure").await, listed("clean%20failure").await), (1, 0));
    let path = format!("/v1/nodes/{ID}/maintenance");
    api.send("PUT", &path, "", r#"{"reason": "fan"}"#).await.has(202);
    assert_eq!((fault().await, listed("power%20failure").await), (serde_json::Value::Null, 0));
}

#[tokio::test]
async fn traits_are_set_added_and_removed() {
    let api = Api::start().await;
    api.enroll("").await;
    let path = format!("/v1/nodes/{ID}/traits");
    api.send("PUT", &path, NEWEST, r#"{"traits": ["CUSTOM_B", "CUSTOM_A"]}"#).await.has(204);
    let added = api.send("PUT", &format!("{path}/HW_CPU_X86_AVX"), NEWEST, "").await.has(204);
    assert_eq!(added.headers["location"], format!("http://api:6385{path}/HW_CPU_X86_AVX"));
    api.get(&path).await.has(200).is(r#"{"traits": ["CUSTOM_A", "CUSTOM_B", "HW_CPU_X86_AVX"]}"#);
    api.send("DELETE", &format!("{path}/CUSTOM_B"), NEWEST, "").await.has(204);
    let words = "the node has no trait \"CUSTOM_B\"";
    api.send("DELETE", &format!("{path}/CUSTOM_B"), NEWEST, "").await.refuses(404, words);
    api.send("PUT", &format!("{path}/small"), NEWEST, "").await.has(400);
    let all = r#"{"traits": ["CUSTOM_D"]}"#;
    let words = "body: must be empty: the path names the trait to add";
    api.send("PUT", &format!("{path}/CUSTOM_C"), NEWEST, all).await.refuses(400, words);
    api.send("PUT", &format!("{path}/HW_CPU_X86_AVX"), NEWEST, "{}").await.has(204);
    let refused = api.send("PUT", &path, NEWEST, r#"{"traits": ["a b"]}"#).await.has(400);
    assert!(refused.text.contains("traits[0]: "), "{}", refused.text);
    api.send("DELETE", &path, NEWEST, "").await.has(204);
    api.get(&path).await.is(r#"{"traits": []}"#);
    for (method, status) in [("GET", 406), ("PUT", 405), ("DELETE", 404)] {
        api.send(method, &path, "1.36", "").await.has(status);
    }
}

#[tokio::test]
async fn a_boot_device_is_set_and_shown() {
    let api = Api::start().await;
    api.enroll("").await;
    let path = format!("/v1/nodes/{ID}/management/boot_device");
    // A fake machine boots from the network until it is told otherwise.
    api.get(&path).await.has(200).is(r#"{"boot_device": "pxe", "persistent": false}"#);
    api.send("PUT", &path, NEWEST, r#"{"boot_device": "pxe", "persistent": true}"#).await.has(204);
    let supported = api.get(&format!("{path}/supported")).await.has(200).json();
    assert!(supported["supported_boot_devices"].as_array().unwrap().contains(&"pxe".into()));
    let refused = api.send("PUT", &path, NEWEST, r#"{"boot_device": "zz"}"#).await.has(400);
    assert!(refused.text.contains("boot_device: unknown variant `zz`"), "{}", refused.text);
}

#[tokio::test]
async fn a_refused_interrupt_says_why() {
    let api = Api::start().await;
    api.enroll("").await;
    let nmi = format!("/v1/nodes/{ID}/management/inject_nmi");
    let cannot = "this BMC cannot inject an NMI";
    api.send("PUT", &nmi, NEWEST, "{}").await.refuses(400, cannot);
    api.send("PUT", &nmi, "1.29", "").await.refuses(400, cannot);
    api.send("PUT", &nmi, "1.28", "{}").await.has(404);
    api.send("PUT", &format!("{nmi}?color=red"), NEWEST, "").await.has(400);
    let noop = r#"[{"op": "replace", "path": "/management_interface", "value": "noop"}]"#;
    api.send("PATCH", &format!("/v1/nodes/{ID}"), NEWEST, noop).await.has(200);
    let words = format!("{cannot} with the management interface noop");
    api.send("PUT", &nmi, NEWEST, "").await.refuses(400, &words);
    api.edit(|node| node.provision_state = State::Deploying).await;
    api.send("PUT", &nmi, NEWEST, "").await.has(409);
}
