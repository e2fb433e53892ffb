//! How much a caller who may write and list can grow the memory of baremetald, and delay an administrator who reads at the same time.

use std::net::SocketAddr;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::Instant;

use crate::client::{Call, Client};
use crate::daemon::{Daemon, DaemonFolder};
use crate::load::LoadResult;
use crate::process;
use crate::report::{Budget, Report, Row};

/// The number of projects. Each project has the same number of the largest possible allocations.
const PROJECTS: usize = 4;
const ALLOCATIONS_EACH: usize = 50;
/// The number of sockets whose answers are never read. `LISTS` lists are requested on all of them together.
const SOCKETS: usize = 16;
const LISTS: usize = 100;
/// For how long the administrator reads.
const READS_FOR: Duration = Duration::from_secs(20);
/// The number of nodes that the administrator reads.
const NODES: usize = 100;
/// The largest JSON document in bytes, without the other fields of the request.
const LARGEST: usize = (64 << 10) - 64;

/// The password "secret" (bcrypt, cost 4).
const HASH: &str = "$2b$04$9PJhBhcXWIeBYt0sOo1NUea2mu/VB2IenebDIUfWQvvcJAumssJmy";
/// The headers of `attacker:secret` and `admin:secret`.
const ATTACKER: &str = "Basic YXR0YWNrZXI6c2VjcmV0";
const ADMIN: &str = "Basic YWRtaW46c2VjcmV0";

/// Creates the largest possible documents and lists them on sockets that are never read, while an administrator reads.
pub(crate) async fn measure(report: &mut Report) -> anyhow::Result<()> {
    let home = DaemonFolder::new()?;
    let passwords = home.path("htpasswd");
    std::fs::write(&passwords, format!("attacker:{HASH}\nadmin:{HASH}\n"))?;
    let daemon = home.start(&format!("auth = \"http_basic\"\nhtpasswd = {passwords:?}\n")).await?;

    let mut admin = Client::connect_as(daemon.server.api, ADMIN).await?;
    for number in 0..NODES {
        let body = json!({"name": format!("node-{number}"), "driver": "fake-hardware"});
        made(&mut admin, "/v1/nodes", body).await?;
    }
    let mut attacker = Client::connect_as(daemon.server.api, ATTACKER).await?;
    for number in 0..PROJECTS * ALLOCATIONS_EACH {
        let body = json!({
            "owner": format!("project-{}", number / ALLOCATIONS_EACH),
            "resource_class": "none",
            "extra": largest(number),
        });
        made(&mut attacker, "/v1/allocations", body).await?;
    }
    refused(&mut attacker).await?;

    let cpu = process::cpu(daemon.server.pid)?;
    let mut unread = Vec::new();
    for _ in 0..SOCKETS {
        unread.push(ask_and_do_not_read(daemon.server.api).await?);
    }
    let load = reads(&mut admin).await?;
    // The sockets stay open until here.
    let sockets = unread.len();
    drop(unread);
    tell(&daemon, &load, sockets, cpu, report)?;
    daemon.stop().await
}

fn tell(
    daemon: &Daemon,
    load: &LoadResult,
    sockets: usize,
    cpu: Duration,
    report: &mut Report,
) -> anyhow::Result<()> {
    let row = Row {
        budget: Some(Budget::P99Ms(100.0)),
        is_binding: true,
        ..Row::of_load("attack: admin's reads", 1, load)
    };
    report.row(&row)?;
    if let Some(error) = &load.first_error {
        report.note(&format!("the first error: {error}"))?;
    }
    let row = Row {
        phase: "attack: unread lists",
        count: Some(LISTS),
        at_once: Some(sockets),
        seconds: Some(load.seconds),
        cpu_seconds: Some((process::cpu(daemon.server.pid)? - cpu).as_secs_f64()),
        resident_mib: Some(process::resident_mib(daemon.server.pid)?),
        peak_mib: Some(process::peak_mib(daemon.server.pid)?),
        budget: Some(Budget::PeakMib(256.0)),
        is_binding: true,
        ..Row::default()
    };
    report.row(&row)
}

/// The largest possible document: a long text, or for odd numbers a list of small objects, which takes far more memory.
fn largest(number: usize) -> Value {
    let small = json!({"a": 1});
    match number % 2 {
        0 => json!({"notes": "x".repeat(LARGEST - r#"{"notes":""}"#.len())}),
        _ => {
            json!({"notes": vec![small; (LARGEST - r#"{"notes":[]}"#.len()) / r#"{"a":1},"#.len()]})
        }
    }
}

async fn made(client: &mut Client, path: &str, body: Value) -> anyhow::Result<()> {
    let (status, answer) = client.ask(&Call::send(Method::POST, path, body)).await?;
    let text = || String::from_utf8_lossy(&answer[..answer.len().min(300)]).into_owned();
    anyhow::ensure!(status.as_u16() == 201, "POST {path}: {status} {}", text());
    Ok(())
}

/// Fails unless a slightly larger document is refused: otherwise the attack could be stronger than the one measured.
async fn refused(client: &mut Client) -> anyhow::Result<()> {
    let body = json!({"resource_class": "none", "extra": {"notes": "x".repeat(64 << 10)}});
    let (status, _) = client.ask(&Call::send(Method::POST, "/v1/allocations", body)).await?;
    anyhow::ensure!(status.as_u16() == 400, "64 KiB in one field: {status}");
    Ok(())
}

/// Requests lists on one connection, pipelined, and reads none of the answers.
async fn ask_and_do_not_read(address: SocketAddr) -> anyhow::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(4096)?;
    let mut stream = socket.connect(address).await?;
    let ask = format!(
        "GET /v1/allocations HTTP/1.1\r\nhost: {address}\r\nauthorization: {ATTACKER}\r\n\
         x-openstack-ironic-api-version: 1.81\r\n\r\n"
    );
    stream.write_all(ask.repeat(LISTS.div_ceil(SOCKETS)).as_bytes()).await?;
    Ok(stream)
}

async fn reads(admin: &mut Client) -> anyhow::Result<LoadResult> {
    let mut load = LoadResult::default();
    let begun = Instant::now();
    for number in 0.. {
        let path = match number % 4 {
            0 => "/v1/nodes?limit=100".to_owned(),
            1 => "/v1/allocations?limit=1".to_owned(),
            _ => format!("/v1/nodes/node-{}", number % NODES),
        };
        let asked = Instant::now();
        let (status, _) = admin.ask(&Call::get(&*path)).await?;
        load.took.push(asked.elapsed().as_secs_f64() * 1000.0);
        if !status.is_success() {
            load.errors += 1;
            load.first_error.get_or_insert(format!("GET {path}: {status}"));
        }
        if begun.elapsed() > READS_FOR {
            break;
        }
        // The administrator pauses between requests, as a person does.
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    load.seconds = begun.elapsed().as_secs_f64();
    load.took.sort_by(f64::total_cmp);
    Ok(load)
}
