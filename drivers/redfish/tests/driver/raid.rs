//! Tests of RAID volumes over a real socket.

use std::collections::BTreeMap;

use axum::response::{IntoResponse, Response};
use bmc::{BmcError, RaidVolumes};
use expect_test::expect;
use hardware::{ApplyTime, BmcTask, DriveMedia, NewVolume, RaidLevel};
use redfish::Auth;
use serde_json::{Value, json};

use crate::fixture::{Fixture, ReceivedRequest, empty, json as answer, refusal, silent};

const SYSTEM: &str = "/redfish/v1/Systems/1";
const STORAGE: &str = "/redfish/v1/Systems/1/Storage/RAID.1";
const VOLUMES: &str = "/redfish/v1/Systems/1/Storage/RAID.1/Volumes";
const TASKS: &str = "/redfish/v1/TaskService/Tasks";
const TASK: &str = "/redfish/v1/TaskService/Tasks/JID_2";

/// A controller with three drives and two volumes, and a controller without volumes. `changes` replaces resources.
fn tree(changes: &[(&str, Value)]) -> String {
    let link = |path: &str| json!({"@odata.id": path});
    let members =
        |paths: &[String]| json!({"Members": paths.iter().map(|it| link(it)).collect::<Vec<_>>()});
    let drive = |number: u32, more: Value| {
        let path = format!("{STORAGE}/Drives/{number}");
        let mut drive = json!({
            "@odata.id": path, "Id": format!("Disk.{number}"), "CapacityBytes": 1000, "MediaType": "SSD", "Protocol": "SAS",
        });
        drive.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        (path, drive)
    };
    let volume = |number: u32, more: Value| {
        let path = format!("{VOLUMES}/{number}");
        let drives = [link(&format!("{STORAGE}/Drives/{number}"))];
        let mut volume = json!({"@odata.id": path, "Id": number.to_string(), "Name": "old", "CapacityBytes": 900});
        volume["Links"] = json!({"Drives": drives});
        volume.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        (path, volume)
    };
    let drives: Vec<Value> = (1..=3).map(|n| link(&format!("{STORAGE}/Drives/{n}"))).collect();
    let mut collection = members(&[1, 2].map(|n| format!("{VOLUMES}/{n}")));
    collection["@Redfish.OperationApplyTimeSupport"] =
        json!({"SupportedValues": ["OnReset", "Immediate"]});
    let raid = json!({
        "@odata.id": STORAGE, "Id": "RAID.1", "Drives": drives, "Volumes": link(VOLUMES),
        "StorageControllers": [{"SupportedRAIDTypes": ["RAID0", "RAID1", "RAID1E", "RAID60"]}],
    });
    let plain = "/redfish/v1/Systems/1/Storage/AHCI.1";
    let mut tree = BTreeMap::from([
        (
            "/redfish/v1".to_owned(),
            json!({"Systems": link("/redfish/v1/Systems"), "Tasks": link("/redfish/v1/TaskService")}),
        ),
        ("/redfish/v1/Systems".to_owned(), members(&[SYSTEM.to_owned()])),
        (SYSTEM.to_owned(), json!({"Storage": link(&format!("{SYSTEM}/Storage"))})),
        (format!("{SYSTEM}/Storage"), members(&[plain, STORAGE].map(str::to_owned))),
        (plain.to_owned(), json!({"@odata.id": plain, "Id": "AHCI.1", "Drives": []})),
        (STORAGE.to_owned(), raid),
        drive(1, json!({})),
        drive(2, json!({"MediaType": "HDD", "HotspareType": "Global"})),
        drive(3, json!({"FailurePredicted": true})),
        (VOLUMES.to_owned(), collection),
        volume(1, json!({"RAIDType": "RAID1"})),
        volume(2, json!({"VolumeType": "RawDevice"})),
        ("/redfish/v1/TaskService".to_owned(), json!({"Tasks": link(TASKS)})),
        (TASKS.to_owned(), members(&[format!("{TASKS}/JID_1"), TASK.to_owned()])),
        (
            format!("{TASKS}/JID_1"),
            json!({"Payload": {"TargetUri": "/redfish/v1/UpdateService/x"}}),
        ),
        (TASK.to_owned(), json!({"TaskState": "New", "Payload": {"TargetUri": VOLUMES}})),
    ]);
    tree.extend(changes.iter().map(|(path, changed)| ((*path).to_owned(), changed.clone())));
    serde_json::to_string(&tree).unwrap()
}

fn raid(fixture: &Fixture) -> std::sync::Arc<dyn RaidVolumes> {
    fixture.bmc(Auth::Basic).raid.unwrap()
}

fn wanted() -> NewVolume {
    NewVolume {
        storage: STORAGE.to_owned(),
        level: RaidLevel::Raid1,
        drives: [1, 2].map(|number| format!("{STORAGE}/Drives/{number}")).to_vec(),
        size_bytes: Some(500),
        name: "bp1-0".to_owned(),
        name_is_optional: true,
        applies: ApplyTime::Immediate,
    }
}

fn accepts(asked: &ReceivedRequest) -> Option<Response> {
    let task = json!({"@odata.id": TASK, "TaskState": "New"});
    let accepted = || ([("location", "/monitor/2")], answer(202, task)).into_response();
    (asked.method != "GET").then(accepted)
}

#[tokio::test]
async fn controllers_drives_and_volumes_are_read() {
    let fixture = Fixture::serve(&tree(&[]), silent).await;
    let controllers = raid(&fixture).controllers().await.unwrap();
    let [controller] = &controllers[..] else { panic!("{controllers:#?}") };
    assert_eq!((controller.id.as_str(), controller.path.as_str()), ("RAID.1", STORAGE));
    let levels = [RaidLevel::Raid0, RaidLevel::Raid1, RaidLevel::Raid60];
    assert_eq!(controller.levels.as_deref(), Some(&levels[..]));
    assert_eq!(controller.applies, ApplyTime::Immediate);
    let drives = controller.drives.iter().map(|it| (it.id.as_str(), it.media, it.is_usable));
    let (ssd, hdd) = (Some(DriveMedia::Ssd), Some(DriveMedia::Hdd));
    let want = [("Disk.1", ssd, true), ("Disk.2", hdd, false), ("Disk.3", ssd, false)];
    assert_eq!(drives.collect::<Vec<_>>(), want);
    assert_eq!(controller.drives[0].protocol.as_deref(), Some("sas"));
    let volumes = controller.volumes.iter().map(|it| (it.id.as_str(), it.is_raid, it.level));
    let want = [("1", true, Some(RaidLevel::Raid1)), ("2", false, None)];
    assert_eq!(volumes.collect::<Vec<_>>(), want);
    assert_eq!(controller.volumes[0].drives, [format!("{STORAGE}/Drives/1")]);
    assert_eq!(raid(&fixture).volumes(STORAGE).await.unwrap(), controller.volumes);
}

#[tokio::test]
async fn a_volume_that_cannot_be_read_is_not_a_deleted_one() {
    let fixture = Fixture::serve(&tree(&[]), |asked, _| {
        let broken = asked.path.ends_with("/Volumes/1");
        broken.then(|| refusal(500, "Base.1.8.InternalError", "Try again."))
    })
    .await;
    let error = raid(&fixture).volumes(STORAGE).await.unwrap_err();
    assert!(error.is_transient(), "{error}");
    let fixture = Fixture::serve(&tree(&[]), |asked, _| {
        asked.path.ends_with("/Volumes/1").then(|| empty(404))
    })
    .await;
    assert_eq!(raid(&fixture).volumes(STORAGE).await.unwrap().len(), 1);
}

#[tokio::test]
async fn volumes_are_made_and_deleted_with_the_apply_time() {
    let fixture = Fixture::serve(&tree(&[]), |asked, _| accepts(asked)).await;
    let raid = raid(&fixture);
    assert_eq!(raid.create(&wanted()).await.unwrap().as_deref(), Some(TASK));
    let all = NewVolume { size_bytes: None, applies: ApplyTime::Untold, ..wanted() };
    raid.create(&all).await.unwrap();
    let volume = format!("{VOLUMES}/1");
    assert_eq!(raid.delete(&volume, ApplyTime::OnReset).await.unwrap().as_deref(), Some(TASK));
    raid.delete(&volume, ApplyTime::Untold).await.unwrap();
    expect![[r#"
        POST /redfish/v1/Systems/1/Storage/RAID.1/Volumes {"@Redfish.OperationApplyTime":"Immediate","CapacityBytes":500,"Links":{"Drives":[{"@odata.id":"/redfish/v1/Systems/1/Storage/RAID.1/Drives/1"},{"@odata.id":"/redfish/v1/Systems/1/Storage/RAID.1/Drives/2"}]},"Name":"bp1-0","RAIDType":"RAID1"}
        POST /redfish/v1/Systems/1/Storage/RAID.1/Volumes {"Links":{"Drives":[{"@odata.id":"/redfish/v1/Systems/1/Storage/RAID.1/Drives/1"},{"@odata.id":"/redfish/v1/Systems/1/Storage/RAID.1/Drives/2"}]},"Name":"bp1-0","RAIDType":"RAID1"}
        DELETE /redfish/v1/Systems/1/Storage/RAID.1/Volumes/1 {"@Redfish.OperationApplyTime":"OnReset"}
        DELETE /redfish/v1/Systems/1/Storage/RAID.1/Volumes/1 null"#]]
    .assert_eq(&fixture.changes());
}

#[tokio::test]
async fn a_change_that_has_happened_has_no_task() {
    let fixture = Fixture::serve(&tree(&[]), |asked, _| match asked.method.as_str() {
        "POST" => {
            let location = [("location", format!("{VOLUMES}/3"))];
            Some(
                (location, answer(201, json!({"@odata.id": format!("{VOLUMES}/3")})))
                    .into_response(),
            )
        }
        "DELETE" => Some(empty(204)),
        _ => None,
    })
    .await;
    let raid = raid(&fixture);
    assert_eq!(raid.create(&wanted()).await.unwrap(), None);
    assert_eq!(raid.delete(&format!("{VOLUMES}/1"), ApplyTime::Immediate).await.unwrap(), None);
    let fixture =
        Fixture::serve(&tree(&[]), |asked, _| (asked.method == "DELETE").then(|| empty(404))).await;
    let raid = self::raid(&fixture);
    assert_eq!(raid.delete(&format!("{VOLUMES}/9"), ApplyTime::Immediate).await.unwrap(), None);
}

#[tokio::test]
async fn an_older_service_gets_the_older_form() {
    let script = |asked: &ReceivedRequest, _: &mut BTreeMap<String, Value>| {
        let has = |name: &str| asked.body.get(name).is_some();
        match asked.method.as_str() {
            "POST" if has("Name") => {
                let text = "The property Name is a read only property.";
                Some(refusal(400, "Base.1.0.PropertyNotWritable", text))
            }
            "POST" if has("RAIDType") => {
                let text = "The property RAIDType is not in the list of valid properties.";
                Some(refusal(400, "Base.1.0.PropertyUnknown", text))
            }
            "POST" => Some(empty(201)),
            _ => None,
        }
    };
    let fixture = Fixture::serve(&tree(&[]), script).await;
    assert_eq!(raid(&fixture).create(&wanted()).await.unwrap(), None);
    let asked = fixture.asked();
    let last = &asked.last().unwrap().body;
    assert_eq!((&last["VolumeType"], &last["Name"]), (&json!("Mirrored"), &Value::Null));
    assert_eq!(fixture.count("POST", VOLUMES), 3);
    // A name that the client wants is not left out.
    let fixture = Fixture::serve(&tree(&[]), script).await;
    let named = NewVolume { name_is_optional: false, ..wanted() };
    let error = raid(&fixture).create(&named).await.unwrap_err();
    assert!(error.to_string().contains("The property Name is a read only property."), "{error}");
}

#[tokio::test]
async fn a_new_task_is_a_change_of_volumes_if_its_request_was_one() {
    let fixture = Fixture::serve(&tree(&[]), silent).await;
    let raid = raid(&fixture);
    let all = raid.tasks().await.unwrap().unwrap();
    assert_eq!(all, [format!("{TASKS}/JID_1"), TASK.to_owned()]);
    assert_eq!(raid.change_since(STORAGE, &[]).await.unwrap().as_deref(), Some(TASK));
    assert_eq!(raid.change_since(STORAGE, &all).await.unwrap(), None);
    assert_eq!(raid.task(TASK).await.unwrap(), BmcTask::New);
}

#[tokio::test]
async fn tasks_that_cannot_be_read_now_are_not_missing() {
    let next = "/redfish/v1/TaskService/Tasks?page=2";
    let paged = json!({"Members": [{"@odata.id": TASK}], "Members@odata.nextLink": next});
    let tree = tree(&[(TASKS, paged)]);
    let broken = async |path: &'static str, status: u16| {
        Fixture::serve(&tree, move |asked, _| {
            let answer = || refusal(status, "Base.1.8.GeneralError", "No.");
            asked.path.ends_with(path).then(answer)
        })
        .await
    };
    for path in ["/TaskService", "/TaskService/Tasks", "/TaskService/Tasks?page=2"] {
        let error = raid(&broken(path, 500).await).tasks().await.unwrap_err();
        assert!(error.is_transient(), "{path}: {error}");
        let error = raid(&broken(path, 500).await).change_since(STORAGE, &[]).await.unwrap_err();
        assert!(error.is_transient(), "{path}: {error}");
    }
    for path in ["/TaskService", "/TaskService/Tasks"] {
        for status in [403, 404, 501] {
            assert_eq!(raid(&broken(path, status).await).tasks().await.unwrap(), None, "{path}");
        }
    }
    let error = raid(&broken("/JID_2", 500).await).change_since(STORAGE, &[]).await.unwrap_err();
    assert!(error.is_transient(), "{error}");
    let gone = broken("/JID_2", 404).await;
    assert_eq!(raid(&gone).change_since(STORAGE, &[]).await.unwrap(), None);
}

#[tokio::test]
async fn a_full_queue_of_jobs_is_a_reason_to_ask_again() {
    let fixture = Fixture::serve(&tree(&[]), |asked, _| {
        let full = || refusal(400, "Base.1.8.ResourceExhaustion", "The queue of jobs is full.");
        (asked.method == "POST").then(full)
    })
    .await;
    let error = raid(&fixture).create(&wanted()).await.unwrap_err();
    assert!(matches!(error, BmcError::Refused { transient: true, .. }), "{error:?}");
    assert_eq!(fixture.count("POST", VOLUMES), 1);
}

#[tokio::test]
async fn newer_controllers_and_missing_storage_are_understood() {
    let link = |path: String| json!({"@odata.id": path});
    let newer = json!({
        "@odata.id": STORAGE, "Id": "RAID.1", "Volumes": link(VOLUMES.to_owned()),
        "Controllers": link(format!("{STORAGE}/Controllers")),
    });
    let controllers = json!({"Members": [{"Id": "0", "SupportedRAIDTypes": ["RAID5"]}]});
    let path = format!("{STORAGE}/Controllers");
    let changes = [(STORAGE, newer), (path.as_str(), controllers)];
    let fixture = Fixture::serve(&tree(&changes), silent).await;
    let read = raid(&fixture).controllers().await.unwrap();
    assert_eq!(read[0].levels, Some(vec![RaidLevel::Raid5]));

    let fixture = Fixture::serve(&tree(&[(SYSTEM, json!({}))]), silent).await;
    let error = raid(&fixture).controllers().await.unwrap_err();
    assert_eq!(error.to_string(), "this BMC cannot make RAID volumes: it shows no storage");
}
