//! A machine that is a hypervisor of the cloud, and what people ask of it: drains, changes of power, maintenance.

use std::sync::Arc;
use std::time::Duration;

use api_client::{Service, baremetald};
use lab::{Answer, RackedMachine};
use machine_emulator::{Event, Stage};
use openstack_emulator::Kind;
use reqwest::Method;
use serde_json::{Value, json};
use simulated_kernel::elapsed;
use tokio::time::sleep;

use crate::chance::{between, millis, one_of};
use crate::machines;
use crate::site::Site;

pub(crate) const RACK_UP: &str = "/bedplate/v1/racks/r1/up";
pub(crate) const DRAINS: &str = "/bedplate/v1/drains";

/// How often a person looks.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(5);

/// How long a request may take, with all its retries and timeouts.
pub(crate) const LIMIT: Duration = Duration::from_secs(2400);

/// How long a person waits for a drain that makes no progress.
const PATIENCE: Duration = Duration::from_secs(90);

/// How long a person waits before a request is made again.
const ASK_AGAIN: Duration = Duration::from_secs(30);

/// How long the system of a machine has to run before the host accepts servers again. A BMC can follow a request for a change of power so late.
const STEADY: Duration = Duration::from_secs(60);

/// The end of a request.
pub(crate) enum Asked {
    Accepted,
    Refused(String),
    /// A repetition was refused. The first try was not answered, and may have been accepted.
    Unclear,
}

/// A machine, whose name is the name of its host in the cloud.
pub(crate) struct Host {
    pub(crate) site: Arc<Site>,
    pub(crate) machine: RackedMachine,
}

/// Requests that the machines of the rack become hypervisors. A machine that has failed is tried again.
pub(crate) async fn bring_up(site: &Site) {
    let goal = json!({"profile": "kvm", "limit": 3});
    let asked = request(site, Service::Baremetald, Method::PUT, RACK_UP, Some(&goal)).await;
    if let Asked::Refused(why) = &asked {
        site.trace.violation(format!("the rack is not brought up: {why}"));
    }
}

/// Sends a request until a service accepts or refuses it.
pub(crate) async fn request(
    site: &Site,
    service: Service,
    method: Method,
    path: &str,
    body: Option<&Value>,
) -> Asked {
    let mut is_repeated = false;
    loop {
        match site.ask(service, method.clone(), path, body).await {
            Some(Answer { status: 200..300, .. }) => return Asked::Accepted,
            Some(Answer { status: 400..500, body }) => match is_repeated {
                true => return Asked::Unclear,
                false => return Asked::Refused(body.to_string()),
            },
            Some(_) | None => is_repeated = true,
        }
        sleep(millis(500, 3000)).await;
    }
}

impl Host {
    pub(crate) fn name(&self) -> &str {
        self.machine.name()
    }

    pub(crate) async fn run(&self) {
        while !self.site.weather.is_over() {
            sleep(millis(0, 20_000)).await;
            self.joins().await;
            match between(0, 5) {
                0..=2 => {
                    self.switch(one_of::<&str>(&["power off", "power off", "rebooting"])).await
                }
                3 | 4 => self.drain().await,
                _ => self.maintain().await,
            }
        }
    }

    pub(crate) async fn finish(&self) {
        self.joins().await;
        self.comes_back().await;
        self.ends_maintenance().await;
        self.undrain().await;
        self.takes_servers().await;
    }

    pub(crate) async fn leave(&self) {
        let (site, machine) = (self.site.clone(), self.machine.clone());
        let node = self.name().to_owned();
        machines::Story { site, machine, node }.finish().await;
    }

    /// Waits until the machine has joined the cloud.
    pub(crate) async fn joins(&self) {
        let begun = elapsed();
        let mut asked_at = begun;
        while !self.has_joined().await {
            if elapsed() - begun > LIMIT {
                let node = self.node().await;
                let (state, why) = (node.state(), &node.last_error);
                let (power, stage) = (&node.power_state, self.machine.stage().borrow().clone());
                return self.broken(format!(
                    "is {state} with {power:?} and {stage:?}, and has not joined the cloud: {why:?}"
                ));
            }
            if elapsed() - asked_at > PATIENCE {
                self.ends_maintenance().await;
                self.is_helped().await;
                bring_up(&self.site).await;
                asked_at = elapsed();
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// Switches an installed machine on that is off, as its node says, and reboots one that hangs. A BMC that lied about its power, or that
    /// followed a request too late, leaves the machine off.
    async fn is_helped(&self) {
        let node = self.node().await;
        if node.state() != "active" {
            return;
        }
        if matches!(*self.machine.stage().borrow(), Stage::Hung(_)) {
            self.power("rebooting").await;
        } else if node.power_state.as_deref() == Some("power off") {
            self.power("power on").await;
        }
    }

    async fn has_joined(&self) -> bool {
        let path = format!("/bedplate/v1/nodes/{}/hypervisor", self.name());
        match self.site.ask(Service::Baremetald, Method::GET, &path, None).await {
            Some(Answer { status: 200, body }) => body["state"] == "joined",
            Some(_) | None => false,
        }
    }

    /// Changes the power of the machine, for which its host is drained first.
    async fn switch(&self, target: &str) {
        let before = self.machine.events().len();
        let (path, body) = (self.path("/states/power"), json!({"target": target}));
        let asked = self.request(Service::Baremetald, Method::PUT, &path, Some(&body)).await;
        if let Asked::Refused(why) = &asked {
            return self.note(format!("{target} is refused: {why}"));
        }
        self.note(format!("{target} is requested"));
        match (self.power_rests().await, asked) {
            (Some(node), Asked::Accepted) => self.check_power(target, &node, before),
            (Some(_), _) => {}
            (None, _) => self.note(format!("{target} takes too long and is cancelled")),
        }
        self.comes_back().await;
        self.undrain().await;
    }

    /// Waits until no change of power is in progress, or returns `None` if it takes too long.
    async fn power_rests(&self) -> Option<baremetald::Node> {
        let begun = elapsed();
        loop {
            let node = self.node().await;
            if node.target_power_state.is_none() {
                return Some(node);
            }
            if elapsed() - begun > PATIENCE {
                return None;
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// Checks that the power has changed, or that the node says why not. A BMC that lies may have shown the wanted state.
    fn check_power(&self, target: &str, node: &baremetald::Node, before: usize) {
        let goal = if target == "rebooting" { "power on" } else { target };
        let (power, why) = (node.power_state.as_deref(), node.last_error.as_deref());
        self.note(format!("is {power:?} after {target}: {why:?}"));
        let has_changed = |it: &Event| matches!(it, Event::Off | Event::Started);
        let mut events = self.machine.events().into_iter().skip(before);
        let says_why = why.is_some_and(|it| !it.is_empty()) || node.maintenance;
        if power != Some(goal) && !says_why && !events.any(|it| has_changed(&it)) {
            self.broken(format!("is {power:?} after {target} without a reason"));
        }
    }

    /// Switches the machine on, and waits until its system has run for a while.
    async fn comes_back(&self) {
        let begun = elapsed();
        let (mut runs_since, mut asked_at) = (None, None);
        loop {
            let now = elapsed();
            let stage = self.machine.stage().borrow().clone();
            runs_since = (stage == Stage::Installed).then(|| runs_since.unwrap_or(now));
            if runs_since.is_some_and(|since: Duration| now - since >= STEADY) {
                return;
            }
            if now - begun > LIMIT {
                return self.broken(format!("is {stage:?} and does not come back"));
            }
            if asked_at.is_none_or(|at: Duration| now - at > ASK_AGAIN) {
                // The first request also cancels one that waits for a drain.
                if matches!(stage, Stage::Hung(_)) {
                    self.power("rebooting").await;
                } else if stage == Stage::Off || asked_at.is_none() {
                    self.power("power on").await;
                }
                asked_at = Some(now);
            }
            sleep(LOOK_EVERY).await;
        }
    }

    async fn power(&self, target: &str) {
        let (path, body) = (self.path("/states/power"), json!({"target": target}));
        let asked = self.request(Service::Baremetald, Method::PUT, &path, Some(&body)).await;
        if let Asked::Refused(why) = &asked {
            self.note(format!("{target} is refused: {why}"));
        }
    }

    /// Drains the host for a while.
    async fn drain(&self) {
        let asked = self.request(Service::Clusterd, Method::PUT, &self.drain_path(), None).await;
        if let Asked::Refused(why) = &asked {
            return self.note(format!("a drain is refused: {why}"));
        }
        self.note("is to be drained");
        let begun = elapsed();
        while elapsed() - begun < PATIENCE {
            let state = self.drain_state().await;
            if state.as_ref().is_some_and(|it| it == "drained" || it == "stuck") {
                self.note(format!("is {state:?}"));
                break;
            }
            sleep(LOOK_EVERY).await;
        }
        sleep(millis(0, 10_000)).await;
        self.undrain().await;
    }

    /// Puts the node into maintenance for a while. The end of the maintenance ends the drain.
    async fn maintain(&self) {
        let (path, body) = (self.path("/maintenance"), json!({"reason": "a fan"}));
        let asked = self.request(Service::Baremetald, Method::PUT, &path, Some(&body)).await;
        if let Asked::Refused(why) = &asked {
            return self.note(format!("maintenance is refused: {why}"));
        }
        self.note("is in maintenance");
        sleep(millis(5_000, 40_000)).await;
        self.ends_maintenance().await;
        let begun = elapsed();
        while elapsed() - begun < PATIENCE && self.drain_state().await.is_some() {
            sleep(LOOK_EVERY).await;
        }
        self.undrain().await;
    }

    async fn ends_maintenance(&self) {
        if self.node().await.maintenance {
            let path = self.path("/maintenance");
            let asked = self.request(Service::Baremetald, Method::DELETE, &path, None).await;
            if let Asked::Refused(why) = &asked {
                self.note(format!("the maintenance does not end: {why}"));
            }
        }
    }

    /// Lets the host accept servers again.
    async fn undrain(&self) {
        let path = self.drain_path();
        // A host that is not drained is refused.
        let _ = self.request(Service::Clusterd, Method::DELETE, &path, None).await;
        let begun = elapsed();
        loop {
            match self.site.ask(Service::Clusterd, Method::GET, &path, None).await {
                Some(Answer { status: 404, .. }) => return,
                Some(Answer { body, .. }) if elapsed() - begun > LIMIT => {
                    return self.broken(format!("is drained for {LIMIT:?}: {body}"));
                }
                Some(_) | None => sleep(LOOK_EVERY).await,
            }
        }
    }

    /// Checks that the scheduler uses the host. A request to disable the host may come so late that its drain has ended; then a person drains the
    /// host once more, which ends that.
    async fn takes_servers(&self) {
        sleep(STEADY).await;
        if !self.is_disabled() {
            return;
        }
        self.note("takes no servers after its drain");
        let path = self.drain_path();
        let asked = self.request(Service::Clusterd, Method::PUT, &path, None).await;
        self.undrain().await;
        if matches!(asked, Asked::Accepted) && self.is_disabled() {
            self.broken("takes no servers, and nobody drains it");
        }
    }

    fn is_disabled(&self) -> bool {
        let all = self.site.cloud.objects(Kind::ComputeHost);
        let own = all.iter().find(|it| it.text("name") == self.name());
        own.is_some_and(|it| it.hidden.get("disabled") == Some(&json!(true)))
    }

    /// The state of the host's drain, if the host is drained.
    async fn drain_state(&self) -> Option<Value> {
        match self.site.ask(Service::Clusterd, Method::GET, &self.drain_path(), None).await {
            Some(Answer { status: 200, body }) => Some(body["state"].clone()),
            Some(_) | None => None,
        }
    }

    async fn node(&self) -> baremetald::Node {
        loop {
            let answer =
                self.site.ask(Service::Baremetald, Method::GET, &self.path(""), None).await;
            if let Some(Answer { status: 200, body }) = answer {
                return serde_json::from_value(body).expect("a node");
            }
            sleep(Duration::from_millis(500)).await;
        }
    }

    async fn request(
        &self,
        service: Service,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Asked {
        request(&self.site, service, method, path, body).await
    }

    fn path(&self, rest: &str) -> String {
        format!("/v1/nodes/{}{rest}", self.name())
    }

    fn drain_path(&self) -> String {
        format!("{DRAINS}/{}", self.name())
    }

    fn note(&self, text: impl AsRef<str>) {
        self.site.trace.note(format!("host {} {}", self.name(), text.as_ref()));
    }

    fn broken(&self, text: impl AsRef<str>) {
        self.site.trace.violation(format!("host {} {}", self.name(), text.as_ref()));
    }
}
