//! The verbs of a test: enroll, bring to a state, request, wait.

use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::api::Answer;
use crate::daemon::{Daemon, KillResult};
use crate::images::Image;
use crate::lab::Lab;
use crate::machine::RackedMachine;

/// A node of the service in the lab.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Node(pub Uuid);

/// A requested change of provision state.
#[must_use = "what is asked for is awaited"]
pub struct PendingChange<'a> {
    lab: &'a Lab,
    node: Node,
}

impl Lab {
    /// Enrolls a machine with its network ports.
    pub async fn enroll(&self, machine: &RackedMachine) -> Node {
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

    /// Enrolls a machine and verifies that its BMC answers.
    pub async fn manageable(&self, machine: &RackedMachine) -> Node {
        let node = self.enroll(machine).await;
        self.provision(node, "manage").await.reaches("manageable").await;
        node
    }

    /// Enrolls a machine and cleans it.
    pub async fn available(&self, machine: &RackedMachine) -> Node {
        let node = self.manageable(machine).await;
        self.provision(node, "provide").await.reaches("available").await;
        node
    }

    /// Sets the image to install.
    pub async fn choose(&self, node: Node, image: &Image) {
        let patch =
            json!([{"op": "add", "path": "/instance_info", "value": image.instance_info()}]);
        let path = format!("/v1/nodes/{}", node.0);
        self.api.send(Method::PATCH, &path, Some(&patch)).await.expect("instance_info changes");
    }

    /// Requests a change of provision state.
    pub async fn provision(&self, node: Node, target: &str) -> PendingChange<'_> {
        self.ask(node, &json!({"target": target})).await.expect(target);
        PendingChange { lab: self, node }
    }

    /// Requests the installation of a machine, with user data in the config drive.
    pub async fn install_with(&self, node: Node, user_data: &str) -> PendingChange<'_> {
        let body = json!({"target": "active", "configdrive": {"user_data": user_data}});
        self.ask(node, &body).await.expect("active");
        PendingChange { lab: self, node }
    }

    /// Requests the installation of a machine, or another one, with the config drive at `url`.
    pub async fn install_from(&self, node: Node, url: &str) -> PendingChange<'_> {
        let is_active = self.node(node).await["provision_state"] == "active";
        let target = if is_active { "rebuild" } else { "active" };
        let body = json!({"target": target, "configdrive": url});
        self.ask(node, &body).await.expect(target);
        PendingChange { lab: self, node }
    }

    async fn ask(&self, node: Node, body: &Value) -> Answer {
        let path = format!("/v1/nodes/{}/states/provision", node.0);
        self.api.send(Method::PUT, &path, Some(body)).await
    }

    /// Requests a change of provision state from a service that may be killed before it answers.
    pub async fn provision_and_be_killed(&self, node: Node, target: &str) -> PendingChange<'_> {
        let path = format!("/v1/nodes/{}/states/provision", node.0);
        let body = json!({"target": target});
        // The service records a request before it logs anything of it, so a lost answer does not matter.
        if let Ok(answer) = self.api.try_send(Method::PUT, &path, Some(&body)).await {
            answer.expect(target);
        }
        PendingChange { lab: self, node }
    }

    /// The node as the API shows it.
    pub async fn node(&self, node: Node) -> Value {
        self.api.get(&format!("/v1/nodes/{}", node.0)).await
    }

    /// The inventory that the last inspection found.
    pub async fn inventory(&self, node: Node) -> Value {
        self.api.get(&format!("/v1/nodes/{}/inventory", node.0)).await
    }

    /// Kills the child process and starts it again, to be killed once it has logged `line` lines that report an action or a state.
    pub async fn restart_to_be_killed_at(&self, line: usize) {
        let mut daemon = self.daemon.lock().await;
        let Daemon::Child(outside) = &mut *daemon else { panic!("baremetald is no child") };
        outside.kill().await;
        outside.start(line);
        drop(daemon);
        self.api.until("/v1", "an answer", |_| Some(())).await;
    }

    /// Waits until the service was killed at its line. If `node` reaches `state` first, kills the service then, since it may just be about
    /// to log its line.
    pub async fn killed_or(&self, node: Node, state: &str) -> KillResult {
        self.killed_or_done(self.rests(node, state)).await
    }

    /// Waits until the service was killed at its line. If `done` completes first, kills the service then.
    pub async fn killed_or_done(&self, done: impl Future<Output = ()>) -> KillResult {
        let mut daemon = self.daemon.lock().await;
        let Daemon::Child(outside) = &mut *daemon else { panic!("baremetald is no child") };
        tokio::select! {
            () = outside.killed() => KillResult::AtLine,
            () = done => outside.kill().await,
        }
    }

    /// Kills the service if it still runs, and starts it again without a line to be killed at.
    pub async fn restart(&self) {
        self.restart_to_be_killed_at(usize::MAX).await;
    }

    /// The lines, from all lives of the service, that report an action or a state.
    pub async fn steps(&self) -> Vec<String> {
        match &*self.daemon.lock().await {
            Daemon::Child(outside) => outside.steps(),
            Daemon::Inside { .. } | Daemon::Mortal(_) => panic!("baremetald is no child"),
        }
    }

    /// Waits until the node is in `state`; panics with the reason if the node fails instead.
    pub async fn reaches(&self, node: Node, state: &str) -> Value {
        PendingChange { lab: self, node }.reaches(state).await
    }

    /// Waits until the node is in `state` with an error, and returns the error.
    pub async fn fails(&self, node: Node, state: &str) -> String {
        PendingChange { lab: self, node }.fails(state).await
    }

    /// Ends the maintenance of the node.
    pub async fn end_maintenance(&self, node: Node) {
        let path = format!("/v1/nodes/{}/maintenance", node.0);
        self.api.send(Method::DELETE, &path, None).await.expect("the end of maintenance");
    }

    async fn rests(&self, node: Node, state: &str) {
        let path = format!("/v1/nodes/{}", node.0);
        let seen = |node: &Value| (node["provision_state"] == state).then_some(());
        self.api.until(&path, state, seen).await;
    }
}

impl PendingChange<'_> {
    /// Waits until the node is in `state`; panics with the reason if the node fails instead.
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

    /// Waits until the node is in `state` with an error, and returns the error.
    pub async fn fails(self, state: &str) -> String {
        let path = format!("/v1/nodes/{}", self.node.0);
        let failed = |node: &Value| {
            let error = node["last_error"].as_str()?;
            (node["provision_state"] == state).then(|| error.to_owned())
        };
        self.lab.api.until(&path, &format!("state {state} with an error"), failed).await
    }
}
