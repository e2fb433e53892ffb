//! A rack whose machines become hypervisors of the cloud.

use std::sync::Arc;
use std::time::Duration;

use api_client::Service;
use lab::{Answer, RackedMachine};
use openstack_emulator::Kind;
use reqwest::Method;
use serde_json::{Value, json};
use simulated_kernel::elapsed;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::chance::happens;
use crate::hosts::{Asked, DRAINS, Host, LIMIT, LOOK_EVERY, RACK_UP, bring_up, request};
use crate::site::Site;

/// The rack of hypervisors.
pub(crate) struct Story {
    site: Arc<Site>,
    hosts: Vec<Arc<Host>>,
}

impl Story {
    /// Requests that the machines become hypervisors. The faults begin before or after that.
    pub(crate) async fn begin(site: &Arc<Site>) -> Story {
        let host = |machine: &RackedMachine| {
            Arc::new(Host { site: site.clone(), machine: machine.clone() })
        };
        let story = Story { site: site.clone(), hosts: site.machines.iter().map(host).collect() };
        let rows: Vec<Value> = (1..).zip(&site.machines).map(|(line, it)| it.row(line)).collect();
        story.create("/bedplate/v1/racks", &json!({"name": "r1", "machines": rows})).await;
        story.create("/bedplate/v1/hypervisor-profiles", &profile(site)).await;
        bring_up(site).await;
        if happens(60) {
            story.each(|host| async move { host.joins().await }).await;
        }
        story
    }

    /// Asks for changes until the faults have ended.
    pub(crate) async fn run(&self) {
        self.each(|host| async move { host.run().await }).await;
    }

    /// Lets all machines run as hosts that take servers, after the faults have ended.
    pub(crate) async fn finish(&self) {
        self.each(|host| async move { host.finish().await }).await;
    }

    /// Takes all machines out of use, after their servers were deleted, and checks that the cloud has no host of them.
    pub(crate) async fn leave(&self) {
        let paused = request(&self.site, Service::Baremetald, Method::DELETE, RACK_UP, None).await;
        if let Asked::Refused(why) = &paused {
            self.site.trace.violation(format!("the bring-up of the rack does not pause: {why}"));
        }
        self.each(|host| async move { host.leave().await }).await;
        let begun = elapsed();
        loop {
            let (hosts, drains) = (self.known_hosts(), self.drains().await);
            if hosts.is_empty() && drains == Some(json!([])) {
                return;
            }
            if elapsed() - begun > LIMIT {
                let text = format!("the cloud still has hosts {hosts:?}, with drains {drains:?}");
                return self.site.trace.violation(text);
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// Does something with each host, with all of them at the same time.
    async fn each<F>(&self, act: impl Fn(Arc<Host>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut all = JoinSet::new();
        for host in &self.hosts {
            all.spawn(act(host.clone()));
        }
        all.join_all().await;
    }

    /// The machines that the cloud has as hosts.
    fn known_hosts(&self) -> Vec<String> {
        let all = self.site.cloud.objects(Kind::ComputeHost).into_iter();
        let is_own = |name: &String| self.hosts.iter().any(|it| it.name() == name);
        all.map(|it| it.text("name").to_owned()).filter(is_own).collect()
    }

    async fn drains(&self) -> Option<Value> {
        match self.site.ask(Service::Clusterd, Method::GET, DRAINS, None).await {
            Some(Answer { status: 200, body }) => Some(body["drains"].clone()),
            Some(_) | None => None,
        }
    }

    async fn create(&self, path: &str, body: &Value) {
        loop {
            match self.site.ask(Service::Baremetald, Method::POST, path, Some(body)).await {
                // It exists if an answer was lost.
                Some(Answer { status: 200..300 | 409, .. }) => return,
                Some(Answer { status: 400..500, body }) => {
                    return self.site.trace.violation(format!("{path} is refused: {body}"));
                }
                Some(_) | None => sleep(Duration::from_secs(1)).await,
            }
        }
    }
}

fn profile(site: &Site) -> Value {
    let bus = format!("rabbit://nova:bus-secret@{}/", site.cloud.address());
    json!({
        "name": "kvm", "kind": "cloud-init", "instance_info": site.image.instance_info(),
        "settings": {
            "keystone": {
                "auth_url": site.cloud.auth_url(), "username": "nova", "password": "nova-secret",
            },
            "message_bus": {"transport_url": bus},
            "compute": {"virtualization": "qemu"},
        },
        "placement": {"aggregate": {"fixed": "kvm"}},
    })
}
