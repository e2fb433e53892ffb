//! Two clusterd share one PostgreSQL. The one that creates a cluster is killed, stopped or paused: the other one finishes the work in time,
//! and every server exists once.

use std::time::Duration;

use api_client::clusterd::{ClusterStatus, Conductor};
use lab::{Api, Postgres};
use openstack_emulator::Kind;
use serde::Deserialize;
use serde_json::json;
use tokio::process::Child;
use tokio::time::Instant;

use crate::own_vm::until;
use crate::services::{Clusters, keep, signal};

/// The time after which the work of a process that died goes on elsewhere.
const TAKEN_OVER: Duration = Duration::from_secs(10);
/// The time after which the work of a process that was told to stop goes on elsewhere. A busy computer needs longer than half a second.
const HANDED_OVER: Duration = Duration::from_secs(2);

/// The servers of the cluster.
const SERVERS: usize = 4;

const FIRST: &str = "clusterd";
const SECOND: &str = "two";

#[derive(Deserialize)]
struct Conductors {
    conductors: Vec<Conductor>,
}

/// Two clusterd, and a cluster of which at least one server was asked for.
struct ClusterSite {
    clusters: Clusters,
    second: (Child, Api),
    /// The host names of the conductor that creates the cluster, and of the other one.
    names: [&'static str; 2],
    _server: Postgres,
}

impl ClusterSite {
    /// Returns `None` if PostgreSQL is not installed.
    async fn start() -> Option<ClusterSite> {
        let Some(server) = Postgres::start(&["clusterd"]).await else {
            peers::skip("cluster_replicas", "no PostgreSQL is installed");
            return None;
        };
        let database = format!("[database]\nurl = '{}'\n", server.url("clusterd"));
        let clusters = Clusters::start_with(&database).await;
        let second = clusters.another(SECOND, &database).await;
        let mut site = ClusterSite { clusters, second, names: [FIRST, SECOND], _server: server };
        site.is_shared_by(&[FIRST, SECOND]).await;
        let template = json!({
            "name": "small", "coe": "kubernetes", "image_id": "fedora-coreos", "external_network_id": "public",
            "flavor_id": "m1.small", "master_flavor_id": "m1.small", "master_lb_enabled": true,
            "labels": {"kube_tag": "v1.34.1"},
        });
        let api = &site.clusters.api;
        api.create("/v1/clustertemplates", &template).await;
        let blue = json!({"name": "blue", "cluster_template_id": "small", "master_count": 3, "node_count": 1});
        api.create("/v1/clusters", &blue).await;
        let works = async || {
            let all = conductors(api).await;
            all.into_iter().find(|it| it.clusters == 1).map(|it| it.hostname)
        };
        let owner = until("the conductor of the cluster", works).await;
        site.names = if owner == FIRST { [FIRST, SECOND] } else { [SECOND, FIRST] };
        let asked = async || (site.servers_asked() > 0).then_some(());
        until("a server", asked).await;
        Some(site)
    }

    fn servers_asked(&self) -> usize {
        let cloud = &self.clusters.site.cloud;
        cloud.count(|call| call.method == "POST" && call.path.ends_with("/servers"))
    }

    /// The process that creates the cluster.
    fn owner(&self) -> &Child {
        if self.names[0] == FIRST { &self.clusters.daemon } else { &self.second.0 }
    }

    /// The API of the other process.
    fn other(&self) -> &Api {
        if self.names[0] == FIRST { &self.second.1 } else { &self.clusters.api }
    }

    /// Waits until these conductors work, and no others.
    async fn is_shared_by(&self, hostnames: &[&str]) {
        let mut want = hostnames.to_vec();
        want.sort_unstable();
        let is_shared = async || {
            let all = conductors(self.other()).await;
            let mut living: Vec<&str> =
                all.iter().filter(|it| it.state == "working").map(|it| &*it.hostname).collect();
            living.sort_unstable();
            (living == want && all.iter().all(|it| it.state != "rebalancing")).then_some(())
        };
        until("the conductors", is_shared).await;
    }

    /// Waits until the cluster is complete, and asserts that each of its servers exists once.
    async fn is_complete_once(&self) {
        let is_complete = |it: &ClusterStatus| {
            assert!(!it.status.ends_with("FAILED"), "{it:?}");
            (it.status == "CREATE_COMPLETE").then_some(())
        };
        self.other().until("/bedplate/v1/clusters/blue", "a cluster", is_complete).await;
        // A request that a paused process sent late is found and deleted.
        let cloud = &self.clusters.site.cloud;
        let is_once = async || (cloud.objects(Kind::Server).len() == SERVERS).then_some(());
        until("each server once", is_once).await;
    }
}

impl Drop for ClusterSite {
    fn drop(&mut self) {
        keep(&self.clusters.site, SECOND);
    }
}

async fn conductors(api: &Api) -> Vec<Conductor> {
    let Conductors { conductors } = api.get("/bedplate/v1/conductors").await;
    conductors
}

/// Ends the conductor of the cluster by this signal.
async fn is_finished_by_the_other(name: &str, limit: Duration) {
    let Some(site) = ClusterSite::start().await else { return };
    let begun = Instant::now();
    signal(site.owner(), name).await;
    site.is_shared_by(&[site.names[1]]).await;
    assert!(begun.elapsed() < limit, "after {:?}", begun.elapsed());
    site.is_complete_once().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_work_of_a_killed_clusterd_is_finished_by_another() {
    is_finished_by_the_other("KILL", TAKEN_OVER).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clusterd_that_stops_hands_its_work_over_at_once() {
    is_finished_by_the_other("TERM", HANDED_OVER).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clusterd_that_was_paused_makes_nothing_twice() {
    let Some(site) = ClusterSite::start().await else { return };
    signal(site.owner(), "STOP").await;
    site.is_shared_by(&[site.names[1]]).await;
    site.is_complete_once().await;
    signal(site.owner(), "CONT").await;
    site.is_shared_by(&[FIRST, SECOND]).await;
    site.is_complete_once().await;
}
