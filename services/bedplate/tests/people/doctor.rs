//! Tests of `bedplate doctor` on healthy and on broken installations: each finding is reported, the cause before the consequences.

use std::net::SocketAddr;
use std::path::PathBuf;

use reqwest::Method;
use rusqlite::Connection;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::fixture::{CommandOutput, Fixture};

impl Fixture {
    /// Writes a configuration for the service that listens at the URL.
    fn configuration(&self, service: &str, url: &str, more: &str) -> PathBuf {
        let file = self.folder.path().join(format!("{service}.toml"));
        let listen = url.trim_start_matches("http://");
        let state = self.folder.path().join(service);
        let text = format!("state_dir = {state:?}\n[api]\nlisten = '{listen}'\n{more}");
        std::fs::write(&file, text).unwrap();
        file
    }

    async fn doctor(&self, arguments: &[&str]) -> CommandOutput {
        let doctor = ["doctor", "--baremetald", "baremetald.toml", "--clusterd", "clusterd.toml"];
        let mut command = self.command(&[&doctor[..], arguments].concat());
        command.env_remove("BEDPLATE_URL").env_remove("BEDPLATE_CLUSTERS_URL");
        let output = command.output().await.unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        CommandOutput {
            status: output.status.code().unwrap(),
            out: text(output.stdout),
            error: text(output.stderr),
        }
    }

    fn configured(&self) {
        self.configuration("baremetald", &self.machines, "");
        self.configuration("clusterd", &self.clusters, "");
    }
}

impl CommandOutput {
    /// Returns the findings that failed, in the order of the output.
    #[track_caller]
    fn wrong(&self) -> Vec<&str> {
        assert_eq!(self.status, 1, "{}{}", self.out, self.error);
        let wrong: Vec<&str> =
            self.out.lines().filter_map(|line| line.strip_prefix("FAIL  ")).collect();
        assert!(!wrong.is_empty(), "{}", self.out);
        wrong
    }
}

/// Starts an HTTP server that answers every request with this body.
async fn server(body: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 4096]).await;
            let length = body.len();
            let answer = format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
            );
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    address
}

#[tokio::test]
async fn a_healthy_installation_passes_all_checks() {
    let given = Fixture::start().await;
    given.configured();
    let said = given.doctor(&[]).await;
    let reported = said.done();
    for line in [
        "OK    services       baremetald answers at",
        "OK    services       clusterd answers at",
        "OK    ports          baremetald listens on all its ports",
        "database (sqlite) has schema version",
        "OK    clocks         the clocks of clusterd and this machine agree",
        "SKIP  bmcs           no nodes are enrolled",
    ] {
        assert!(reported.contains(line), "{line:?} in {reported}");
    }
    let json = given.doctor(&["-o", "json"]).await.done();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["wrong"], 0);
}

#[tokio::test]
async fn a_stopped_service_is_reported_and_its_ports_are_free() {
    let given = Fixture::start().await;
    given.configured();
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    given.configuration("baremetald", &format!("http://{free}"), "");
    let said = given.doctor(&[]).await;
    let wrong = said.wrong();
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    assert!(wrong[0].starts_with("services       baremetald does not answer"), "{wrong:?}");
    assert!(said.out.contains("baremetald is stopped, and its ports are free"), "{}", said.out);
    assert!(said.out.contains("baremetal.db is an SQLite database"), "{}", said.out);
    assert!(said.error.contains("1 check failed"), "{}", said.error);
}

#[tokio::test]
async fn a_port_in_use_is_reported_before_the_consequences() {
    let given = Fixture::start().await;
    given.configured();
    let other = server("{}").await;
    given.configuration("baremetald", &format!("http://{other}"), "");
    let said = given.doctor(&[]).await;
    let wrong = said.wrong();
    assert!(
        wrong[0].starts_with(&format!(
            "ports          another program uses TCP port {other} (its API)"
        )),
        "{wrong:?}"
    );
    assert!(wrong[1].starts_with("services       the service at"), "{wrong:?}");
}

#[tokio::test]
async fn a_configuration_that_the_service_does_not_use_is_reported() {
    let given = Fixture::start().await;
    given.configured();
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    given.configuration("clusterd", &given.clusters, &format!("[nodes]\nlisten = '{free}'\n"));
    let said = given.doctor(&[]).await;
    assert!(
        said.wrong()[0]
            .starts_with("ports          clusterd answers, but does not listen on TCP port")
    );
    given.configuration(
        "baremetald",
        &given.machines,
        "[provisioning]\nkernel = 'nowhere/kernel'\n",
    );
    let said = given.doctor(&[]).await;
    assert!(said.wrong()[0].starts_with("configuration  provisioning.kernel of"), "{}", said.out);
}

#[tokio::test]
async fn tables_of_a_newer_version_are_reported() {
    let given = Fixture::start().await;
    given.configured();
    let around = Connection::open(given.folder.path().join("clusterd/clusterd.db")).unwrap();
    around.execute_batch("INSERT INTO schema_version (version) VALUES (999)").unwrap();
    let said = given.doctor(&[]).await;
    assert_eq!(said.status, 0, "{}{}", said.out, said.error);
    let doubtful = "WARN  database       clusterd's database has schema version 999";
    assert!(said.out.contains(doubtful), "{}", said.out);
    let hint = "an upgrade is in progress: restart every clusterd from the newer package";
    assert!(said.out.contains(hint), "{}", said.out);
}

#[tokio::test]
async fn an_unreachable_bmc_and_a_changed_image_are_reported() {
    let given = Fixture::start().await;
    given.configured();
    let images = server("abc").await;
    let body = json!({
        "name": "r1u1", "driver": "redfish",
        "driver_info": {"redfish_address": "http://127.0.0.1:1", "redfish_username": "u", "redfish_password": "p"},
        "instance_info": {
            "image_source": format!("http://{images}/disk.raw"),
            "image_os_hash_algo": "sha256", "image_os_hash_value": "0".repeat(64),
        },
    });
    given.send_json(Method::POST, &format!("{}/v1/nodes", given.machines), body).await;
    let said = given.doctor(&[]).await;
    let wrong = said.wrong();
    assert!(
        wrong[0].starts_with("bmcs           baremetald cannot reach 1 of 1 BMCs: r1u1: "),
        "{wrong:?}"
    );
    assert!(
        wrong[1].starts_with(&format!(
            "images         http://{images}/disk.raw does not match the checksum of node r1u1"
        )),
        "{wrong:?}"
    );
    assert!(said.error.contains("2 checks failed"), "{}", said.error);
    let said = given.doctor(&["--no-images"]).await;
    assert_eq!(said.wrong().len(), 1, "{}", said.out);
}

#[tokio::test]
async fn a_missing_access_of_clusterd_to_the_cloud_is_reported() {
    let given = Fixture::start().await;
    let emulator =
        openstack_emulator::Emulator::start(openstack_emulator::Settings::default()).await.unwrap();
    let clouds = given.folder.path().join("clouds.yaml");
    let text = emulator.cloud.clouds_yaml();
    std::fs::write(&clouds, &text).unwrap();
    given.configured();
    let cloud = format!("[cloud]\nclouds_yaml = {clouds:?}\nname = 'alice'\n");
    given.configuration("clusterd", &given.clusters, &cloud);
    let said = given.doctor(&[]).await;
    assert!(said.out.contains("clusterd's user alice may create clusters"), "{}", said.out);
    assert!(said.out.contains("the compute service answers at"), "{}", said.out);
    assert_eq!(said.status, 0, "{}", said.out);

    std::fs::write(&clouds, text.replace("alice-secret", "a-guess")).unwrap();
    let said = given.doctor(&[]).await;
    let wrong = said.wrong();
    assert!(wrong[0].contains("refuses clusterd's user"), "{wrong:?}");
    assert!(!said.out.contains("a-guess"), "{}", said.out);
    assert!(said.out.contains("check user name, password"), "{}", said.out);
}
