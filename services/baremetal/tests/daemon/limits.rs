//! Both listeners enforce the configured timeouts for slow clients.
#![expect(clippy::unwrap_used, reason = "a failed setup fails the test")]

use std::net::SocketAddr;
use std::time::Duration;

use baremetal::{Config, Service};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

/// Sends these bytes, and returns everything that arrives until the server closes the connection.
async fn said(at: SocketAddr, sent: &str) -> String {
    let mut stream = TcpStream::connect(at).await.unwrap();
    stream.write_all(sent.as_bytes()).await.unwrap();
    let mut said = String::new();
    let reading = stream.read_to_string(&mut said);
    tokio::time::timeout(Duration::from_secs(30), reading).await.unwrap().unwrap();
    said
}

#[tokio::test]
async fn slow_operators_and_slow_machines_are_cut_off() {
    let state = tempfile::tempdir().unwrap();
    let file = |name: &str| {
        let path = state.path().join(name);
        std::fs::write(&path, "x").unwrap();
        path
    };
    let text = format!(
        "state_dir = {:?}\n[api]\nlisten = '127.0.0.1:0'\n[api.connections]\nbody_timeout = '300ms'\n\
         [provisioning]\nlisten = '127.0.0.1:0'\nkernel = {:?}\nramdisk = {:?}\n\
         [provisioning.connections]\nheader_timeout = '300ms'\n",
        state.path().join("state"),
        file("kernel"),
        file("ramdisk"),
    );
    let config: Config = toml::from_str(&text).unwrap();
    let service = Service::start(config).await.unwrap();
    let (api, machines) = (service.listeners().api, service.listeners().provisioning.unwrap());
    let stop = CancellationToken::new();
    let running = tokio::spawn(service.run(stop.clone()));

    let head = "POST /v1/nodes HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{";
    let refused = said(api, head).await;
    assert!(refused.starts_with("HTTP/1.1 408 ") && refused.contains("error_message"), "{refused}");
    assert_eq!(said(machines, "GET /v1/lookup HTTP/1.1\r\nhost: ").await, "");
    let whole = said(
        machines,
        "GET /ramdisk/kernel HTTP/1.1\r\nconnection: close\r\nhost: localhost\r\n\r\n",
    );
    assert!(whole.await.starts_with("HTTP/1.1 200"));
    stop.cancel();
    running.await.unwrap().unwrap();
}
