//! The verbs of a test: enrol, bring to a state, ask, wait.

use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::api::Answer;
use crate::daemon::{Daemon, Killed};
use crate::images::Image;
use crate::lab::Lab;
use crate::machine::Placed;

/// A node of the lab's service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Node(pub Uuid);

/// A change of state that was asked for.
#[must_use = "what is asked for is awaited"]
pub struct Asked<'a> {
    lab: &'a Lab,
    node: Node,
}

impl Lab {
    /// Enrols a machine with its network ports.
    pub async fn enroll(&self, machine: &Placed) -> Node {
        let mut body = machine.node();
        body["instance_info"] = self.image.instance_info();
        let made = self.api.send(Method::POST, "/v1/nodes", Some(&body)).await;
        let made = made.expect("a node is made");
        let node = made["uuid"].as_str().and_then(|text| text.parse().ok());
        let node = Node(node.expect("a node has a UUID"));
        for nic in &machine.spec().nics {
            let port = json!({"node_uuid": node.0, "address": nic.mac.to_string()});
            self.api.send(Method::POST, "/v1/ports", Some(&port)).await.expect("a port is made");
        }
        node
    }

    /// Enrols a machine and sees that its BMC answers.
    pub async fn manageable(&self, machine: &Placed) -> Node {
        let node = self.enroll(machine).await;
        self.provision(node, "manage").await.reaches("manageable").await;
        node
    }

    /// Enrols a machine and cleans it.
    pub async fn available(&self, machine: &Placed) -> Node {
        let node = self.manageable(machine).await;
        self.provision(node, "provide").await.reaches("available").await;
        node
    }

    /// Says what is to be installed.
    pub async fn choose(&self, node: Node, image: &Image) {
        let patch =
            json!([{"op": "add", "path": "/instance_info", "value": image.instance_info()}]);
        let path = format!("/v1/nodes/{}", node.0);
        self.api.send(Method::PATCH, &path, Some(&patch)).await.expect("instance_info changes");
    }

    /// Asks for a change of provision state.
    pub async fn provision(&self, node: Node, target: &str) -> Asked<'_> {
        self.ask(node, &json!({"target": target})).await.expect(target);
        Asked { lab: self, node }
    }

    /// Asks for a machine to be installed, with a config drive that has user data.
    pub async fn install_with(&self, node: Node, user_data: &str) -> Asked<'_> {
        let body = json!({"target": "active", "configdrive": {"user_data": user_data}});
        self.ask(node, &body).await.expect("active");
        Asked { lab: self, node }
    }

    async fn ask(&self, node: Node, body: &Value) -> Answer {
        let path = format!("/v1/nodes/{}/states/provision", node.0);
        self.api.send(Method::PUT, &path, Some(body)).await
    }

    /// Asks for a change of provision state, of a service that may be killed before it has answered.
    pub async fn provision_and_be_killed(&self, node: Node, target: &str) -> Asked<'_> {
        let path = format!("/v1/nodes/{}/states/provision", node.0);
        let body = json!({"target": target});
        // What the service logs of this it has recorded before; whether the answer got out does not matter.
        if let Ok(answer) = self.api.try_send(Method::PUT, &path, Some(&body)).await {
            answer.expect(target);
        }
        Asked { lab: self, node }
    }

    /// The node now.
    pub async fn node(&self, node: Node) -> Value {
        self.api.get(&format!("/v1/nodes/{}", node.0)).await
    }

    /// The machine's inventory, as inspected.
    pub async fn inventory(&self, node: Node) -> Value {
        self.api.get(&format!("/v1/nodes/{}/inventory", node.0)).await
    }

    /// Kills the service, which must be a child, and starts it again, to be killed once it has said so many lines that tell a
    /// step or a state.
    pub async fn restart_to_be_killed_at(&self, line: usize) {
        let mut daemon = self.daemon.lock().await;
        let Daemon::Child(outside) = &mut *daemon else { panic!("baremetald is no child") };
        outside.kill().await;
        outside.start(line);
        drop(daemon);
        self.api.until("/v1", "an answer", |_| Some(())).await;
    }

    /// Waits until the service has been killed; or until `node` has reached `state` without that, and kills it then: it may have
    /// its line on its lips.
    pub async fn killed_or(&self, node: Node, state: &str) -> Killed {
        self.killed_unless(self.rests(node, state)).await
    }

    /// Waits until the service has been killed at its line, or until something has come to pass: then it is killed.
    pub async fn killed_unless(&self, done: impl Future<Output = ()>) -> Killed {
        let mut daemon = self.daemon.lock().await;
        let Daemon::Child(outside) = &mut *daemon else { panic!("baremetald is no child") };
        tokio::select! {
            () = outside.killed() => Killed::AtLine,
            () = done => outside.kill().await,
        }
    }

    /// Kills the service if it still runs, and starts it again for good.
    pub async fn restart(&self) {
        self.restart_to_be_killed_at(usize::MAX).await;
    }

    /// The lines the service has said, over all its lives, that tell a step or a state.
    pub async fn steps(&self) -> Vec<String> {
        match &*self.daemon.lock().await {
            Daemon::Child(outside) => outside.steps(),
            Daemon::Inside { .. } | Daemon::Mortal(_) => panic!("baremetald is no child"),
        }
    }

    async fn rests(&self, node: Node, state: &str) {
        let path = format!("/v1/nodes/{}", node.0);
        let seen = |node: &Value| (node["provision_state"] == state).then_some(());
        self.api.until(&path, state, seen).await;
    }
}

impl Asked<'_> {
    /// Waits until the node is in `state`; a failure that was not asked for ends the test with its reason.
    pub async fn reaches(self, state: &str) -> Value {
        let path = format!("/v1/nodes/{}", self.node.0);
        let reached = |node: &Value| {
            let now = node["provision_state"].as_str().unwrap_or_default();
            if now == state {
                return Some(node.clone());
            }
            let over = now.ends_with("failed") || now == "error";
            assert!(!over, "{} is {now} instead of {state}: {}", node["name"], node["last_error"]);
            None
        };
        self.lab.api.until(&path, &format!("state {state}"), reached).await
    }

    /// Waits until the node is in `state` with an error to tell, and returns that.
    pub async fn fails(self, state: &str) -> String {
        let path = format!("/v1/nodes/{}", self.node.0);
        let failed = |node: &Value| {
            let error = node["last_error"].as_str()?;
            (node["provision_state"] == state).then(|| error.to_owned())
        };
        self.lab.api.until(&path, &format!("state {state} with an error"), failed).await
    }
}
