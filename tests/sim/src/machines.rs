//! The requests of people about machines, and the results that they must have.

use std::sync::Arc;
use std::time::Duration;

use api_client::{Service, baremetald};
use bmc_emulator::{Outcome, Request};
use lab::{Answer, RackedMachine};
use machine_emulator::{Event, Stage};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::chance::{millis, one_of};
use crate::site::Site;

/// How often a person looks.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// How long a request may take, with all its retries and timeouts.
const LIMIT: Duration = Duration::from_secs(2400);

/// How long a person waits for a machine that its node says is off: a sweep of all machines takes place meanwhile.
const LEFT_OFF: Duration = Duration::from_secs(120);

/// The states in which nothing is in progress.
const RESTING: [&str; 12] = [
    "enroll",
    "manageable",
    "available",
    "active",
    "inspect failed",
    "clean failed",
    "deploy failed",
    "error",
    "rescue",
    "adopt failed",
    "rescue failed",
    "unrescue failed",
];

/// A machine and its node.
pub(crate) struct Story {
    pub(crate) site: Arc<Site>,
    pub(crate) machine: RackedMachine,
    pub(crate) node: String,
}

/// A moment in the life of a machine.
struct Moment {
    requests: usize,
    events: usize,
}

impl Story {
    /// Enrolls a machine.
    pub(crate) async fn begin(site: &Arc<Site>, machine: &RackedMachine) -> Story {
        let mut body = machine.node();
        body["instance_info"] = site.image.instance_info();
        let story =
            Story { site: site.clone(), machine: machine.clone(), node: machine.name().to_owned() };
        story.create("/v1/nodes", &body).await;
        let id = story.read().await.uuid.unwrap_or_default();
        for nic in &machine.spec().nics {
            let port = json!({"node_uuid": id, "address": nic.mac.to_string()});
            story.create("/v1/ports", &port).await;
        }
        story.note(format!("is enrolled with the driver {}", machine.driver()));
        story
    }

    /// Asks for a few changes, and in the end for a machine that nobody uses.
    pub(crate) async fn run(&self) {
        while !self.site.weather.is_over() {
            sleep(millis(0, 10_000)).await;
            let node = self.read().await;
            let target = self.wish(&node);
            self.ask(&node, target).await;
        }
    }

    /// Brings the machine to `available`, after the faults have ended.
    pub(crate) async fn finish(&self) {
        for _ in 0..12 {
            let node = self.read().await;
            if node.state() == "available" {
                return self.is_blank(&node);
            }
            let target = match node.state() {
                "active" | "deploy failed" | "error" | "rescue" | "rescue failed"
                | "unrescue failed" => "deleted",
                "manageable" => "provide",
                _ => "manage",
            };
            self.ask(&node, target).await;
        }
        let node = self.read().await;
        self.broken(format!(
            "is {} and does not become available: {:?}",
            node.state(),
            node.last_error
        ));
    }

    fn is_blank(&self, _: &baremetald::Node) {
        if !self.machine.disks_are_blank() {
            self.broken("is available, and its disks are not erased");
        }
    }

    /// A change that a person could ask for next.
    fn wish(&self, node: &baremetald::Node) -> &'static str {
        let wishes: &[&'static str] = match node.state() {
            "enroll" | "inspect failed" | "clean failed" | "adopt failed" => &["manage"],
            "manageable" => &["provide", "provide", "inspect"],
            "available" => &["active", "active", "active", "manage"],
            "active" => &["rebuild", "deleted", "deleted"],
            "deploy failed" => &["active", "deleted"],
            _ => &["deleted"],
        };
        one_of::<&str>(wishes)
    }

    /// Asks for a change, and waits for its end.
    async fn ask(&self, before: &baremetald::Node, target: &str) {
        if before.maintenance {
            let path = format!("/v1/nodes/{}/maintenance", self.node);
            self.send(Method::DELETE, &path, None).await;
        }
        if target == "active" {
            let image = self.site.image.instance_info();
            let patch = json!([{"op": "add", "path": "/instance_info", "value": image}]);
            self.send(Method::PATCH, &format!("/v1/nodes/{}", self.node), Some(&patch)).await;
        }
        let moment = self.moment();
        if !self.is_accepted(before, target).await {
            return;
        }
        self.note(format!("{target} is accepted"));
        let Some(node) = self.ended(before).await else { return };
        self.note(format!("is {} after {target}: {:?}", node.state(), node.last_error));
        self.check(target, &node, &moment).await;
        self.rests().await;
    }

    /// Records a change, whatever happens to the answers.
    async fn is_accepted(&self, before: &baremetald::Node, target: &str) -> bool {
        let body = json!({"target": target});
        let path = format!("/v1/nodes/{}/states/provision", self.node);
        loop {
            let answer = self.try_send(Method::PUT, &path, Some(&body)).await;
            match answer {
                Some(Answer { status: 200..300, .. }) => return true,
                Some(Answer { status: 400..500, body }) if body.to_string().contains("lock") => {}
                Some(Answer { status: 400..409, body }) => {
                    let now = self.read().await;
                    if now.provision_updated_at != before.provision_updated_at {
                        return true;
                    }
                    self.note(format!("{target} is refused: {body}"));
                    return false;
                }
                Some(_) | None => {}
            }
            sleep(millis(500, 3000)).await;
            let now = self.read().await;
            if now.provision_updated_at != before.provision_updated_at {
                return true;
            }
        }
    }

    /// Waits for the end of the work that was asked for after `before`.
    async fn ended(&self, before: &baremetald::Node) -> Option<baremetald::Node> {
        let begun = simulated_kernel::elapsed();
        loop {
            let node = self.read().await;
            let is_new = node.provision_updated_at != before.provision_updated_at;
            if is_new && RESTING.contains(&node.state()) {
                return Some(node);
            }
            if simulated_kernel::elapsed() - begun > LIMIT {
                self.broken(format!("is {} for {LIMIT:?}: {:?}", node.state(), node.last_error));
                return None;
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// Checks the result of a request.
    async fn check(&self, target: &str, node: &baremetald::Node, since: &Moment) {
        let goal = match target {
            "manage" | "inspect" => "manageable",
            "provide" | "deleted" => "available",
            "active" | "rebuild" => "active",
            other => other,
        };
        if node.state() != goal {
            if node.last_error.as_deref().unwrap_or_default().is_empty() {
                self.broken(format!("is {} after {target} without a reason", node.state()));
            }
            return;
        }
        let events = self.machine.events().split_off(since.events);
        let begun =
            |step: &str| events.iter().filter(|it| **it == Event::Begins(step.to_owned())).count();
        if goal == "active" {
            if begun("write_image") != 1 {
                self.broken(format!(
                    "was installed with {} images: {events:?}",
                    begun("write_image")
                ));
            }
            self.runs_its_image().await;
        }
        if target == "deleted" || target == "provide" {
            self.is_blank(node);
        }
    }

    /// Waits until the machine runs its image. A BMC that lied about the power, or that followed a request too late, may have left the machine
    /// off; then the node says so, and a person switches it on.
    async fn runs_its_image(&self) {
        let begun = simulated_kernel::elapsed();
        let mut stage = self.machine.stage();
        let mut is_switched_on = false;
        while *stage.borrow_and_update() != Stage::Installed {
            if matches!(*stage.borrow(), Stage::Hung(_)) {
                return self.note("hangs");
            }
            let waited = simulated_kernel::elapsed() - begun;
            let node = self.read().await;
            if waited > LEFT_OFF
                && !is_switched_on
                && node.power_state.as_deref() == Some("power off")
            {
                self.note("was left off, and is switched on");
                let (path, on) = (
                    format!("/v1/nodes/{}/states/power", self.node),
                    json!({"target": "power on"}),
                );
                self.send(Method::PUT, &path, Some(&on)).await;
                is_switched_on = true;
            }
            if waited > Duration::from_secs(600) {
                let stage = stage.borrow().clone();
                return self
                    .broken(format!("is active and does not run its image, but is {stage:?}"));
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// Asserts that nobody changes the machine while nobody has asked for anything.
    async fn rests(&self) {
        sleep(Duration::from_secs(8)).await;
        let before = self.moment();
        sleep(millis(0, 15_000)).await;
        let late: Vec<_> = self.machine.chassis().log().split_off(before.requests);
        let late: Vec<_> = late
            .into_iter()
            .filter(|it| {
                it.outcome == Outcome::Accepted
                    && matches!(it.request, Request::Power(_) | Request::Boot(..))
            })
            .collect();
        if !late.is_empty() {
            self.broken(format!("was changed while nobody had asked for anything: {late:?}"));
        }
    }

    fn moment(&self) -> Moment {
        Moment { requests: self.machine.chassis().log().len(), events: self.machine.events().len() }
    }

    /// Reads the node.
    pub(crate) async fn read(&self) -> baremetald::Node {
        let path = format!("/v1/nodes/{}", self.node);
        loop {
            if let Some(Answer { status: 200, body }) =
                self.try_send(Method::GET, &path, None).await
            {
                return serde_json::from_value(body).expect("a node");
            }
            sleep(Duration::from_millis(500)).await;
        }
    }

    async fn create(&self, path: &str, body: &Value) {
        loop {
            match self.try_send(Method::POST, path, Some(body)).await {
                // It exists if an answer was lost.
                Some(Answer { status: 201 | 409, .. }) => return,
                Some(Answer { status: 400..500, body }) => {
                    return self.broken(format!("cannot be enrolled: {body}"));
                }
                Some(_) | None => sleep(Duration::from_secs(1)).await,
            }
        }
    }

    async fn send(&self, method: Method, path: &str, body: Option<&Value>) {
        while !matches!(
            self.try_send(method.clone(), path, body).await,
            Some(Answer { status: 200..500, .. })
        ) {
            sleep(Duration::from_secs(1)).await;
        }
    }

    /// Sends a request to any process. Returns `None` without an answer.
    async fn try_send(&self, method: Method, path: &str, body: Option<&Value>) -> Option<Answer> {
        self.site.ask(Service::Baremetald, method, path, body).await
    }

    fn note(&self, text: impl AsRef<str>) {
        self.site.trace.note(format!("{} {}", self.node, text.as_ref()));
    }

    fn broken(&self, text: impl AsRef<str>) {
        self.site.trace.violation(format!("{} {}", self.node, text.as_ref()));
    }
}
