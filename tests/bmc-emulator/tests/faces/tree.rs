//! Walks the Redfish tree by its links, and checks the answers to bad requests.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::process::Command;

use bmc_emulator::BmcKind;
use reqwest::Method;
use serde_json::{Value, json};

use crate::rack::{PASSWORD, PROFILES, TestMachine, USER, spec};

/// All paths in an `@odata.id` below `value`, without the part after `#`.
fn links(value: &Value, found: &mut BTreeSet<String>) {
    if let Some(object) = value.as_object() {
        let id = object.get("@odata.id").and_then(Value::as_str);
        found.extend(id.and_then(|id| id.split('#').next()).map(str::to_owned));
        object.values().for_each(|inner| links(inner, found));
    }
    value.as_array().into_iter().flatten().for_each(|inner| links(inner, found));
}

/// All documents that can be reached from the root.
async fn walk(bench: &TestMachine) -> BTreeMap<String, Value> {
    let mut documents = BTreeMap::new();
    let mut waiting = VecDeque::from(["/redfish/v1/".to_owned()]);
    while let Some(path) = waiting.pop_front() {
        if documents.contains_key(&path) {
            continue;
        }
        let document = bench.get(&path).await;
        let mut found = BTreeSet::new();
        links(&document, &mut found);
        waiting.extend(found);
        documents.insert(path, document);
    }
    documents
}

#[tokio::test]
async fn every_link_of_every_profile_leads_somewhere() {
    for profile in PROFILES {
        let bench = TestMachine::redfish(profile).await;
        let (status, _) =
            bench.send(Method::POST, &reset_target(&bench).await, json!({"ResetType": "On"})).await;
        assert!((200..300).contains(&status), "{profile}: {status}");

        let documents = walk(&bench).await;
        let least = if profile == "poor" { 5 } else { 40 };
        assert!(documents.len() >= least, "{profile} has only {} resources", documents.len());
        for (path, document) in &documents {
            let kind = document["@odata.type"].as_str().unwrap_or_default();
            assert!(kind.starts_with('#'), "{profile}: {path} does not name its type");
            assert_eq!(document["@odata.id"], path.as_str(), "{profile}: {path}");
            assert!(document["Name"].is_string(), "{profile}: {path} has no name");
            let is_collection = document.get("Members").is_some();
            assert!(is_collection || document["Id"].is_string(), "{profile}: {path} has no id");
            let segment = path.trim_end_matches('/').rsplit('/').next().unwrap();
            if document["Id"].is_string() && path != "/redfish/v1/" {
                assert_eq!(document["Id"], segment, "{profile}: {path}");
            }
        }
    }
}

/// The path of the reset action, found in the system's document.
async fn reset_target(bench: &TestMachine) -> String {
    let system = bench.get(&bench.system().await).await;
    system["Actions"]["#ComputerSystem.Reset"]["target"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_inventory_matches_the_machine() {
    let bench = TestMachine::redfish("dell-idrac").await;
    let documents = walk(&bench).await;
    let of_kind = |kind: &str| -> Vec<&Value> {
        documents
            .values()
            .filter(|document| document["@odata.type"].as_str().unwrap().starts_with(kind))
            .collect()
    };
    let system = of_kind("#ComputerSystem.v")[0];
    assert_eq!(system["SerialNumber"], "SN-0001");
    assert_eq!(system["MemorySummary"]["TotalSystemMemoryGiB"], 128);
    assert_eq!(system["ProcessorSummary"]["LogicalProcessorCount"], 32);
    let capacity: u64 =
        of_kind("#Memory.v").iter().map(|dimm| dimm["CapacityMiB"].as_u64().unwrap()).sum();
    assert_eq!(capacity, 131_072);
    let macs: Vec<&Value> =
        of_kind("#EthernetInterface.v").iter().filter_map(|nic| nic.get("MACAddress")).collect();
    assert_eq!(macs, ["52:54:00:00:00:01", "52:54:00:00:00:02"]);
    let disks: Vec<&Value> =
        of_kind("#Drive.v").iter().map(|drive| &drive["CapacityBytes"]).collect();
    assert_eq!(disks, [480_103_981_056_u64, 4_000_787_030_016]);
}

#[tokio::test]
async fn only_public_resources_need_no_login() {
    let bench = TestMachine::redfish("generic").await;
    for (path, status) in [
        ("/redfish", 200),
        ("/redfish/v1", 200),
        ("/redfish/v1/", 200),
        ("/redfish/v1/odata", 200),
        ("/redfish/v1/$metadata", 200),
        ("/redfish/v1/Systems", 401),
        ("/redfish/v1/Nowhere", 401),
    ] {
        let response = bench.client.get(bench.url(path)).send().await.unwrap();
        assert_eq!(response.status(), status, "{path}");
        assert_eq!(response.headers()["odata-version"], "4.0", "{path}");
        assert_eq!(response.headers().contains_key("www-authenticate"), status == 401, "{path}");
    }
}

#[tokio::test]
async fn missing_resources_and_wrong_methods_are_refused() {
    let bench = TestMachine::redfish("generic").await;
    let (status, body) = bench.send(Method::GET, "/redfish/v1/Systems/2", json!({})).await;
    assert_eq!(status, 404);
    let info = &body["error"]["@Message.ExtendedInfo"][0];
    assert_eq!(info["MessageId"], "Base.1.13.ResourceMissingAtURI");

    let response = bench.ask(Method::DELETE, "/redfish/v1/Systems/1").send().await.unwrap();
    assert_eq!(response.status(), 405);
    assert_eq!(response.headers()["allow"], "GET, HEAD, PATCH");
    let response = bench.ask(Method::GET, "/redfish/v1/Systems?$expand=.").send().await.unwrap();
    assert_eq!(response.status(), 501);
    let response = bench
        .ask(Method::GET, "/redfish/v1/Systems")
        .header("odata-version", "3.0")
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 412);
}

#[tokio::test]
async fn errors_name_the_wrong_part_of_a_body() {
    let bench = TestMachine::redfish("generic").await;
    let reset = "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset";
    let system = "/redfish/v1/Systems/1";
    for (method, path, body, message) in [
        (Method::POST, reset, json!({}), "ActionParameterMissing"),
        (Method::POST, reset, json!({"ResetType": 1}), "ActionParameterValueTypeError"),
        (Method::POST, reset, json!({"ResetType": "Off"}), "ActionParameterValueNotInList"),
        (Method::POST, reset, json!({"ResetType": "On", "Now": true}), "ActionParameterUnknown"),
        (Method::POST, reset, json!([]), "UnrecognizedRequestBody"),
        (Method::PATCH, system, json!({}), "EmptyJSON"),
        (Method::PATCH, system, json!({"Colour": "red"}), "PropertyUnknown"),
        (Method::PATCH, system, json!({"PowerState": "On"}), "PropertyNotWritable"),
        (Method::PATCH, system, json!({"Boot": 1}), "PropertyValueTypeError"),
        (
            Method::PATCH,
            system,
            json!({"Boot": {"BootSourceOverrideTarget": "Tape"}}),
            "PropertyValueNotInList",
        ),
        (
            Method::PATCH,
            system,
            json!({"Boot": {"BootSourceOverrideMode": "BIOS"}}),
            "PropertyValueNotInList",
        ),
        (
            Method::PATCH,
            system,
            json!({"Boot": {"HttpBootUri": "ftp://x"}}),
            "PropertyValueFormatError",
        ),
        (Method::PATCH, system, json!({"IndicatorLED": "Red"}), "PropertyValueNotInList"),
    ] {
        let (status, answer) = bench.send(method, path, body.clone()).await;
        assert_eq!(status, 400, "{body}");
        assert_eq!(
            answer["error"]["@Message.ExtendedInfo"][0]["MessageId"],
            format!("Base.1.13.{message}"),
            "{body}"
        );
    }
    let response = bench
        .ask(Method::POST, reset)
        .body("{\"ResetType\": ")
        .header("content-type", "application/json");
    assert_eq!(response.send().await.unwrap().status(), 400);
    let response = bench.ask(Method::POST, reset).body("ResetType=On");
    assert_eq!(response.send().await.unwrap().status(), 415);
    let response = bench.ask(Method::POST, reset).body(vec![b' '; 70_000]);
    assert_eq!(response.send().await.unwrap().status(), 413);
    assert!(!bench.machine.power().borrow().on);
}

#[tokio::test]
async fn curl_reads_the_tree_over_https() {
    let mut spec = spec("r1u9", BmcKind::Redfish, "hpe-ilo");
    spec.bmc.tls = true;
    let bench = TestMachine::of(spec).await;
    let certificate = std::env::temp_dir().join(format!("bmc-emulator-{}.pem", std::process::id()));
    std::fs::write(&certificate, bench.at.certificate_pem.as_deref().unwrap()).unwrap();

    let mut command = Command::new("curl");
    command.args([
        "--silent",
        "--show-error",
        "--fail",
        "--user",
        &format!("{USER}:{PASSWORD}"),
        "--cacert",
    ]);
    command.arg(&certificate).arg(bench.url("/redfish/v1/Systems/1/"));
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap();
    std::fs::remove_file(certificate).unwrap();
    let output = output.expect("curl runs; it is in Debian's package `curl`");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let system: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(system["@odata.id"], "/redfish/v1/Systems/1/");
}
