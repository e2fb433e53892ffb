//! A service that is killed at each of its effects and records, one after another, while it does what it was asked.

use reqwest::Method;
use serde_json::{Value, json};

use crate::daemon::{Daemon, Mortal};
use crate::lab::Lab;
use crate::node::Node;
use crate::trap::Bait;

impl Lab {
    /// Has `ask` begin something in each life of the service until that has been recorded, and waits until it is `done`; meanwhile the
    /// service is killed at every so-many-th of the points that come up for the first time, but for those that are spared by name. Tells
    /// where it was killed; it is alive then.
    pub async fn outlives(
        &self,
        every: usize,
        spares: fn(&str) -> bool,
        ask: impl AsyncFn(),
        done: impl AsyncFn(),
    ) -> Vec<String> {
        let mut daemon = self.daemon.lock().await;
        let Daemon::Mortal(mortal) = &mut *daemon else { panic!("baremetald cannot be killed") };
        mortal.trap.set(Bait { every, spares });
        let mut is_asked = false;
        loop {
            let living = async {
                self.is_up().await;
                if !is_asked {
                    ask().await;
                    is_asked = true;
                }
                done().await;
            };
            let is_stopped = tokio::select! {
                biased;
                () = mortal.trap.shut() => true,
                () = living => false,
            };
            mortal.die().await;
            if !is_stopped {
                break;
            }
            mortal.trap.open();
            drop(mortal.live());
        }
        let points = mortal.trap.remove();
        self.revive(mortal).await;
        points
    }

    async fn revive(&self, mortal: &mut Mortal) {
        drop(mortal.live());
        self.is_up().await;
    }

    async fn is_up(&self) {
        self.api.until("/v1", "an answer", |_| Some(())).await;
    }

    /// Asks for a change of provision state, unless that was recorded since the node was as `before`.
    pub async fn ask_once(&self, node: Node, before: &Value, body: &Value) {
        let path = format!("/v1/nodes/{}", node.0);
        let changed = |node: &Value| node["provision_updated_at"] != before["provision_updated_at"];
        if !self.api.until(&path, "the node", |node| Some(changed(node))).await {
            let path = format!("{path}/states/provision");
            self.api.send(Method::PUT, &path, Some(body)).await.expect("the verb");
        }
    }

    /// What the node's history tells, in the order it happened: each state it came to, and why.
    pub async fn history(&self, node: Node) -> Vec<(String, String)> {
        let path = format!("/v1/nodes/{}/history?detail=true&limit=1000", node.0);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let history = self.api.get(&path).await;
        let entries = history["history"].as_array().cloned().unwrap_or_default();
        entries.iter().map(|entry| (text(&entry["event_type"]), text(&entry["event"]))).collect()
    }
}

impl Node {
    /// The body that asks for this target.
    pub fn target(target: &str) -> Value {
        json!({"target": target})
    }
}
