//! The program `bmc-emulator`, from a file of machines to an answer.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::rack::client;

/// Stops the program at the end of the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const RACK: &str = "
- name: r1u1
  uuid: 7d0c3a52-93a2-4f0b-8d5e-0c6f7a1b2c3d
  serial: S1
  manufacturer: Acme
  model: Roadrunner
  firmware: bios
  nics: [{ mac: '52:54:00:00:00:01', speed_mbps: 1000 }]
  cpus: 4
  memory_mib: 4096
  bmc: { kind: redfish, address: '127.0.0.1:0', username: admin, password: pw }
- name: r1u2
  uuid: 7d0c3a52-93a2-4f0b-8d5e-0c6f7a1b2c3e
  serial: S2
  manufacturer: Acme
  model: Roadrunner
  firmware: uefi
  cpus: 4
  memory_mib: 4096
  bmc: { kind: ipmi, address: '127.0.0.1:0', username: admin, password: pw, profile: poor }
";

#[tokio::test]
async fn a_file_of_machines_is_served_with_a_guest_in_each() {
    let mut rack = tempfile::NamedTempFile::new().unwrap();
    rack.write_all(RACK.as_bytes()).unwrap();
    let mut program = Command::new(env!("CARGO_BIN_EXE_bmc-emulator"))
        .args(["--control", "127.0.0.1:0", "--machines"])
        .arg(rack.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let out = BufReader::new(program.stdout.take().unwrap());
    let _running = Running(program);
    let lines: Vec<String> = out.lines().take(3).map(Result::unwrap).collect();
    let redfish = lines[0].strip_prefix("r1u1 ").unwrap();
    assert!(lines[1].starts_with("r1u2 ipmi://127.0.0.1:"), "{lines:?}");
    let control = lines[2].strip_prefix("control ").unwrap();

    let client = client(None);
    let send = async |method: Method, path: &str, body: Value| {
        let request = client.request(method, format!("{redfish}/redfish/v1/Systems/1{path}"));
        request.basic_auth("admin", Some("pw")).json(&body).send().await.unwrap()
    };
    let boot =
        json!({"Boot": {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once"}});
    assert_eq!(send(Method::PATCH, "", boot).await.status(), 200);
    let on = json!({"ResetType": "On"});
    assert_eq!(send(Method::POST, "/Actions/ComputerSystem.Reset", on).await.status(), 204);
    // The guest uses up the override when it starts.
    let taken = async {
        loop {
            let system: Value = send(Method::GET, "", json!({})).await.json().await.unwrap();
            assert_eq!(system["PowerState"], "On");
            if system["Boot"]["BootSourceOverrideEnabled"] == "Disabled" {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(10), taken)
        .await
        .expect("the guest takes the override");
    let log = client.get(format!("{control}/_control/machines/r1u1/log")).send().await.unwrap();
    assert_eq!(log.json::<Value>().await.unwrap().as_array().unwrap().len(), 2);
}

#[test]
fn a_bad_file_is_refused_with_the_field() {
    let mut rack = tempfile::NamedTempFile::new().unwrap();
    rack.write_all(RACK.replace("speed_mbps", "speed").as_bytes()).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_bmc-emulator"))
        .arg("--machines")
        .arg(rack.path())
        .output()
        .unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("speed"), "{said}");
}
