//! RAID volumes over Redfish.

use bmc_emulator::{BmcKind, Machine, Request};
use reqwest::Method;
use serde_json::{Value, json};

use crate::rack::{TestMachine, spec};

const GIB: u64 = 1 << 30;

/// A machine of this family with three equal disks of 100 GiB, and the path of its only storage.
async fn bench(profile: &str) -> (TestMachine, String) {
    let mut spec = spec("r1u7", BmcKind::Redfish, profile);
    let first = spec.disks[0].clone();
    spec.disks = ["D1", "D2", "D3"]
        .map(|serial| bmc_emulator::DiskSpec {
            serial: serial.to_owned(),
            size_bytes: 100 * GIB,
            ..first.clone()
        })
        .to_vec();
    let bench = TestMachine::of(spec).await;
    let system = bench.get(&bench.system().await).await;
    let all = bench.get(system["Storage"]["@odata.id"].as_str().unwrap()).await;
    let storage = all["Members"][0]["@odata.id"].as_str().unwrap().to_owned();
    (bench, storage)
}

/// The body that makes a volume of this level on the first drives.
async fn body(bench: &TestMachine, storage: &str, level: &str, drives: usize) -> Value {
    let drives = bench.get(storage).await["Drives"].as_array().unwrap()[..drives].to_vec();
    json!({"RAIDType": level, "Links": {"Drives": drives}})
}

async fn volumes(bench: &TestMachine, storage: &str) -> (String, Value) {
    let storage = bench.get(storage).await;
    let path = storage["Volumes"]["@odata.id"].as_str().unwrap().to_owned();
    let listed = bench.get(&path).await;
    (path, listed)
}

async fn start(bench: &TestMachine) {
    let reset =
        format!("{}/Actions/ComputerSystem.Reset", bench.system().await.trim_end_matches('/'));
    let (status, answer) = bench.send(Method::POST, &reset, json!({"ResetType": "On"})).await;
    assert!(status < 300, "{answer}");
}

#[tokio::test]
async fn a_volume_is_made_and_deleted_at_once() {
    let (bench, storage) = bench("generic").await;
    let (path, listed) = volumes(&bench, &storage).await;
    let times = &listed["@Redfish.OperationApplyTimeSupport"]["SupportedValues"];
    assert_eq!((times, &listed["Members"]), (&json!(["Immediate", "OnReset"]), &json!([])));
    let mut wanted = body(&bench, &storage, "RAID5", 3).await;
    wanted["Name"] = json!("data");
    let (status, made) = bench.send(Method::POST, &path, wanted.clone()).await;
    assert_eq!((status, &made["Name"], &made["RAIDType"]), (201, &json!("data"), &json!("RAID5")));
    assert_eq!(
        (&made["CapacityBytes"], &made["Links"]["Drives"]),
        (&json!(200 * GIB), &wanted["Links"]["Drives"])
    );
    let drives = ["D1", "D2", "D3"].map(str::to_owned).to_vec();
    let request = Request::CreateVolume { level: "RAID5".to_owned(), drives };
    assert_eq!(bench.machine.log()[0].request, request);
    let kept = Machine::resumed(bench.machine.spec().clone(), bench.machine.kept());
    assert_eq!(kept.volumes(), bench.machine.volumes());

    let (status, _) = bench.send(Method::POST, &path, wanted).await;
    assert_eq!(status, 400, "the drives are full");
    let volume = made["@odata.id"].as_str().unwrap();
    assert_eq!(bench.send(Method::DELETE, volume, json!({})).await.0, 204);
    assert_eq!(bench.send(Method::DELETE, volume, json!({})).await.0, 404);
    assert!(bench.machine.volumes().is_empty());
}

#[tokio::test]
async fn a_job_waits_for_the_next_start() {
    let (bench, storage) = bench("dell-idrac").await;
    let (path, _) = volumes(&bench, &storage).await;
    let mut wanted = body(&bench, &storage, "RAID1", 2).await;
    wanted["CapacityBytes"] = json!(10 * GIB);
    wanted["@Redfish.OperationApplyTime"] = json!("OnReset");
    let (status, task) = bench.send(Method::POST, &path, wanted.clone()).await;
    assert_eq!((status, &task["TaskState"]), (202, &json!("Starting")), "{task}");
    assert_eq!(task["Payload"], json!({"HttpOperation": "POST", "TargetUri": path}));
    assert!(bench.machine.volumes().is_empty());
    assert_eq!(bench.send(Method::POST, &path, wanted).await.0, 503, "one job at a time");
    start(&bench).await;
    let task = task["@odata.id"].as_str().unwrap();
    assert_eq!(bench.get(task).await["TaskState"], "Completed");
    let (_, listed) = volumes(&bench, &storage).await;
    let volume = bench.get(listed["Members"][0]["@odata.id"].as_str().unwrap()).await;
    assert_eq!(volume["CapacityBytes"], 10 * GIB);
}

#[tokio::test]
async fn an_older_service_has_volume_types_and_takes_no_names() {
    let (bench, storage) = bench("supermicro").await;
    let (path, listed) = volumes(&bench, &storage).await;
    assert_eq!(listed["@Redfish.OperationApplyTimeSupport"], Value::Null);
    let wanted = body(&bench, &storage, "RAID1", 2).await;
    let with = |name: &str, value: Value| {
        let mut body = wanted.clone();
        body.as_object_mut().unwrap().remove("RAIDType");
        body["VolumeType"] = json!("Mirrored");
        body[name] = value;
        body
    };
    for refused in [
        wanted.clone(),
        with("Name", json!("x")),
        with("VolumeType", json!("RawDevice")),
        with("@Redfish.OperationApplyTime", json!("Immediate")),
    ] {
        assert_eq!(bench.send(Method::POST, &path, refused).await.0, 400);
    }
    let (status, made) = bench.send(Method::POST, &path, with("CapacityBytes", json!(GIB))).await;
    assert_eq!((status, &made["VolumeType"]), (201, &json!("Mirrored")), "{made}");
    assert_eq!(made["RAIDType"], Value::Null);
}

#[tokio::test]
async fn changes_can_be_wrong_fail_hang_and_be_refused() {
    let (bench, storage) = bench("ami-megarac").await;
    let (path, _) = volumes(&bench, &storage).await;
    let wanted = body(&bench, &storage, "RAID1", 2).await;
    let with = |name: &str, value: Value| {
        let mut body = wanted.clone();
        body[name] = value;
        body
    };
    for refused in [
        json!({}),
        with("Colour", json!(1)),
        with("RAIDType", json!("RAID7")),
        with("RAIDType", json!("RAID5")),
        with("CapacityBytes", json!(101 * GIB)),
        with("Links", json!({"Drives": [{"@odata.id": "/redfish/v1/Systems/Self"}]})),
        with("@Redfish.OperationApplyTime", json!("OnReset")),
    ] {
        assert_eq!(bench.send(Method::POST, &path, refused.clone()).await.0, 400, "{refused}");
    }
    let faults = bench.machine.faults();
    faults.update(|faults| faults.job_queue_full = true);
    assert_eq!(bench.send(Method::POST, &path, wanted.clone()).await.0, 503);
    faults.update(|faults| {
        faults.job_queue_full = false;
        faults.volumes_fail = Some("A drive is foreign.".to_owned());
    });
    let (status, task) = bench.send(Method::POST, &path, wanted.clone()).await;
    assert_eq!((status, &task["TaskState"]), (202, &json!("Exception")));
    assert_eq!(task["Messages"][0]["Message"], "A drive is foreign.");
    faults.update(|faults| {
        faults.volumes_fail = None;
        faults.volumes_never_end = true;
    });
    let (_, task) = bench.send(Method::POST, &path, wanted.clone()).await;
    start(&bench).await;
    assert_eq!(bench.get(task["@odata.id"].as_str().unwrap()).await["TaskState"], "Running");
    faults.update(|faults| faults.volumes_never_end = false);
    assert!(bench.machine.volumes().is_empty());
}

#[tokio::test]
async fn a_controller_without_raid_takes_no_volumes() {
    let (bench, storage) = bench("hpe-ilo").await;
    let (path, _) = volumes(&bench, &storage).await;
    let controllers = bench.get(&storage).await["StorageControllers"].clone();
    assert_eq!(controllers[0]["SupportedRAIDTypes"], json!([]));
    let wanted = body(&bench, &storage, "RAID1", 2).await;
    assert_eq!(bench.send(Method::POST, &path, wanted).await.0, 405);
}
