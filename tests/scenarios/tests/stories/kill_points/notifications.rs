//! A node that is verified, beside a webhook for programs: baremetald is killed at each of its effects and records, and each notification
//! still arrives, in the order of the changes.

use std::sync::{Arc, Mutex};

use api_client::baremetald;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use lab::{Lab, Machine, Settings};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;

use super::{anywhere, settings};
use crate::own_vm::until;

/// The secret of the examples of Standard Webhooks.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

type Events = Arc<Mutex<Vec<Value>>>;

/// A webhook that takes every event.
struct Webhook {
    /// The events in the order of their arrival.
    taken: Events,
    url: String,
    folder: TempDir,
}

impl Webhook {
    async fn start() -> Webhook {
        async fn take(State(taken): State<Events>, head: HeaderMap, body: String) -> StatusCode {
            let event: Value = serde_json::from_str(&body).expect("JSON");
            assert_eq!(head["webhook-id"].to_str().expect("text"), event["id"]);
            taken.lock().expect("nobody panics").push(event);
            StatusCode::NO_CONTENT
        }
        let taken = Events::default();
        let router = Router::new().route("/hook", post(take)).with_state(taken.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/hook", listener.local_addr().expect("an address"));
        tokio::spawn(async { axum::serve(listener, router).await });
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("secret"), SECRET).expect("a file");
        Webhook { taken, url, folder }
    }

    /// The tables of `baremetald.toml` that name it.
    fn tables(&self) -> String {
        let secret = self.folder.path().join("secret");
        format!(
            "[events]\nretry_first = \"20ms\"\nlook_every = \"20ms\"\n[[events.webhooks]]\nname = \"cmdb\"\n\
             url = \"{}\"\nsecret_file = \"{}\"\nallow_local = true\n",
            self.url,
            secret.display()
        )
    }

    /// Returns the changes of provision state, without those before `skipped`: the id, the type and the new state of each.
    fn told(&self, skipped: usize) -> Vec<(String, String, String)> {
        let taken = self.taken.lock().expect("nobody panics");
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        let of_states = taken[skipped..]
            .iter()
            .filter(|event| text(&event["type"]).starts_with("baremetal.node.provision_set."));
        let told = of_states.map(|event| {
            let state = &event["data"]["ironic_object.data"]["provision_state"];
            (text(&event["id"]), text(&event["type"]), text(state))
        });
        told.collect()
    }
}

fn is_at_a_notification(point: &str) -> bool {
    point.contains("event: send") || point.contains(" remove:")
}

/// A service that was killed between the delivery of an event and its deletion delivers the event again.
fn sends_again(point: &str) -> bool {
    point.starts_with("after event: send") || point.starts_with("before remove:")
}

/// Lets a node be verified while the service is killed at every so-many-th point except at points that are spared. Returns these points, and
/// the changes of state that the webhook was told.
async fn verified(
    (every, spares): (usize, fn(&str) -> bool),
) -> (Vec<String>, Vec<(String, String, String)>) {
    let webhook = Webhook::start().await;
    let lab = Lab::with_mortal(Settings { more: webhook.tables(), ..settings() }).await;
    let machine = lab.rack(Machine::redfish("r1u10").without_tls()).await;
    let node = lab.enroll(&machine).await;
    let all_sent = async || {
        let is_sent = async || (lab.waiting_notifications("cmdb").await == 0).then_some(());
        until("all notifications to be sent", is_sent).await;
    };
    all_sent().await;
    let skipped = webhook.taken.lock().expect("nobody panics").len();
    let before = lab.node(node).await;
    let ask = async || lab.ask_once(node, &before, &json!({"target": "manage"})).await;
    let is_manageable = |it: &baremetald::Node| it.state() == "manageable";
    let done = async || {
        lab.until(node, "a verified node", is_manageable).await;
        all_sent().await;
    };
    let points = lab.kill_at_every_point(every, spares, ask, done).await;
    (points, webhook.told(skipped))
}

/// Asserts that each change was told in its order, an event that came again directly after its first delivery.
#[track_caller]
fn assert_told(told: &[(String, String, String)]) {
    let mut once = told.to_vec();
    once.dedup();
    let changes: Vec<(&str, &str)> =
        once.iter().map(|(_, kind, state)| (kind.as_str(), state.as_str())).collect();
    let begins = ("baremetal.node.provision_set.start", "verifying");
    let ends = ("baremetal.node.provision_set.end", "manageable");
    assert_eq!(changes, [begins, ends]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_notification_arrives_in_order_wherever_the_service_is_killed() {
    let (points, told) = verified(anywhere()).await;
    assert!(!points.is_empty());
    assert_told(&told);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notification_is_sent_again_by_a_service_that_was_killed_after_it_sent_the_notification()
{
    let (points, told) = verified((1, |point| !is_at_a_notification(point))).await;
    assert!(points.iter().any(|point| sends_again(point)), "{points:#?}");
    assert_told(&told);
}
