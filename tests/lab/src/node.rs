//! The verbs of a test: enroll, bring to a state, request, wait.

use std::collections::BTreeMap;

use api_client::baremetald::{self, Inventory, Port, Validation, Vif};
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
        let node = self.enroll_as(&body).await;
        for nic in &machine.spec().nics {
            let port = json!({"node_uuid": node.0, "address": nic.mac.to_string()});
            self.api.send(Method::POST, "/v1/ports", Some(&port)).await.expect("a port is made");
        }
        node
    }

    /// Creates a node by this request.
    pub async fn enroll_as(&self, body: &Value) -> Node {
        let id = self.api.create("/v1/nodes", body).await;
        Node(id.parse().expect("a node has a UUID"))
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
        self.set(node, "/instance_info", image.instance_info()).await;
    }

    /// Sets the field of the node, or the part of a field, at this JSON pointer.
    pub async fn set(&self, node: Node, field: &str, value: Value) {
        let patch = json!([{"op": "add", "path": field, "value": value}]);
        self.api.send(Method::PATCH, &node.path(), Some(&patch)).await.expect(field);
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
        let is_active = self.node(node).await.state() == "active";
        let target = if is_active { "rebuild" } else { "active" };
        let body = json!({"target": target, "configdrive": url});
        self.ask(node, &body).await.expect(target);
        PendingChange { lab: self, node }
    }

    async fn ask(&self, node: Node, body: &Value) -> Answer {
        let path = format!("{}/states/provision", node.path());
        self.api.send(Method::PUT, &path, Some(body)).await
    }

    /// Requests a change of provision state from a service that may be killed before it answers.
    pub async fn provision_and_be_killed(&self, node: Node, target: &str) -> PendingChange<'_> {
        let path = format!("{}/states/provision", node.path());
        let body = json!({"target": target});
        // The service records a request before it logs anything of it, so a lost answer does not matter.
        if let Ok(answer) = self.api.try_send(Method::PUT, &path, Some(&body)).await {
            answer.expect(target);
        }
        PendingChange { lab: self, node }
    }

    /// The node as the API shows it.
    pub async fn node(&self, node: Node) -> baremetald::Node {
        self.api.get(&node.path()).await
    }

    /// Waits until `seen` holds for the node, and returns the node.
    pub async fn until(
        &self,
        node: Node,
        what: &str,
        seen: impl Fn(&baremetald::Node) -> bool,
    ) -> baremetald::Node {
        let look = |it: &baremetald::Node| seen(it).then(|| it.clone());
        self.api.until(&node.path(), what, look).await
    }

    /// Waits until work that was requested after `before` has ended in `state`; panics with the reason if the work fails.
    pub async fn ends(&self, node: Node, before: &baremetald::Node, state: &str) {
        let ended = |it: &baremetald::Node| {
            assert_eq!(it.last_error, None, "{it:#?}");
            it.provision_updated_at != before.provision_updated_at && it.state() == state
        };
        self.until(node, state, ended).await;
    }

    /// The inventory that the last inspection found.
    pub async fn inventory(&self, node: Node) -> Inventory {
        self.api.get(&format!("{}/inventory", node.path())).await
    }

    /// Validates the settings of an interface of the node.
    pub async fn validate(&self, node: Node, interface: &str) -> Validation {
        let path = format!("{}/validate", node.path());
        let mut all: BTreeMap<String, Validation> = self.api.get(&path).await;
        all.remove(interface).expect("an interface of the node")
    }

    /// The ports of the node, with all fields.
    pub async fn ports(&self, node: Node) -> Vec<Port> {
        self.api.list(&format!("{}/ports/detail", node.path())).await
    }

    /// Sets the switch port of the node's first port.
    pub async fn link(&self, node: Node, link: &Value) {
        let port = self.ports(node).await.swap_remove(0).uuid.expect("a port has a UUID");
        let patch = json!([{"op": "add", "path": "/local_link_connection", "value": link}]);
        let path = format!("/v1/ports/{port}");
        self.api.send(Method::PATCH, &path, Some(&patch)).await.expect("the port changes");
    }

    /// The VIFs that are attached to the node.
    pub async fn vifs(&self, node: Node) -> Vec<Vif> {
        self.api.list(&format!("{}/vifs", node.path())).await
    }

    /// The hardware that the last inspection found.
    pub async fn hardware(&self, node: Node) -> agent_protocol::Inventory {
        let Inventory { inventory, .. } = self.inventory(node).await;
        serde_json::from_value(inventory).expect("an inventory")
    }

    /// Kills the child process and starts it again, to be killed once it has logged `line` lines that report an action or a state.
    pub async fn restart_to_be_killed_at(&self, line: usize) {
        let mut daemon = self.daemon.lock().await;
        let Daemon::Child(outside) = &mut *daemon else { panic!("baremetald is no child") };
        outside.kill().await;
        outside.start(line);
        drop(daemon);
        self.is_up().await;
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
            Daemon::Inside { .. } | Daemon::Mortal(_) | Daemon::Elsewhere => {
                panic!("baremetald is no child")
            }
        }
    }

    /// Waits until the node is in `state`; panics with the reason if the node fails instead.
    pub async fn reaches(&self, node: Node, state: &str) -> baremetald::Node {
        PendingChange { lab: self, node }.reaches(state).await
    }

    /// Waits until the node is in `state` with an error, and returns the error.
    pub async fn fails(&self, node: Node, state: &str) -> String {
        PendingChange { lab: self, node }.fails(state).await
    }

    /// Ends the maintenance of the node.
    pub async fn end_maintenance(&self, node: Node) {
        let path = format!("{}/maintenance", node.path());
        self.api.send(Method::DELETE, &path, None).await.expect("the end of maintenance");
    }

    async fn rests(&self, node: Node, state: &str) {
        self.until(node, state, |it| it.state() == state).await;
    }
}

impl PendingChange<'_> {
    /// Waits until the node is in `state`; panics with the reason if the node fails instead.
    pub async fn reaches(self, state: &str) -> baremetald::Node {
        let reached = |it: &baremetald::Node| {
            let (now, error) = (it.state(), &it.last_error);
            let over = now != state && (now.ends_with("failed") || now == "error");
            assert!(!over, "{} is {now} instead of {state}: {error:?}", it.label());
            now == state
        };
        self.lab.until(self.node, &format!("state {state}"), reached).await
    }

    /// Waits until the node is in `state` with an error, and returns the error.
    pub async fn fails(self, state: &str) -> String {
        let failed = |it: &baremetald::Node| it.last_error.is_some() && it.state() == state;
        let what = format!("state {state} with an error");
        self.lab.until(self.node, &what, failed).await.last_error.unwrap_or_default()
    }
}
