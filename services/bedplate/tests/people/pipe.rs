//! Tests of `bedplate` in a pipe, whose reader is a program: the output parses, the exit status is distinct, and nothing else is printed.

use std::process::Stdio;

use api_client::baremetald::Node;
use api_client::clusterd::Quotas;
use expect_test::expect;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;

use crate::fixture::Fixture;

/// The argon2id hash of "password".
const HASH: &str =
    "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4";

#[tokio::test]
async fn every_list_is_written_for_people_and_for_programs() {
    let given = Fixture::start().await;
    given.node("n1").await;
    for noun in [
        &["node", "list"][..],
        &["rack", "list"],
        &["discovery", "list"],
        &["reservation", "list"],
        &["cluster", "list"],
        &["vm", "list"],
        &["vm", "images"],
        &["vm", "snapshots"],
        &["quota", "show"],
        &["keys", "list"],
        &["audit", "list"],
        &["policy"],
        &["node", "explain", "n1"],
        &["profile", "list"],
        &["where", "n1"],
    ] {
        let json = given.run(&[noun, &["-o", "json"]].concat()).await.done();
        let json: Value = serde_json::from_str(&json).unwrap();
        let yaml = given.run(&[&["--output", "yaml"][..], noun].concat()).await.done();
        let yaml: Value = serde_saphyr::from_str(&yaml).unwrap();
        // The commands of this test add rows to the audit trail between the two runs.
        assert!(noun[0] == "audit" || yaml == json, "{noun:?}: {yaml} is not {json}");
        let table = given.run(noun).await.done();
        assert!(table.lines().all(|line| line.trim_end() == line), "{noun:?}: {table:?}");
    }
}

#[tokio::test]
async fn conductors_are_listed_and_drained_by_their_host_names() {
    let given = Fixture::start().await;
    for service in ["machines", "clusters"] {
        given.run(&["conductor", "list", "--service", service]).await.done();
        for verb in ["drain", "undrain"] {
            let refused = given.run(&["conductor", verb, "none-such", "--service", service]).await;
            refused.failed_with(4, &["Conductor none-such could not be found"]);
        }
    }
}

#[tokio::test]
async fn a_quota_is_set_and_shown() {
    let given = Fixture::start().await;
    given.run(&["quota", "set", "lab", "vms=5", "lease_seconds=-1"]).await.done();
    given.run(&["quota", "set", "lab", "--user", "mia", "vms=2"]).await.done();
    let shown = given.run(&["quota", "show", "--project", "lab", "--user", "mia"]).await.done();
    let line = shown.lines().find(|line| line.trim_start().starts_with("vms")).expect("its line");
    assert_eq!(line.split_whitespace().collect::<Vec<_>>().join(" "), "vms 0 5 0 2");
    given.run(&["quota", "set", "lab", "gpus=1"]).await.done();
    let reported =
        given.run(&["quota", "set", "lab", "lease_seconds=default", "-o", "json"]).await.done();
    let Quotas { project, .. } = serde_json::from_str(&reported).unwrap();
    let limits = ["vms", "gpus", "vcpus"].map(|name| project[name].limit);
    assert_eq!(limits, [5, 1, -1], "what is not named stays as it is: {reported}");
    given.run(&["quota", "set", "lab"]).await.failed_with(2, &["NAME=LIMIT"]);
    given.run(&["quota", "set", "lab", "gold=1"]).await.failed_with(1, &["gold"]);
    given.run(&["quota", "set", "lab", "vms"]).await.failed_with(2, &["NAME=LIMIT"]);
}

#[tokio::test]
async fn a_table_has_a_header_and_a_line_for_each() {
    let given = Fixture::start().await;
    let ids = [given.node("n1").await, given.node("a-node-with-a-long-name").await];
    let table = given.run(&["node", "list"]).await.done();
    // The ids are random, and nodes are listed by id.
    let mut lines: Vec<String> = table.lines().map(str::to_owned).collect();
    lines[1..].sort();
    let shown =
        lines.join("\n").replace(&ids[0], &"1".repeat(36)).replace(&ids[1], &"2".repeat(36));
    expect![[r#"
         Name                     UUID                                  Driver   State   Power  Maintenance
         a-node-with-a-long-name  222222222222222222222222222222222222  redfish  enroll
         n1                       111111111111111111111111111111111111  redfish  enroll"#]]
    .assert_eq(&shown.replace("\n ", "\n")[1..]);
}

#[tokio::test]
async fn the_exit_status_says_what_went_wrong_and_the_error_what_to_do() {
    let given = Fixture::start().await;
    given.run(&["node", "list"]).await.done();
    given.run(&["nodes"]).await.failed_with(2, &["Usage"]);
    given.run(&["rack", "up", "r1", "--image", "http://i/d"]).await.failed_with(2, &["--checksum"]);
    given
        .run(&["node", "explain", "nobody"])
        .await
        .failed_with(4, &["nobody", "`bedplate node list`"]);
    given
        .run(&["cluster", "show", "blue"])
        .await
        .failed_with(4, &["blue", "`bedplate cluster list`"]);
    given
        .run(&["cluster", "events", "blue", "--watch"])
        .await
        .failed_with(4, &["`bedplate cluster list`"]);
    let nowhere = ["--url", "http://127.0.0.1:1", "node", "list"];
    given.run(&nowhere).await.failed_with(6, &["baremetald", "--url", "Hint:"]);
    let bad = ["audit", "list", "clusters", "--since", "yesterday"];
    given.run(&bad).await.failed_with(1, &["since: must be a time"]);
    std::fs::write(given.folder.path().join("r1.yaml"), "rack: r1\nmachines: [{name: a}]\n")
        .unwrap();
    given
        .run(&["rack", "enroll", "r1.yaml"])
        .await
        .failed_with(1, &["r1.yaml", "nothing was enrolled"]);
    // `--help` ends with status 0, and lists the exit statuses.
    let help = given.run(&["--help"]).await.done();
    assert!(help.contains("  5    timed out"), "{help}");
}

#[tokio::test]
async fn a_refused_login_has_its_own_exit_status() {
    let given = Fixture::start().await;
    std::fs::write(given.folder.path().join("htpasswd"), format!("ann:{HASH}\n")).unwrap();
    let text = format!(
        "state_dir = {0:?}\n[api]\nlisten = '127.0.0.1:0'\nauth = 'http_basic'\nhtpasswd = '{1}/htpasswd'\n",
        given.folder.path().join("closed"),
        given.folder.path().display(),
    );
    let service = baremetal::Service::start(toml::from_str(&text).unwrap()).await.unwrap();
    let url = format!("http://{}", service.listeners().api);
    let stop = tokio_util::sync::CancellationToken::new();
    let running = tokio::spawn(service.run(stop.clone()));
    given.run(&["--url", &url, "rack", "list"]).await.failed_with(3, &["Hint:", "--password-file"]);
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_timeout_has_its_own_exit_status() {
    let given = Fixture::start().await;
    // A BMC that accepts connections and never answers.
    let bmc = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = bmc.local_addr().unwrap();
    let rack = format!(
        "rack: r1\nmachines:\n- name: r1u1\n  mac: 52:54:00:de:00:01\n  bmc: {{type: redfish, address: 'https://{address}', user: u, password_file: p}}\n"
    );
    std::fs::write(given.folder.path().join("p"), "secret\n").unwrap();
    std::fs::write(given.folder.path().join("r1.yaml"), rack).unwrap();
    let reported = given.run(&["rack", "enroll", "r1.yaml"]).await.done();
    assert_eq!(reported, "rack r1: 1 machines enrolled, 0 updated, 0 unchanged\n");
    let up = ["rack", "up", "r1", "--reach", "inspected", "--timeout", "1s"];
    given
        .run(&up)
        .await
        .failed_with(5, &["timed out after 1 s waiting for rack r1", "Hint: wait again"]);
    let wait = ["-o", "json", "rack", "status", "r1", "--wait", "--timeout", "1s"];
    let said = given.run(&wait).await;
    assert_eq!(said.out, "", "an answer there is only at the end");
    said.failed_with(5, &["rack r1"]);
}

#[tokio::test]
async fn a_closed_pipe_ends_the_program_without_a_message() {
    let given = Fixture::start().await;
    let mut command = given.command(&["policy"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().await.unwrap();
    assert_eq!(output.status.code(), Some(141));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[tokio::test]
async fn a_watched_list_is_printed_again_after_a_change() {
    let given = Fixture::start().await;
    let mut command = given.command(&["-o", "json", "node", "list", "--watch"]);
    let mut child = command.stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = async || -> Vec<Node> {
        serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap()
    };
    assert_eq!(next().await, []);
    given.node("n1").await;
    assert_eq!(next().await[0].label(), "n1");
}

#[tokio::test]
async fn a_console_works_through_pipes() {
    let given = Fixture::start().await;
    let body = json!({"name": "n1", "driver": "fake-hardware", "console_interface": "fake"});
    given.send_json(Method::POST, &format!("{}/v1/nodes", given.machines), body).await;
    let body = json!({"name": "n2", "driver": "fake-hardware", "console_interface": "no-console"});
    given.send_json(Method::POST, &format!("{}/v1/nodes", given.machines), body).await;
    given.run(&["node", "console", "nobody"]).await.failed_with(4, &["`bedplate node list`"]);
    given.run(&["node", "console", "n1"]).await.failed_with(1, &["is not enabled"]);
    given.run(&["node", "console", "n2", "--enable"]).await.failed_with(1, &["no-console"]);

    let mut command = given.command(&["node", "console", "n1", "--enable"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut shown = async |words: &str| {
        while !out.next_line().await.unwrap().expect("it goes on").contains(words) {}
    };
    shown("This is not a machine").await;
    let mut typed = child.stdin.take().unwrap();
    // The escape `~.` is recognised on a terminal only.
    typed.write_all(b"~.\nuname\n").await.unwrap();
    shown("~.").await;
    shown("uname").await;
    // The end of standard input does not end the console: output of the machine is still printed.
    drop(typed);
    let log = given.run(&["node", "console", "n1", "--log"]).await.done();
    assert!(log.contains("This is not a machine") && log.contains("uname"), "{log}");

    let off = json!({"enabled": false});
    given
        .send_json(Method::PUT, &format!("{}/v1/nodes/n1/states/console", given.machines), off)
        .await;
    let output = child.wait_with_output().await.unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        (output.status.code(), error.as_str()),
        (Some(1), "bedplate: the console was disabled\n")
    );
}
