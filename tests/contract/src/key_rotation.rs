//! The rotation of the sealing keys of a daemon that works and is killed: no secret is lost.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use reqwest::{Method, StatusCode};
use serde_json::Value;

use crate::{Daemon, DaemonProcess, Installation, client, until};

/// More records than one transaction of a rotation re-encrypts.
const RECORDS: usize = 300;
/// The moments at which the daemon is killed: after this many log lines about re-encrypted records. 0 means right after the new key is in
/// the file.
const POINTS: [usize; 8] = [0, 1, 2, 3, 4, 5, 6, 2];

impl DaemonProcess {
    async fn ask(&self, method: Method, path: &str) -> (StatusCode, Value) {
        let url = format!("{}/bedplate/v1/keys{path}", self.url);
        let answer = client().request(method, url).send().await.unwrap();
        (answer.status(), answer.json().await.unwrap_or_default())
    }

    /// Returns the keys, each with the number of records that it seals.
    async fn keys(&self) -> Vec<(String, u64)> {
        let (status, answer) = self.ask(Method::GET, "").await;
        assert_eq!(status, 200, "{answer}");
        let read = |key: &Value| {
            (key["id"].as_str().unwrap().to_owned(), key["records"].as_u64().unwrap())
        };
        answer["keys"].as_array().unwrap().iter().map(read).collect()
    }
}

fn inode(file: &Path) -> u64 {
    fs::metadata(file).unwrap().ino()
}

/// A rotation that is killed at any point loses no secret, and a later start completes it. Needs a runtime with two threads.
pub async fn killed_at_any_point<D: Daemon>() {
    let given = Installation::<D>::new();
    let records = D::store_records(&given.state(), RECORDS).await;
    let key_file = given.key_file();
    for point in POINTS {
        let mut daemon = given.start().await;
        let before = inode(&key_file);
        let mut lines = BufReader::new(daemon.child.stderr.take().unwrap()).lines();
        let is_progress = |line: &String| D::PROGRESS.iter().all(|word| line.contains(word));
        let heard = tokio::task::spawn_blocking(move || {
            let heard =
                lines.by_ref().map_while(Result::ok).filter(is_progress).take(point).count();
            (heard, lines)
        });
        let asked = client().post(format!("{}/bedplate/v1/keys/rotate", daemon.url)).send();
        let asked = tokio::spawn(asked);
        until(async || (inode(&key_file) != before).then_some(())).await;
        // The pipe stays open until the kill, because the daemon would end at the next log line otherwise.
        let (heard, _lines) = heard.await.unwrap();
        assert_eq!(heard, point, "it ended before it was killed");
        drop(daemon);
        let _ = asked.await.unwrap();
        D::check_records(&given.state(), &records).await;
    }

    let daemon = given.start().await;
    let rest = until(async || {
        let keys = daemon.keys().await;
        let (current, others) = keys.split_first().unwrap();
        let done = others.iter().all(|(_, records)| *records == 0);
        (done && current.1 >= RECORDS as u64).then(|| others.to_vec())
    });
    let rest = rest.await;
    assert_eq!(rest.len(), POINTS.len());
    for (id, records) in rest {
        assert_eq!(records, 0, "key {id}");
        assert_eq!(daemon.ask(Method::DELETE, &format!("/{id}")).await.0, 204);
        assert_eq!(daemon.ask(Method::DELETE, &format!("/{id}")).await.0, 404);
    }
    let left = daemon.keys().await;
    assert_eq!(daemon.ask(Method::DELETE, &format!("/{}", left[0].0)).await.0, 409);
    drop(daemon);
    assert_eq!(fs::read_to_string(&key_file).unwrap().lines().count(), 1);
    D::check_records(&given.state(), &records).await;
}
