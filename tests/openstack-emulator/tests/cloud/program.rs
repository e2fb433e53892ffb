//! The program `openstack-emulator`, as a script uses it.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::somebody::client;

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn the_program_prints_its_address_and_takes_faults_over_http() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("clouds.yaml");
    let mut command = Command::new(env!("CARGO_BIN_EXE_openstack-emulator"));
    command
        .arg("--clouds-out")
        .arg(&file)
        .args(["--endpoint", "container-infra=http://127.0.0.1:9511/v1"]);
    let mut running = Running(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(running.0.stdout.take().unwrap()).lines();
    let mut line = || lines.next().unwrap().unwrap().split_once(' ').unwrap().1.to_owned();
    let (identity, control) = (line(), line());

    let clouds: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(clouds["clouds"]["alice"]["auth"]["auth_url"], identity);
    let client = client();
    let answer = client.get(&identity).send().await.unwrap();
    assert_eq!(answer.json::<Value>().await.unwrap()["version"]["id"], "v3.14");

    let rule = json!({"path": "/identity/**", "times": 1, "act": {"answer": {"status": 503}}});
    let made = client.post(format!("{control}/rules")).json(&rule).send().await.unwrap();
    assert_eq!(made.status(), 200, "{}", made.text().await.unwrap());
    assert_eq!(client.get(&identity).send().await.unwrap().status(), 503);
    assert_eq!(client.get(&identity).send().await.unwrap().status(), 200);
    let calls: Value =
        client.get(format!("{control}/calls")).send().await.unwrap().json().await.unwrap();
    let statuses: Vec<&Value> =
        calls.as_array().unwrap().iter().map(|call| &call["status"]).collect();
    assert_eq!(statuses, [200, 503, 200]);
    let wrong =
        client.post(format!("{control}/rules")).body(r#"{"act": "dance"}"#).send().await.unwrap();
    assert_eq!(wrong.status(), 400);
}

/// Starts the program with the state in `folder`. Returns its URL once it serves.
fn kept(folder: &std::path::Path, speed: &str) -> (Running, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_openstack-emulator"));
    command.args(["--realistic", "--speed", speed, "--state"]).arg(folder.join("cloud.json"));
    command.args(["--shared-network", "lab=10.7.0.0/24"]);
    let mut running = Running(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(running.0.stdout.take().unwrap()).lines();
    let (identity, _control) = (lines.next().unwrap().unwrap(), lines.next().unwrap().unwrap());
    let url = identity.split_once(' ').unwrap().1;
    (running, url.trim_end_matches("/identity/v3").to_owned())
}

/// All servers in the control API.
async fn servers(url: &str) -> Vec<Value> {
    let answer = client().get(format!("{url}/_control/objects/server")).send().await.unwrap();
    answer.json().await.unwrap()
}

#[tokio::test]
async fn a_cloud_in_a_file_goes_on_where_it_was_killed() {
    let folder = tempfile::tempdir().unwrap();
    // So slow that the build has not ended when the program is killed.
    let (running, url) = kept(folder.path(), "0.001");
    let token = log_in(&url).await;
    let get = async |path: &str| {
        let answer = client().get(format!("{url}{path}")).header("x-auth-token", &token).send();
        answer.await.unwrap().json::<Value>().await.unwrap()
    };
    let images = get("/image/v2/images?name=cirros").await;
    let networks = get("/network/v2.0/networks?name=lab").await;
    let body = json!({"server": {
        "name": "one", "flavorRef": "1", "imageRef": images["images"][0]["id"],
        "networks": [{"uuid": networks["networks"][0]["id"]}],
    }});
    let asked = client().post(format!("{url}/compute/v2.1/servers")).json(&body);
    let made = asked.header("x-auth-token", &token).send().await.unwrap();
    assert_eq!(made.status(), 202);
    let id = made.json::<Value>().await.unwrap()["server"]["id"].clone();
    drop(running);

    let (_running, url) = kept(folder.path(), "1");
    let there = servers(&url).await;
    assert_eq!((there.len(), &there[0]["id"], &there[0]["status"]), (1, &id, &json!("BUILD")));
    // The tokens are invalid, but the accounts still exist.
    log_in(&url).await;
    let text = std::fs::read_to_string(folder.path().join("cloud.json")).unwrap();
    let state: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(state["to_come"].as_array().unwrap().len(), 1, "its build is still to end");
}

async fn log_in(url: &str) -> String {
    let domain = json!({"id": "default"});
    let user = json!({"name": "alice", "domain": domain, "password": "alice-secret"});
    let body = json!({"auth": {
        "identity": {"methods": ["password"], "password": {"user": user}},
        "scope": {"project": {"name": "tenant-a", "domain": domain}},
    }});
    let asked = client().post(format!("{url}/identity/v3/auth/tokens")).json(&body);
    let answer = asked.send().await.unwrap();
    assert_eq!(answer.status(), 201);
    answer.headers()["x-subject-token"].to_str().unwrap().to_owned()
}
