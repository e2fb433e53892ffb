//! Event streams.

use std::time::Duration;

use axum::body::Body;
use cluster_api::Streams;
use cluster_core::{ClusterUuid, Event, Ident, Severity};
use cluster_store::{Scope, Store};
use http::Request;
use http_body_util::BodyExt;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::{Answer, Api};

const PATH: &str = "/bedplate/v1/clusters/c/events";
const PATIENCE: Duration = Duration::from_secs(20);

/// A client of a stream, with the text that it has not parsed yet.
struct Followed {
    body: Body,
    text: String,
}

#[derive(Debug, PartialEq)]
struct Sent {
    id: Option<String>,
    name: String,
    data: Value,
}

fn request(last: Option<&str>) -> Request<Body> {
    let mut request =
        Request::get(PATH).header("host", "api").header("accept", "text/event-stream");
    if let Some(last) = last {
        request = request.header("last-event-id", last);
    }
    request.body(Body::empty()).unwrap()
}

async fn follow(api: &Api, last: Option<&str>) -> Followed {
    let answer = api.open(request(last)).await;
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["content-type"]),
        (200, &"text/event-stream".parse().unwrap())
    );
    Followed { body: answer.into_body(), text: String::new() }
}

async fn refused(api: &Api, last: Option<&str>) -> Answer {
    api.raw(request(last)).await
}

impl Followed {
    /// The next block of the stream as text; `None` once the stream has ended.
    async fn block(&mut self) -> Option<String> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                return Some(block);
            }
            let frame = tokio::time::timeout(PATIENCE, self.body.frame()).await.unwrap()?.unwrap();
            self.text.push_str(str::from_utf8(frame.data_ref().unwrap()).unwrap());
        }
    }

    async fn next(&mut self) -> Option<Sent> {
        let block = self.block().await?;
        let field = |name: &str| {
            block
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
                .map(str::to_owned)
        };
        let data = serde_json::from_str(&field("data").unwrap()).unwrap();
        Some(Sent { id: field("id"), name: field("event").unwrap(), data })
    }
}

fn event(cluster: ClusterUuid, reason: String) -> Event {
    let (at, severity) = (Timestamp::UNIX_EPOCH, Severity::Warning);
    Event { id: None, cluster, at, severity, reason, message: "two\nlines".to_owned() }
}

#[tokio::test]
async fn a_stream_has_the_events_of_the_list_as_soon_as_they_are_written() {
    let api = Api::start().await;
    let id = api.small().await;
    let mut followed = follow(&api, None).await;
    let first = followed.next().await.unwrap();
    assert_eq!((first.name.as_str(), &first.data["reason"]), ("info", &json!("CreateRequested")));
    api.post("/v1/clusters/c/actions/resize", r#"{"node_count": 3}"#).await.has(202);
    let second = followed.next().await.unwrap();
    api.store
        .append_events(id.parse().unwrap(), &[event(id.parse().unwrap(), "Odd".to_owned())])
        .await
        .unwrap();
    let third = followed.next().await.unwrap();
    assert_eq!((third.name.as_str(), &third.data["message"]), ("warning", &json!("two\nlines")));
    let list = api.get(PATH).await.has(200).json();
    assert_eq!(list["events"], json!([first.data, second.data, third.data]));

    // A client that reconnects gets the events that it missed.
    let mut again = follow(&api, first.id.as_deref()).await;
    assert_eq!(again.next().await, Some(second));
    assert_eq!(again.next().await, Some(third));
}

#[tokio::test]
async fn no_event_is_lost_or_repeated_with_many_writers() {
    let api = Api::start().await;
    let id: ClusterUuid = api.small().await.parse().unwrap();
    let mut followed = follow(&api, None).await;
    let mut last = followed.next().await.unwrap().id;
    let writers: Vec<_> = (0..30)
        .map(|writer| {
            let store = api.store.clone();
            tokio::spawn(async move {
                for number in 0..10 {
                    store
                        .append_events(id, &[event(id, format!("E{writer}-{number}"))])
                        .await
                        .unwrap();
                }
            })
        })
        .collect();
    let mut reported = Vec::new();
    while reported.len() < 300 {
        // The connection breaks now and then.
        if reported.len() % 37 == 36 {
            followed = follow(&api, last.as_deref()).await;
        }
        let sent = followed.next().await.unwrap();
        last = sent.id;
        reported.push(sent.data);
    }
    for writer in writers {
        writer.await.unwrap();
    }
    let list = api.get(PATH).await.json();
    assert_eq!(list["events"].as_array().unwrap()[1..], reported);
}

#[tokio::test]
async fn events_of_another_process_are_streamed_too() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}/clusterd.db", folder.path().display());
    let api = Api::on(Store::open(&url).await.unwrap()).await;
    let id: ClusterUuid = api.small().await.parse().unwrap();
    let mut followed = follow(&api, None).await;
    followed.next().await.unwrap();
    let other = Store::open(&url).await.unwrap();
    other.append_events(id, &[event(id, "Elsewhere".to_owned())]).await.unwrap();
    assert_eq!(followed.next().await.unwrap().data["reason"], "Elsewhere");
}

#[tokio::test]
async fn a_stream_ends_with_its_cluster() {
    let api = Api::start().await;
    let id = api.small().await;
    let mut followed = follow(&api, None).await;
    followed.next().await.unwrap();
    let ident = Ident::Id(id.parse().unwrap());
    let cluster = api.store.find_clusters(&ident, &Scope::All).await.unwrap().remove(0);
    api.store.delete_cluster(&cluster).await.unwrap();
    let last = followed.next().await.unwrap();
    let data = json!({
        "id": null, "at": "2026-01-02T03:04:05.000006+00:00", "severity": "info", "reason": "Gone",
        "message": "cluster c was deleted together with its events",
    });
    assert_eq!(last, Sent { id: None, name: "gone".to_owned(), data });
    assert_eq!(followed.next().await, None);
    refused(&api, None).await.refuses(404, "Cluster c could not be found.");
}

#[tokio::test]
async fn the_number_of_streams_is_limited() {
    let api = Api::for_streams(Streams::at_most(1)).await;
    api.small().await;
    let one = follow(&api, None).await;
    refused(&api, None)
        .await
        .refuses(503, "all 1 event streams are in use; close one, or request the list of events");
    api.get(PATH).await.has(200);
    drop(one);
    follow(&api, None).await.next().await.unwrap();
}

#[tokio::test]
async fn a_stream_without_events_has_heartbeats() {
    let streams = Streams::at_most(1).with_heartbeat(Duration::from_millis(20));
    let api = Api::for_streams(streams).await;
    api.small().await;
    let mut followed = follow(&api, None).await;
    // A heartbeat may come before the event that the cluster has.
    while followed.block().await.expect("the stream goes on") != ":" {}
}

#[tokio::test]
async fn streams_end_when_the_service_stops() {
    let streams = Streams::at_most(1);
    let api = Api::for_streams(streams.clone()).await;
    api.small().await;
    let mut followed = follow(&api, None).await;
    followed.next().await.unwrap();
    streams.end();
    assert_eq!(followed.next().await, None);
}

#[tokio::test]
async fn a_list_is_a_list_unless_a_stream_is_asked_for() {
    let api = Api::start().await;
    api.small().await;
    for (accept, kind) in [
        ("*/*", "application/json"),
        ("application/json, text/event-stream;q=0", "application/json"),
        ("Text/Event-Stream; q=0.5", "text/event-stream"),
    ] {
        let request = Request::get(PATH).header("host", "api").header("accept", accept);
        let answer = api.open(request.body(Body::empty()).unwrap()).await;
        assert_eq!(answer.headers()["content-type"], kind, "{accept}");
    }
    for last in ["x", "-1", "1.5", "99999999999999999999"] {
        refused(&api, Some(last))
            .await
            .refuses(400, "Last-Event-ID: must be the id of an event from a stream");
    }
}
