//! The requests of a person about a VM and its snapshots, and the results that they must have.

use std::sync::Arc;
use std::time::Duration;

use api_client::Service;
use api_client::clusterd::{Events, Snapshot, Vm};
use lab::Answer;
use openstack_emulator::Kind;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::chance::{between, happens, millis, one_of};
use crate::site::Site;

const VMS: &str = "/bedplate/v1/machines";
const SNAPSHOTS: &str = "/bedplate/v1/snapshots";

const LOOK_EVERY: Duration = Duration::from_secs(5);

/// How long a request may take, with all its retries and timeouts.
const LIMIT: Duration = Duration::from_secs(2400);

/// The statuses in which nothing is in progress.
const RESTING: [&str; 5] = ["ACTIVE", "STOPPED", "EXPIRED", "FAILED", "LOST"];

/// An action, and the status in which it ends, unless the VM stays on or off.
type Action = (Value, Option<&'static str>);

/// A person's VMs, one after another.
pub(crate) struct Story {
    site: Arc<Site>,
    name: String,
}

impl Story {
    pub(crate) fn begin(site: &Arc<Site>) -> Story {
        Story { site: site.clone(), name: "lab".to_owned() }
    }

    /// Requests, changes and deletes VMs until the faults have ended.
    pub(crate) async fn run(&self) {
        while !self.site.weather.is_over() {
            sleep(millis(0, 30_000)).await;
            self.request().await;
            if happens(80) {
                let Some(vm) = self.rests("the request").await else { return };
                self.check(&vm);
                for _ in 0..between(0, 3) {
                    match happens(30) {
                        true => self.snapshot().await,
                        false => self.act(self.wish()).await,
                    }
                }
            } else {
                sleep(millis(0, 20_000)).await;
            }
            self.delete().await;
        }
    }

    /// Deletes the VM, after the faults have ended.
    pub(crate) async fn finish(&self) {
        self.delete().await;
    }

    fn path(&self, rest: &str) -> String {
        format!("{VMS}/{}{rest}", self.name)
    }

    async fn request(&self) {
        self.note("is requested");
        let body = json!({"name": self.name, "image": "cirros", "flavor": "m1.nano"});
        while self.vm().await.is_none() {
            match self.try_send(Method::POST, VMS, Some(&body)).await {
                Some(Answer { status: 200..300, .. }) => return,
                Some(Answer { status: 400, body }) => {
                    return self.broken(format!("is refused: {body}"));
                }
                Some(_) | None => sleep(Duration::from_secs(1)).await,
            }
        }
    }

    /// Waits until nothing is in progress.
    async fn rests(&self, what: &str) -> Option<Vm> {
        let begun = simulated_kernel::elapsed();
        loop {
            let vm = self.vm().await;
            if let Some(vm) = vm.as_ref().filter(|it| RESTING.contains(&it.status.as_str())) {
                self.note(format!("is {} after {what}: {:?}", vm.status, vm.status_reason));
                return Some(vm.clone());
            }
            if simulated_kernel::elapsed() - begun > LIMIT {
                let servers = self.site.cloud.objects(Kind::Server);
                let servers: Vec<_> = servers
                    .iter()
                    .filter(|it| !it.text("name").starts_with("blue-"))
                    .map(|it| (it.text("name").to_owned(), it.text("status").to_owned()))
                    .collect();
                self.broken(format!("does not rest {LIMIT:?} after {what}: {vm:?}, {servers:?}"));
                return None;
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// Checks that a VM has one server, or says why it has none.
    fn check(&self, vm: &Vm) {
        let id = vm.uuid.get(..8).unwrap_or_default();
        let servers = self.site.cloud.objects(Kind::Server);
        let count = servers.iter().filter(|it| it.text("name").ends_with(id)).count();
        let runs = ["ACTIVE", "STOPPED"].contains(&vm.status.as_str());
        if count > 1 || (runs && count == 0) {
            self.broken(format!("is {} with {count} servers", vm.status));
        }
        if !runs && vm.status_reason.is_none() {
            self.broken(format!("is {} without a reason", vm.status));
        }
    }

    /// An action that a person could request next. A VM that is off stays on its host while the host is drained and switched off. A person who
    /// starts the VM then does not know that, so no VM is switched off where machines are hosts.
    fn wish(&self) -> Action {
        let all = [
            (json!({"action": "reboot", "hard": happens(50)}), None),
            (json!({"action": "resize", "flavor": *one_of(&["m1.tiny", "m1.small"])}), None),
            (json!({"action": "stop"}), Some("STOPPED")),
            (json!({"action": "start"}), Some("ACTIVE")),
        ];
        let many = if self.site.size.are_hypervisors { 2 } else { all.len() };
        one_of(&all[..many]).clone()
    }

    /// Requests an action, and waits for its end.
    async fn act(&self, (body, goal): Action) {
        let what = body.to_string();
        let before = self.reasons().await.len();
        if !self.is_accepted(&body, before).await {
            return;
        }
        let Some(vm) = self.rests(&what).await else { return };
        self.check(&vm);
        let after = self.reasons().await.split_off(before);
        let says_why = after.iter().any(|it| it == "ActionFailed" || it == "ActionRefused");
        let is_done = after.iter().any(|it| it == "ActionDone");
        let is_there = goal.is_none_or(|goal| vm.status == goal) || vm.status_reason.is_some();
        if !(says_why || (is_done && is_there)) {
            self.broken(format!("is {} after {what} without a reason: {after:?}", vm.status));
        }
    }

    /// Records an action, whatever happens to the answers.
    async fn is_accepted(&self, body: &Value, before: usize) -> bool {
        loop {
            let answer = self.try_send(Method::POST, &self.path("/actions"), Some(body)).await;
            if matches!(answer, Some(Answer { status: 200..300, .. })) {
                return true;
            }
            let new = self.reasons().await.split_off(before);
            if new.iter().any(|reason| reason == "ActionRequested") {
                return true;
            }
            if let Some(Answer { status: 400..500, body: refusal }) = answer {
                self.note(format!("{body} is refused: {refusal}"));
                return false;
            }
            sleep(millis(500, 3000)).await;
        }
    }

    /// Takes a snapshot, and deletes it.
    async fn snapshot(&self) {
        let (name, path) = ("kept", format!("{SNAPSHOTS}/kept"));
        let body = json!({"name": name});
        while self.snapshot_at(&path).await.is_none() {
            let taken = self.try_send(Method::POST, &self.path("/snapshots"), Some(&body)).await;
            match taken {
                Some(Answer { status: 200..300, .. }) => break,
                Some(Answer { status: 400..500, body }) => {
                    if self.snapshot_at(&path).await.is_none() {
                        return self.note(format!("has no snapshot taken: {body}"));
                    }
                }
                Some(_) | None => sleep(Duration::from_secs(1)).await,
            }
        }
        let begun = simulated_kernel::elapsed();
        loop {
            let snapshot = self.snapshot_at(&path).await;
            if let Some(ended) = snapshot.as_ref().filter(|it| has_ended(it)) {
                self.check_snapshot(ended);
                return self.gone(&path).await;
            }
            if simulated_kernel::elapsed() - begun > LIMIT {
                return self.broken(format!("has no snapshot after {LIMIT:?}: {snapshot:?}"));
            }
            sleep(LOOK_EVERY).await;
        }
    }

    fn check_snapshot(&self, snapshot: &Snapshot) {
        self.note(format!("has a snapshot that is {}", snapshot.status));
        let images = self.site.cloud.objects(Kind::Image);
        let count = images.iter().filter(|it| it.text("name").ends_with(&snapshot.uuid)).count();
        if snapshot.status == "active" && count != 1 {
            self.broken(format!("has {count} images of a snapshot"));
        }
        if snapshot.status == "failed" && snapshot.status_reason.is_none() {
            self.broken("has a snapshot that failed without a reason");
        }
    }

    async fn delete(&self) {
        self.note("is to be deleted");
        self.gone(&self.path("")).await;
        self.note("is deleted");
    }

    /// Deletes a resource, and waits until it is gone.
    async fn gone(&self, path: &str) {
        loop {
            match self.try_send(Method::DELETE, path, None).await {
                Some(Answer { status: 200..300 | 404, .. }) => break,
                Some(_) | None => sleep(Duration::from_secs(2)).await,
            }
        }
        let begun = simulated_kernel::elapsed();
        loop {
            match self.try_send(Method::GET, path, None).await {
                Some(Answer { status: 404, .. }) => return,
                answer if simulated_kernel::elapsed() - begun > LIMIT => {
                    return self.broken(format!("{path} is not gone after {LIMIT:?}: {answer:?}"));
                }
                Some(_) | None => sleep(LOOK_EVERY).await,
            }
        }
    }

    async fn vm(&self) -> Option<Vm> {
        serde_json::from_value(self.get(&self.path("")).await?).ok()
    }

    async fn snapshot_at(&self, path: &str) -> Option<Snapshot> {
        serde_json::from_value(self.get(path).await?).ok()
    }

    /// The reasons of the VM's events, in their order.
    async fn reasons(&self) -> Vec<String> {
        loop {
            let events = self.get(&self.path("/events")).await;
            if let Some(Ok(Events { events })) = events.map(serde_json::from_value) {
                return events.into_iter().map(|event| event.read.reason).collect();
            }
            sleep(Duration::from_millis(500)).await;
        }
    }

    async fn get(&self, path: &str) -> Option<Value> {
        match self.try_send(Method::GET, path, None).await {
            Some(Answer { status: 200, body }) => Some(body),
            Some(_) | None => None,
        }
    }

    /// Sends a request to any process. Returns `None` without an answer.
    async fn try_send(&self, method: Method, path: &str, body: Option<&Value>) -> Option<Answer> {
        self.site.ask(Service::Clusterd, method, path, body).await
    }

    fn note(&self, text: impl AsRef<str>) {
        self.site.trace.note(format!("VM {}", text.as_ref()));
    }

    fn broken(&self, text: impl AsRef<str>) {
        self.site.trace.violation(format!("VM {}", text.as_ref()));
    }
}

fn has_ended(snapshot: &Snapshot) -> bool {
    ["active", "failed"].contains(&snapshot.status.as_str())
}
