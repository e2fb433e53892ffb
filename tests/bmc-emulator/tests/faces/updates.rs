//! Updates of firmware over Redfish.

use std::time::Duration;

use bmc_emulator::{Outcome, Request};
use reqwest::Method;
use serde_json::{Value, json};

use crate::rack::TestMachine;

const UPDATE: &str = "/redfish/v1/UpdateService/Actions/UpdateService.SimpleUpdate";
const INVENTORY: &str = "/redfish/v1/UpdateService/FirmwareInventory";

/// Requests an update of the component at this path of the inventory.
async fn update(bench: &TestMachine, image: &str, target: &str) -> (u16, Value) {
    let body = json!({
        "ImageURI": format!("http://10.0.0.1/{image}"), "TransferProtocol": "HTTP", "Targets": [format!("{INVENTORY}/{target}")],
    });
    bench.send(Method::POST, UPDATE, body).await
}

async fn version(bench: &TestMachine, entry: &str) -> Value {
    bench.get(&format!("{INVENTORY}/{entry}")).await["Version"].clone()
}

async fn start(bench: &TestMachine) {
    let reset =
        format!("{}/Actions/ComputerSystem.Reset", bench.system().await.trim_end_matches('/'));
    let (status, answer) = bench.send(Method::POST, &reset, json!({"ResetType": "On"})).await;
    assert!(status < 300, "{answer}");
}

#[tokio::test]
async fn a_bios_update_is_a_task_that_ends_with_the_next_start() {
    let bench = TestMachine::redfish("dell-idrac").await;
    let (status, task) = update(&bench, "bios-2.20.1.bin", "BIOS").await;
    assert_eq!((status, &task["TaskState"]), (202, &json!("Starting")), "{task}");
    let path = task["@odata.id"].as_str().unwrap();
    assert_eq!(task["Payload"]["TargetUri"], UPDATE);
    let monitor = task["TaskMonitor"].as_str().unwrap();
    assert_eq!(bench.ask(Method::GET, monitor).send().await.unwrap().status(), 202);
    assert_eq!(version(&bench, "BIOS").await, "2.19.1");
    start(&bench).await;
    assert_eq!(bench.get(path).await["TaskState"], "Completed");
    assert_eq!(version(&bench, "BIOS").await, "2.20.1");
    let system = bench.get(&bench.system().await).await;
    assert_eq!(system["BiosVersion"], "2.20.1");
    let request = Request::UpdateFirmware { component: "bios".into(), version: "2.20.1".into() };
    assert_eq!(bench.machine.log()[0].request, request);
}

#[tokio::test]
async fn a_pushed_image_waits_for_the_next_start_without_a_task() {
    let bench = TestMachine::redfish("hpe-ilo").await;
    let service = bench.get("/redfish/v1/UpdateService").await;
    assert_eq!(service["Actions"], Value::Null);
    let address = service["MultipartHttpPushUri"].as_str().unwrap();
    let push = async |parameters: &str| {
        let body = format!(
            "--xyz\r\nContent-Disposition: form-data; name=\"UpdateParameters\"\r\nContent-Type: application/json\r\n\r\n{parameters}\r\n\
             --xyz\r\nContent-Disposition: form-data; name=\"UpdateFile\"; filename=\"bios-3.bin\"\r\n\r\n\0image\r\n--xyz--\r\n"
        );
        let asked = bench.ask(Method::POST, address).body(body);
        let answer =
            asked.header("content-type", "multipart/form-data; boundary=xyz").send().await.unwrap();
        (answer.status().as_u16(), answer.json::<Value>().await.unwrap())
    };
    let (status, task) =
        push(&json!({"Targets": [format!("{INVENTORY}/BIOS/")]}).to_string()).await;
    assert_eq!((status, &task["TaskState"]), (202, &json!("Completed")), "{task}");
    assert_eq!(version(&bench, "BIOS").await, "U30 v2.90");
    start(&bench).await;
    assert_eq!(version(&bench, "BIOS").await, "3");
    assert_eq!(push("{").await.0, 400);
    assert_eq!(push(r#"{"Colour": 1}"#).await.0, 400);
    let (status, _) = bench.send(Method::POST, address, json!({})).await;
    assert_eq!(status, 415);
}

#[tokio::test]
async fn a_bmc_restarts_after_an_update_of_itself() {
    let bench = TestMachine::redfish("generic").await;
    bench.machine.faults().update(|faults| faults.bmc_restart = Some(Duration::from_millis(400)));
    let (status, _) = update(&bench, "bmc-3.0.bin", "BMC").await;
    assert_eq!(status, 202);
    let silent = bench.ask(Method::GET, INVENTORY).timeout(Duration::from_millis(100)).send().await;
    assert!(silent.unwrap_err().is_timeout());
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(version(&bench, "BMC").await, "3.0");
}

#[tokio::test]
async fn updates_can_fail_hang_and_be_refused() {
    let bench = TestMachine::redfish("generic").await;
    let faults = bench.machine.faults();
    faults.update(|faults| faults.job_queue_full = true);
    let answer = bench.ask(Method::POST, UPDATE).json(&json!({"ImageURI": "http://h/bios-1.bin"}));
    let answer = answer.send().await.unwrap();
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["retry-after"]),
        (503, &"1".parse().unwrap())
    );
    faults.update(|faults| faults.job_queue_full = false);
    for (body, status) in [
        (json!({}), 400),
        (json!({"ImageURI": "x"}), 400),
        (json!({"ImageURI": "http://h/bios-1.bin", "Colour": 1}), 400),
        (json!({"ImageURI": "http://h/bios-1.bin", "TransferProtocol": "TFTP"}), 400),
        (json!({"ImageURI": "http://h/bios-1.bin", "Targets": ["/redfish/v1/Chassis/1"]}), 400),
        (json!({"ImageURI": "http://h/gpu-1.bin"}), 400),
    ] {
        assert_eq!(bench.send(Method::POST, UPDATE, body).await.0, status);
    }
    faults.update(|faults| faults.updates_fail = Some("No signature.".to_owned()));
    let (_, task) = update(&bench, "bios-2.bin", "BIOS").await;
    assert_eq!(task["TaskState"], "Exception");
    assert_eq!(task["Messages"][0]["Message"], "No signature.");
    let monitor = task["TaskMonitor"].as_str().unwrap();
    assert_eq!(bench.ask(Method::GET, monitor).send().await.unwrap().status(), 400);
    faults.update(|faults| {
        faults.updates_fail = None;
        faults.updates_never_end = true;
    });
    let (_, task) = update(&bench, "bios-2.bin", "BIOS").await;
    start(&bench).await;
    assert_eq!(bench.get(task["@odata.id"].as_str().unwrap()).await["TaskState"], "Running");
    let accepted = bench.machine.log().into_iter().filter(|it| it.outcome == Outcome::Accepted);
    let is_update = |request: &Request| matches!(request, Request::UpdateFirmware { .. });
    assert_eq!(accepted.filter(|it| is_update(&it.request)).count(), 2);
}
