//! The requests of people about clusters, and the results that they must have.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api_client::Service;
use api_client::clusterd::ClusterStatus;
use lab::Answer;
use openstack_emulator::Kind;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::chance::{between, happens, millis, one_of};
use crate::site::Site;

const LOOK_EVERY: Duration = Duration::from_secs(5);

/// How long a request may take, with all its retries and timeouts. A new server that does not start from its backup is created again after 45
/// minutes.
const LIMIT: Duration = Duration::from_secs(3600);

/// A person's clusters, one after another.
pub(crate) struct Story {
    site: Arc<Site>,
    name: String,
}

impl Story {
    pub(crate) async fn begin(site: &Arc<Site>) -> Story {
        let story = Story { site: site.clone(), name: "blue".to_owned() };
        for (name, version) in [("small", "v1.34.1"), ("newer", "v1.34.2")] {
            let template = json!({
                "name": name, "coe": "kubernetes", "image_id": "fedora-coreos", "external_network_id": "public",
                "flavor_id": "m1.small", "master_flavor_id": "m1.small", "master_lb_enabled": true,
                "labels": {"kube_tag": version},
            });
            let made = format!("/v1/clustertemplates/{name}");
            story.create("/v1/clustertemplates", &made, &template).await;
        }
        story
    }

    /// Makes, changes and deletes clusters until the faults have ended.
    pub(crate) async fn run(&self) {
        while !self.site.weather.is_over() {
            sleep(millis(0, 30_000)).await;
            let masters = *one_of(&[1, 3]);
            let workers = between(0, 2);
            let cluster = json!({
                "name": self.name, "cluster_template_id": "small", "master_count": masters, "node_count": workers,
            });
            self.note(format!("{masters} and {workers} members are asked for"));
            self.create("/v1/clusters", &format!("/v1/clusters/{}", self.name), &cluster).await;
            if happens(70) {
                self.ended("create", masters + workers).await;
                self.is_watched(masters).await;
                match between(0, 3) {
                    0 => self.upgrade(masters + workers).await,
                    1 | 2 => self.resize(masters).await,
                    _ => {}
                }
                if self.site.size.are_hypervisors {
                    sleep(millis(30_000, 120_000)).await;
                }
                self.is_repaired().await;
                if happens(30) {
                    self.restore(masters).await;
                }
            } else {
                sleep(millis(0, 60_000)).await;
            }
            self.delete().await;
        }
    }

    /// From now on the quorum of the cluster is watched, if the cluster is complete.
    async fn is_watched(&self, masters: u64) {
        let status = self.status().await;
        if status.is_some_and(|it| it.status == "CREATE_COMPLETE") {
            self.site.watch.begin(masters as usize);
        }
    }

    /// Waits until a member that the cloud lost is replaced.
    async fn is_repaired(&self) {
        let begun = simulated_kernel::elapsed();
        while self.site.watch.is_broken() {
            if simulated_kernel::elapsed() - begun > LIMIT {
                let status = self.status().await;
                return self.broken(format!("is not repaired after {LIMIT:?}: {status:?}"));
            }
            sleep(LOOK_EVERY).await;
        }
    }

    async fn resize(&self, masters: u64) {
        let workers = between(0, 3);
        self.note(format!("{workers} workers are asked for"));
        self.act("resize", &json!({"node_count": workers}), masters + workers).await;
    }

    async fn upgrade(&self, members: u64) {
        let at_once = between(1, 2);
        self.note(format!("an upgrade is asked for, {at_once} at once"));
        let body = json!({"cluster_template": "newer", "max_batch_size": at_once});
        self.act("upgrade", &body, members).await;
    }

    /// Asks for an action, and waits for its end.
    async fn act(&self, action: &str, body: &Value, members: u64) {
        let path = format!("/v1/clusters/{}/actions/{action}", self.name);
        for _ in 0..100 {
            match self.try_send(Method::POST, &path, Some(body)).await {
                Some(Answer { status: 200..300, .. }) => return self.ended(action, members).await,
                Some(Answer { status: 400..500, body })
                    if !body.to_string().contains("in progress") =>
                {
                    return self.note(format!("has refused {action}: {body}"));
                }
                Some(_) | None => sleep(Duration::from_secs(2)).await,
            }
        }
    }

    /// Backs the cluster up, and restores its control plane from the backup.
    async fn restore(&self, masters: u64) {
        let of_cluster = |path: &str| format!("/bedplate/v1/clusters/{}/{path}", self.name);
        self.note("is to be backed up");
        let Some(backup) = self.accepted(&of_cluster("backups"), None).await else { return };
        let Some(id) = backup["uuid"].as_str() else { return self.broken("has a strange backup") };
        let (path, begun) = (of_cluster(&format!("backups/{id}")), simulated_kernel::elapsed());
        loop {
            if let Some(Answer { status: 200, body }) =
                self.try_send(Method::GET, &path, None).await
            {
                if body["tested_at"].is_string() {
                    break;
                }
                if body["step"].is_null() {
                    return self.note("is not backed up");
                }
            }
            if simulated_kernel::elapsed() - begun > LIMIT {
                return self.broken(format!("is not backed up after {LIMIT:?}"));
            }
            sleep(LOOK_EVERY).await;
        }
        self.note("is to be restored");
        self.site.watch.end();
        let body = json!({"backup": id, "force": true});
        if self.accepted(&of_cluster("restore"), Some(&body)).await.is_some() {
            self.ended("restore", masters).await;
        }
    }

    /// Sends a request until it is accepted or refused. Returns the answer if it is accepted.
    async fn accepted(&self, path: &str, body: Option<&Value>) -> Option<Value> {
        loop {
            match self.try_send(Method::POST, path, body).await {
                Some(Answer { status: 200..300, body }) => return Some(body),
                Some(Answer { status: 400..500, body }) => {
                    self.note(format!("gets a refusal: {}", body["errors"][0]["detail"]));
                    return None;
                }
                Some(_) | None => sleep(Duration::from_secs(2)).await,
            }
        }
    }

    /// Waits for the end of a request.
    async fn ended(&self, what: &str, members: u64) {
        let begun = simulated_kernel::elapsed();
        sleep(Duration::from_secs(5)).await;
        loop {
            if let Some(status) = self.status().await
                && !status.status.ends_with("IN_PROGRESS")
            {
                self.note(format!("is {} after {what}", status.status));
                return self.check(&status, members);
            }
            if simulated_kernel::elapsed() - begun > LIMIT {
                return self.broken(format!(
                    "is not ready {LIMIT:?} after {what}: {:?}",
                    self.status().await
                ));
            }
            sleep(LOOK_EVERY).await;
        }
    }

    fn check(&self, status: &ClusterStatus, members: u64) {
        if status.status.ends_with("FAILED") {
            if status.conditions.is_empty() {
                self.broken(format!("is {} without a reason", status.status));
            }
            return;
        }
        // A member that is replaced has no server for a while, or an old one beside the new one.
        if self.site.watch.is_broken() {
            return;
        }
        let servers = self.servers();
        let count: usize = servers.values().sum();
        if servers.values().any(|count| *count > 1) {
            self.broken(format!("has a server twice: {servers:?}"));
        }
        if (count as u64) < members {
            self.broken(format!("is complete with {count} of {members} servers"));
        }
    }

    /// How many servers of each name the cluster has.
    fn servers(&self) -> BTreeMap<String, usize> {
        let mut servers = BTreeMap::new();
        let stem = format!("{}-", self.name);
        for (kind, name, _) in self.site.objects() {
            if kind == Kind::Server && name.starts_with(&stem) {
                *servers.entry(name).or_default() += 1;
            }
        }
        servers
    }

    async fn delete(&self) {
        let path = format!("/v1/clusters/{}", self.name);
        self.note("is to be deleted");
        self.site.watch.end();
        loop {
            match self.try_send(Method::DELETE, &path, None).await {
                Some(Answer { status: 200..300 | 404, .. }) => break,
                Some(_) | None => sleep(Duration::from_secs(2)).await,
            }
        }
        let begun = simulated_kernel::elapsed();
        while !matches!(
            self.try_send(Method::GET, &path, None).await,
            Some(Answer { status: 404, .. })
        ) {
            if simulated_kernel::elapsed() - begun > LIMIT {
                return self
                    .broken(format!("is not deleted after {LIMIT:?}: {:?}", self.status().await));
            }
            sleep(LOOK_EVERY).await;
        }
        self.note("is deleted");
    }

    /// Deletes the cluster, after the faults have ended.
    pub(crate) async fn finish(&self) {
        self.delete().await;
    }

    async fn status(&self) -> Option<ClusterStatus> {
        let path = format!("/bedplate/v1/clusters/{}", self.name);
        match self.try_send(Method::GET, &path, None).await {
            Some(Answer { status: 200, body }) => serde_json::from_value(body).ok(),
            Some(_) | None => None,
        }
    }

    /// Creates something, whatever happens to the answers.
    async fn create(&self, path: &str, made: &str, body: &Value) {
        loop {
            if matches!(
                self.try_send(Method::GET, made, None).await,
                Some(Answer { status: 200, .. })
            ) {
                return;
            }
            match self.try_send(Method::POST, path, Some(body)).await {
                Some(Answer { status: 200..300, .. }) => return,
                Some(Answer { status: 400, body }) => {
                    return self.broken(format!("is refused: {body}"));
                }
                Some(_) | None => sleep(Duration::from_secs(1)).await,
            }
        }
    }

    /// Sends a request to any process. Returns `None` without an answer.
    async fn try_send(&self, method: Method, path: &str, body: Option<&Value>) -> Option<Answer> {
        self.site.ask(Service::Clusterd, method, path, body).await
    }

    fn note(&self, text: impl AsRef<str>) {
        self.site.trace.note(format!("cluster {}", text.as_ref()));
    }

    fn broken(&self, text: impl AsRef<str>) {
        self.site.trace.violation(format!("cluster {}", text.as_ref()));
    }
}
