//! The configured limits for connections apply to the sockets of the service.

use std::time::Duration;

use cluster::{Config, Service};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn a_body_that_does_not_arrive_is_refused_in_the_envelope_of_the_api() {
    let state = tempfile::tempdir().unwrap();
    let text = format!(
        "state_dir = {:?}\n[api]\nlisten = '127.0.0.1:0'\n[api.connections]\nbody_timeout = '300ms'\n",
        state.path()
    );
    let config: Config = toml::from_str(&text).unwrap();
    let service = Service::start(config).await.unwrap();
    let at = service.listeners().api;
    let stop = CancellationToken::new();
    let running = tokio::spawn(service.run(stop.clone()));

    let mut stream = TcpStream::connect(at).await.unwrap();
    let head = "POST /v1/clusters HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut said = String::new();
    let reading = stream.read_to_string(&mut said);
    tokio::time::timeout(Duration::from_secs(30), reading).await.unwrap().unwrap();
    let (head, body) = said.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 408 "), "{head}");
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["errors"][0]["detail"], "body: was sent too slowly");
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[test]
fn an_invalid_limit_is_refused_by_key() {
    let read = |lines: &str| {
        let text = format!("state_dir = '/tmp/x'\n[api]\n{lines}");
        toml::from_str::<Config>(&text).map(drop).map_err(|why| why.to_string())
    };
    assert_eq!(read("[api.limits]\nbody = 1000\nreads_per_second = 5"), Ok(()));
    for (lines, words) in [
        ("[api.limits]\njson_depth = 0", "nonzero"),
        ("[api.limits]\ncolour = 1", "unknown field `colour`"),
        ("[api.connections]\nheader_timeout = '0s'", "header_timeout: must be greater than 0s"),
    ] {
        let why = read(lines).unwrap_err();
        assert!(why.contains(words), "{lines}: {why}");
    }
}
