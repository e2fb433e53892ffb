//! A node whose lease ends, beside a webhook: baremetald is killed at each of its effects and records, and each notice still arrives.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use api_client::baremetald::NodeLease;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use lab::{Lab, Machine, Node, Settings};
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;

use super::{LEASES, anywhere, settings};
use crate::own_vm::until;

/// The notices of a lease, in their order.
const EVENTS: [&str; 4] = ["lease.ends", "lease.ended", "lease.deletion_near", "lease.deleted"];

/// A webhook that accepts every notice.
struct Webhook {
    /// The header with the notice's id and the body of each request, in the order of their arrival.
    taken: Arc<Mutex<Vec<(String, String)>>>,
    url: String,
    folder: TempDir,
}

impl Webhook {
    async fn start() -> Webhook {
        type ReceivedNotices = Arc<Mutex<Vec<(String, String)>>>;
        async fn take(
            State(taken): State<ReceivedNotices>,
            head: HeaderMap,
            body: String,
        ) -> StatusCode {
            let id = head["bedplate-notice"].to_str().expect("text").to_owned();
            taken.lock().expect("nobody panics").push((id, body));
            StatusCode::NO_CONTENT
        }
        let taken = ReceivedNotices::default();
        let router = Router::new().route("/hook", post(take)).with_state(taken.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/hook", listener.local_addr().expect("an address"));
        tokio::spawn(async { axum::serve(listener, router).await });
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("secret"), left::canary::WEBHOOK).expect("a file");
        Webhook { taken, url, folder }
    }

    /// The tables of `baremetald.toml` that name it.
    fn tables(&self) -> String {
        let secret = self.folder.path().join("secret");
        format!(
            "[notices.webhook]\nurl = \"{}\"\nsecret_file = \"{}\"\nallow_local = true\n\
             [notices.retry]\nfirst = \"20ms\"\nlook_every = \"20ms\"\n",
            self.url,
            secret.display()
        )
    }

    fn taken(&self) -> Vec<(String, String)> {
        self.taken.lock().expect("nobody panics").clone()
    }

    /// Returns the number of deliveries of each event. All deliveries of an event have the same id and body.
    fn reported(&self) -> BTreeMap<String, usize> {
        let (mut reported, mut first) = (BTreeMap::new(), BTreeMap::new());
        for (id, body) in self.taken() {
            let notice: Value = serde_json::from_str(&body).expect("JSON");
            assert_eq!(notice["id"], id, "{body}");
            let event = notice["event"].as_str().expect("a word").to_owned();
            *reported.entry(event.clone()).or_default() += 1;
            let known = first.entry(event).or_insert((id.clone(), body.clone()));
            assert_eq!(*known, (id, body), "it is told again as it was told first");
        }
        reported
    }
}

fn is_at_a_notice(point: &str) -> bool {
    point.contains("notice: send") || point.contains(" remove:")
}

/// A service that was killed between the delivery of a notice and its deletion delivers the notice again.
fn sends_again(point: &str) -> bool {
    point.starts_with("after notice: send") || point.starts_with("before remove:")
}

/// Lends a node until its lease ends, while the service is killed at every so-many-th point except at points that are spared. Returns these
/// points, and the number of deliveries of each event.
async fn lent(
    (every, spares): (usize, fn(&str) -> bool),
) -> (Vec<String>, BTreeMap<String, usize>) {
    let webhook = Webhook::start().await;
    let more = format!("{LEASES}{}", webhook.tables());
    let lab = Lab::with_mortal(Settings { more, ..settings() }).await;
    let machine = lab.rack(Machine::redfish("r1u10").without_tls()).await;
    let Node(node) = lab.enroll(&machine).await;
    let path = format!("/bedplate/v1/nodes/{node}/lease");
    let loan = json!({"lessee": "lab", "for": "4s"});
    let ask = async || {
        if lab.api().get::<NodeLease>(&path).await.lease.is_none() {
            lab.api().send(Method::POST, &path, Some(&loan)).await.expect("a lease");
        }
    };
    let is_over = |lent: &NodeLease| lent.lease.is_none().then_some(());
    let done = async || {
        lab.api().until(&path, "a node that is not lent", is_over).await;
        let is_sent = async || (lab.waiting_notices().await == 0).then_some(());
        until("all notices to be sent", is_sent).await;
    };
    let points = lab.kill_at_every_point(every, spares, ask, done).await;
    (points, webhook.reported())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_notice_of_a_lease_arrives_wherever_the_service_is_killed() {
    let (points, reported) = lent(anywhere()).await;
    assert!(points.len() >= 5, "{points:#?}");
    let events: Vec<&str> = reported.keys().map(String::as_str).collect();
    let mut all = EVENTS;
    all.sort_unstable();
    assert_eq!(events, all, "killed at {points:#?}");
    let times: usize = reported.values().sum();
    let least = EVENTS.len() + points.iter().filter(|point| sends_again(point)).count();
    assert!((least..=EVENTS.len() + points.len()).contains(&times), "{reported:?}: {points:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notice_is_told_again_only_by_a_service_that_was_killed_after_it_sent_the_notice() {
    let (points, reported) = lent((1, |point| !is_at_a_notice(point))).await;
    assert!(points.iter().any(|point| sends_again(point)), "{points:#?}");
    let again = points.iter().filter(|point| sends_again(point)).count();
    assert_eq!(reported.len(), EVENTS.len(), "{reported:?}");
    assert_eq!(reported.values().sum::<usize>(), EVENTS.len() + again, "{reported:?}: {points:#?}");
}
