//! Tests of firmware updates over a real socket.

use std::collections::BTreeMap;

use axum::response::IntoResponse;
use bmc::{BmcError, FirmwareImage, FirmwareUpdates, ImageStream, ImageTransfer};
use bytes::Bytes;
use expect_test::expect;
use hardware::BmcTask;
use redfish::Auth;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::fixture::{Fixture, ReceivedRequest, json as answer, refusal, silent};

const DELL: &str = include_str!("trees/dell.json");
const SERVICE: &str = "/redfish/v1/UpdateService";
const UPDATE: &str = "/redfish/v1/UpdateService/Actions/SimpleUpdate";
const INVENTORY: &str = "/redfish/v1/UpdateService/FirmwareInventory";
const TASKS: &str = "/redfish/v1/TaskService/Tasks";
const TASK: &str = "/redfish/v1/TaskService/Tasks/JID_2";
const BIOS: &str = "/redfish/v1/Systems/System.Embedded.1/Bios";

/// Dell's tree with an update service, whose document is `service`.
fn tree(service: Value) -> String {
    let mut tree: BTreeMap<String, Value> = serde_json::from_str(DELL).unwrap();
    // The tree has its own inventory, which is read with `$expand`.
    tree.retain(|path, _| !path.starts_with(INVENTORY));
    let link = |path: &str| json!({"@odata.id": path});
    let root = tree.get_mut("/redfish/v1").unwrap();
    root["UpdateService"] = link(SERVICE);
    root["Tasks"] = link("/redfish/v1/TaskService");
    let entry = |name: &str, related: &str, updateable: bool| {
        let path = format!("{INVENTORY}/{name}");
        let related = [link(related)];
        (path.clone(), json!({"@odata.id": path, "Updateable": updateable, "RelatedItem": related}))
    };
    let task = |id: &str, target: &str| {
        let path = format!("{TASKS}/{id}");
        let payload = json!({"TargetUri": target});
        (path.clone(), json!({"@odata.id": path, "TaskState": "Running", "Payload": payload}))
    };
    let names = ["Previous-bios", "Installed-bmc", "Installed-bios"];
    let members =
        |paths: &[String]| json!({"Members": paths.iter().map(|it| link(it)).collect::<Vec<_>>()});
    tree.extend([
        (SERVICE.to_owned(), service),
        (INVENTORY.to_owned(), members(&names.map(|name| format!("{INVENTORY}/{name}")))),
        entry(names[0], BIOS, false),
        entry(names[1], "/redfish/v1/Managers/iDRAC.Embedded.1", true),
        entry(names[2], BIOS, true),
        ("/redfish/v1/TaskService".to_owned(), json!({"Tasks": link(TASKS)})),
        (TASKS.to_owned(), members(&["JID_1", "JID_2"].map(|id| format!("{TASKS}/{id}")))),
        task("JID_1", "/redfish/v1/Systems/System.Embedded.1/Actions/ComputerSystem.Reset"),
        task("JID_2", UPDATE),
    ]);
    serde_json::to_string(&tree).unwrap()
}

fn pulls() -> Value {
    let action = json!({"target": UPDATE, "TransferProtocol@Redfish.AllowableValues": ["HTTP"]});
    let inventory = json!({"@odata.id": INVENTORY});
    json!({"ServiceEnabled": true, "Actions": {"#UpdateService.SimpleUpdate": action}, "FirmwareInventory": inventory})
}

fn pushes() -> Value {
    let inventory = json!({"@odata.id": INVENTORY});
    json!({"MultipartHttpPushUri": "/redfish/v1/push", "MaxImageSizeBytes": 9000, "FirmwareInventory": inventory})
}

fn updates(fixture: &Fixture) -> std::sync::Arc<dyn FirmwareUpdates> {
    fixture.bmc(Auth::Basic).firmware.unwrap()
}

fn at(url: &str) -> FirmwareImage {
    FirmwareImage::At(url.parse().unwrap())
}

fn accepts(asked: &ReceivedRequest) -> Option<axum::response::Response> {
    let task = json!({"@odata.id": TASK, "TaskState": "New", "TaskMonitor": "/monitor/2"});
    let accepted = || ([("location", "/monitor/2")], answer(202, task)).into_response();
    (asked.method == "POST").then(accepted)
}

#[tokio::test]
async fn an_update_names_the_entry_of_the_inventory_that_belongs_to_the_component() {
    let fixture = Fixture::serve(&tree(pulls()), |asked, _| accepts(asked)).await;
    let firmware = updates(&fixture);
    assert_eq!(firmware.transfer().await.unwrap(), ImageTransfer::Pull);
    for component in ["bios", "bmc"] {
        let task = firmware.request(component, at("http://10.0.0.1/image.exe")).await.unwrap();
        assert_eq!(task.as_deref(), Some(TASK));
    }
    expect![[r#"
        POST /redfish/v1/UpdateService/Actions/SimpleUpdate {"ImageURI":"http://10.0.0.1/image.exe","Targets":["/redfish/v1/UpdateService/FirmwareInventory/Installed-bios"],"TransferProtocol":"HTTP"}
        POST /redfish/v1/UpdateService/Actions/SimpleUpdate {"ImageURI":"http://10.0.0.1/image.exe","Targets":["/redfish/v1/UpdateService/FirmwareInventory/Installed-bmc"],"TransferProtocol":"HTTP"}"#]]
    .assert_eq(&fixture.changes());
    let error = firmware.request("bios", at("https://10.0.0.1/image.exe")).await.unwrap_err();
    assert_eq!(error.to_string(), "this BMC cannot fetch an image over https");
}

#[tokio::test]
async fn a_service_that_takes_no_targets_is_asked_without() {
    let fixture = Fixture::serve(&tree(pulls()), |asked, _| {
        let text = "The action does not support the parameter Targets.";
        let has_targets = asked.body.get("Targets").is_some();
        let refused =
            has_targets.then(|| refusal(400, "Base.1.8.ActionParameterNotSupported", text));
        refused.or_else(|| accepts(asked))
    })
    .await;
    let task = updates(&fixture).request("bios", at("http://10.0.0.1/x")).await.unwrap();
    assert_eq!((task.as_deref(), fixture.count("POST", UPDATE)), (Some(TASK), 2));
}

#[tokio::test]
async fn an_image_is_streamed_with_its_parameters_and_its_size() {
    let fixture = Fixture::serve(&tree(pushes()), |asked, _| accepts(asked)).await;
    let firmware = updates(&fixture);
    assert_eq!(firmware.transfer().await.unwrap(), ImageTransfer::Push { largest: Some(9000) });
    let (parts, bytes) = mpsc::channel(4);
    for part in ["one ", "two"] {
        parts.send(Ok(Bytes::from(part))).await.unwrap();
    }
    drop(parts);
    let image = ImageStream { name: "bios \"1\".bin".to_owned(), length: 7, bytes };
    let task = firmware.request("bios", FirmwareImage::Stream(image)).await.unwrap();
    assert_eq!(task.as_deref(), Some(TASK));
    let asked = fixture.asked();
    let push = asked.iter().find(|asked| asked.method == "POST").unwrap();
    let kind = push.header("content-type").unwrap();
    let boundary = kind.strip_prefix("multipart/form-data; boundary=").unwrap();
    let text = push.text.replace(boundary, "B").replace('\r', "");
    expect![[r#"
        --B
        Content-Disposition: form-data; name="UpdateParameters"
        Content-Type: application/json

        {"Targets":["/redfish/v1/UpdateService/FirmwareInventory/Installed-bios"]}
        --B
        Content-Disposition: form-data; name="UpdateFile"; filename="bios1.bin"
        Content-Type: application/octet-stream

        one two
        --B--
    "#]]
    .assert_eq(&text);
    assert_eq!(push.header("content-length"), Some(&*push.text.len().to_string()));
}

#[tokio::test]
async fn an_incomplete_image_ends_the_upload() {
    let fixture = Fixture::serve(&tree(pushes()), |asked, _| accepts(asked)).await;
    let (parts, bytes) = mpsc::channel(4);
    parts.send(Ok(Bytes::from("one"))).await.unwrap();
    parts.send(Err(std::io::Error::other("lost"))).await.unwrap();
    let image = ImageStream { name: "x".to_owned(), length: 7, bytes };
    let error = updates(&fixture).request("bios", FirmwareImage::Stream(image)).await.unwrap_err();
    assert!(matches!(error, BmcError::Unreachable { .. }), "{error:?}");
}

#[tokio::test]
async fn a_new_task_is_an_update_if_its_request_was_one() {
    let fixture = Fixture::serve(&tree(pulls()), silent).await;
    let firmware = updates(&fixture);
    let all = firmware.tasks().await.unwrap().unwrap();
    assert_eq!(all, [format!("{TASKS}/JID_1"), TASK.to_owned()]);
    assert_eq!(firmware.update_since(&[]).await.unwrap().as_deref(), Some(TASK));
    assert_eq!(firmware.update_since(&all).await.unwrap(), None);
    let link = r#""Tasks":{"@odata.id":"/redfish/v1/TaskService"}"#;
    let without = tree(pulls()).replace(link, r#""Nothing":{}"#);
    let fixture = Fixture::serve(&without, silent).await;
    assert_eq!(updates(&fixture).tasks().await.unwrap(), None);
}

#[tokio::test]
async fn each_state_of_a_task_is_told_apart() {
    let state = async |status: u16, body: Value| {
        let fixture = Fixture::serve(&tree(pulls()), move |asked, _| {
            (asked.path == TASK).then(|| answer(status, body.clone()))
        })
        .await;
        updates(&fixture).task(TASK).await.unwrap()
    };
    let task = |state: &str| json!({"TaskState": state, "Messages": [{"MessageId": "X.1.Y", "Message": "No."}]});
    assert_eq!(state(200, task("New")).await, BmcTask::New);
    for waiting in ["Starting", "Pending", "Suspended"] {
        assert_eq!(state(200, task(waiting)).await, BmcTask::Waiting);
    }
    assert_eq!(state(200, task("Running")).await, BmcTask::Running);
    assert_eq!(state(202, json!({})).await, BmcTask::Running);
    assert_eq!(state(200, task("Completed")).await, BmcTask::Done);
    assert_eq!(state(200, json!({})).await, BmcTask::Done);
    assert_eq!(state(404, json!({})).await, BmcTask::Gone);
    for failed in [task("Exception"), json!({"TaskState": "Completed", "TaskStatus": "Critical"})] {
        let told = state(200, failed).await;
        assert!(matches!(told, BmcTask::Failed(_)), "{told:?}");
    }
    let BmcTask::Failed(why) = state(200, task("Exception")).await else { panic!() };
    assert_eq!(why, "the task ended as Exception: No.");
    assert!(matches!(state(400, json!({})).await, BmcTask::Failed(_)));
}

#[tokio::test]
async fn a_bmc_that_cannot_update_firmware_says_so() {
    let cannot = async |tree: &str| {
        let fixture = Fixture::serve(tree, silent).await;
        updates(&fixture).transfer().await.unwrap_err().to_string()
    };
    let mut bare: BTreeMap<String, Value> = serde_json::from_str(DELL).unwrap();
    bare.get_mut("/redfish/v1").unwrap().as_object_mut().unwrap().remove("UpdateService");
    let bare = serde_json::to_string(&bare).unwrap();
    expect!["this BMC cannot update firmware: it has no UpdateService"]
        .assert_eq(&cannot(&bare).await);
    expect!["this BMC cannot update firmware: it has neither the action SimpleUpdate nor MultipartHttpPushUri"]
        .assert_eq(&cannot(&tree(json!({}))).await);
    let mut off = pulls();
    off["ServiceEnabled"] = json!(false);
    expect!["this BMC cannot update firmware: its UpdateService is switched off"]
        .assert_eq(&cannot(&tree(off)).await);
}

#[tokio::test]
async fn a_full_queue_of_jobs_is_a_reason_to_ask_again() {
    let fixture = Fixture::serve(&tree(pulls()), |asked, _| {
        let full = || refusal(400, "Base.1.8.ResourceExhaustion", "The queue of jobs is full.");
        (asked.method == "POST").then(full)
    })
    .await;
    let error = updates(&fixture).request("bios", at("http://10.0.0.1/x")).await.unwrap_err();
    assert!(matches!(error, BmcError::Refused { transient: true, .. }), "{error:?}");
}
