//! The program, as a script uses it.

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
async fn the_program_says_where_it_is_and_misbehaves_when_told_over_http() {
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
