//! A cluster is upgraded by `bedplate cluster upgrade`, while clusterd dies at each step.
//!
//! clusterd and `bedplate` run as programs; the cloud and its Kubernetes are emulated.

use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpListener};

use api_client::Service;
use api_client::clusterd::ClusterStatus;
use lab::Api;
use openstack_emulator::Kind;
use serde_json::json;
use tokio::process::Child;

use crate::own_vm::{ProgramOutput, until};
use crate::services::{PROGRAM, bedplate, configuration, daemon, keep};
use crate::site::Site;

const OLD: &str = "v1.34.1";
const NEW: &str = "v1.34.2";

/// An emulated cloud, and clusterd as a process.
struct UpgradeSite {
    site: Site,
    daemon: Option<(Child, Api)>,
    /// Where members reach clusterd, in each of its lives.
    members: SocketAddr,
}

impl UpgradeSite {
    async fn start() -> UpgradeSite {
        let site = Site::start("clusterd").await;
        let free = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
        let mut given = UpgradeSite { site, daemon: None, members: free.expect("a port") };
        given.clusterd().await;
        given
    }

    async fn clusterd(&mut self) {
        let (folder, members) = (&self.site.folder, (self.members, self.members));
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let programs = format!(
            "[kubernetes.versions.'{NEW}']\nkubeadm = {PROGRAM}\nkubelet = {PROGRAM}\nkubectl = {PROGRAM}\n"
        );
        let config = configuration(folder, "clusterd", any, members) + &programs;
        self.daemon = Some(daemon(folder, Service::Clusterd, &config).await);
    }

    async fn kill(&mut self) {
        if let Some((mut daemon, _)) = self.daemon.take() {
            daemon.kill().await.expect("a child can be killed");
        }
    }

    fn api(&self) -> &Api {
        let (_, api) = self.daemon.as_ref().expect("clusterd runs");
        api
    }

    /// Runs `bedplate cluster …`.
    async fn cluster(&self, arguments: &[&str]) -> ProgramOutput {
        let url = ["--clusters-url", self.api().url().as_str(), "cluster"];
        bedplate(&[&url[..], arguments].concat()).await
    }

    async fn template(&self, name: &str, version: &str) {
        let template = json!({
            "name": name, "coe": "kubernetes", "image_id": "fedora-coreos", "external_network_id": "public",
            "flavor_id": "m1.small", "master_flavor_id": "m1.small", "master_lb_enabled": true,
            "labels": {"kube_tag": version},
        });
        self.api().create("/v1/clustertemplates", &template).await;
    }

    /// The names of the servers. No name is there twice.
    #[track_caller]
    fn servers(&self) -> BTreeSet<String> {
        let servers = self.site.cloud.objects(Kind::Server);
        let names: BTreeSet<String> =
            servers.iter().map(|server| server.text("name").to_owned()).collect();
        assert_eq!(names.len(), servers.len(), "{names:?}");
        names
    }

    async fn is_upgraded(&self) -> bool {
        let shown: ClusterStatus = self.api().get("/bedplate/v1/clusters/blue").await;
        assert!(!shown.status.ends_with("FAILED"), "{shown:?}");
        shown.status == "UPDATE_COMPLETE"
    }
}

impl Drop for UpgradeSite {
    fn drop(&mut self) {
        keep(&self.site, "clusterd");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_is_upgraded_by_command_though_clusterd_dies_at_each_step() {
    let mut given = UpgradeSite::start().await;
    given.template("small", OLD).await;
    given.template("newer", NEW).await;
    let cluster =
        json!({"name": "blue", "cluster_template_id": "small", "master_count": 3, "node_count": 2});
    given.api().create("/v1/clusters", &cluster).await;
    given.cluster(&["show", "blue", "--wait"]).await.done();
    let before = given.servers();
    assert_eq!(before.len(), 5);

    let upgrade = ["upgrade", "blue", "newer"];
    let plan = given.cluster(&[&upgrade[..], &["--plan"]].concat()).await.done();
    for part in ["default-master", "default-worker", OLD, NEW, "has room"] {
        assert!(plan.contains(part), "{part} in {plan}");
    }
    assert_eq!(given.servers(), before, "a plan changes nothing");
    let nothing = ["upgrade", "blue", "--pause"];
    given.cluster(&nothing).await.refused(&["no upgrade of cluster blue is in progress"]);

    given.cluster(&[&upgrade[..], &["--yes"]].concat()).await.done();
    let (mut known, mut lives) = (before.clone(), 1);
    loop {
        let is_done = until("the next step of the upgrade", async || {
            if given.servers() != known {
                return Some(false);
            }
            given.is_upgraded().await.then_some(true)
        })
        .await;
        known = given.servers();
        let masters = known.iter().filter(|name| name.contains("default-master")).count();
        let workers = known.len() - masters;
        assert!((3..=4).contains(&masters) && (2..=3).contains(&workers), "{known:?}");
        if is_done {
            break;
        }
        given.kill().await;
        given.clusterd().await;
        lives += 1;
    }
    assert!(lives >= 5, "clusterd lived {lives} times");
    assert!(known.is_disjoint(&before) && known.len() == 5, "{known:?}");
    let again = given.cluster(&upgrade).await.done();
    assert!(again.contains("has everything that the template has"), "{again}");

    given.cluster(&["upgrade", "blue", "--rollback"]).await.refused(&["no upgrade"]);
    let servers = "all control-plane servers of cluster blue will be deleted";
    given.cluster(&["restore", "blue", "--force"]).await.refused(&[servers, "add --yes"]);
    let backup = ["backup", "delete", "blue", "b-1"];
    given.cluster(&backup).await.refused(&["backup b-1 of cluster blue", "add --yes"]);
    given.api().send(reqwest::Method::DELETE, "/v1/clusters/blue", None).await.expect("deletion");
    until("the end of the servers", async || given.servers().is_empty().then_some(())).await;
}
