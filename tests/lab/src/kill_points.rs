//! Kills a service at its effects and writes, one after another, while it carries out a request.

use api_client::baremetald::{self, History, HistoryEvent};
use reqwest::Method;
use serde_json::{Value, json};

use crate::daemon::{Daemon, KillableDaemon};
use crate::lab::Lab;
use crate::node::Node;
use crate::trap::StopRule;

impl Lab {
    /// Kills the service at every `every`-th point that it reaches for the first time, except for points whose name `spares` accepts. In
    /// each life of the service `ask` makes the request, unless it is recorded already; the function returns when `done` does. The service
    /// is alive again at the end. Returns the points at which the service was killed.
    pub async fn kill_at_every_point(
        &self,
        every: usize,
        spares: fn(&str) -> bool,
        ask: impl AsyncFn(),
        done: impl AsyncFn(),
    ) -> Vec<String> {
        let mut daemon = self.daemon.lock().await;
        let Daemon::Mortal(mortal) = &mut *daemon else { panic!("baremetald cannot be killed") };
        mortal.trap.set(StopRule { every, spares });
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
                () = mortal.trap.wait_until_stopped() => true,
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

    async fn revive(&self, mortal: &mut KillableDaemon) {
        drop(mortal.live());
        self.is_up().await;
    }

    pub(crate) async fn is_up(&self) {
        self.api.until("/v1", "an answer", |_: &Value| Some(())).await;
    }

    /// Requests a change of provision state, unless the node shows that the request is recorded since `before`.
    pub async fn ask_once(&self, node: Node, before: &baremetald::Node, body: &Value) {
        let now = self.until(node, "the node", |_| true).await;
        if now.provision_updated_at == before.provision_updated_at {
            let path = format!("{}/states/provision", node.path());
            self.api.send(Method::PUT, &path, Some(body)).await.expect("the verb");
        }
    }

    /// The history of the node in chronological order.
    pub async fn history(&self, node: Node) -> Vec<HistoryEvent> {
        let path = format!("{}/history?detail=true&limit=1000", node.path());
        let History { history } = self.api.get(&path).await;
        history
    }
}

impl Node {
    /// The path of the node in the API.
    pub fn path(self) -> String {
        format!("/v1/nodes/{}", self.0)
    }

    /// The body of a request for this provision target.
    pub fn target(target: &str) -> Value {
        json!({"target": target})
    }
}
