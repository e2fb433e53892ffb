//! Watches that a cluster never lacks the quorum of its etcd.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use api_client::baremetald::Node;
use api_client::clusterd::Members;
use lab::Api;
use openstack_emulator::{Cloud, Kind};
use reqwest::Method;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::client::send;

/// The members of etcd, and how many of them have to run.
const QUORUM: usize = 2;
const PAUSE: Duration = Duration::from_millis(50);

/// Looks at the members of a cluster until it is dropped.
pub(super) struct QuorumWatch {
    stop: CancellationToken,
    tasks: JoinSet<()>,
    looks: Arc<AtomicUsize>,
}

impl QuorumWatch {
    /// Watches the control plane of a cluster whose servers run on hosts of these nodes.
    pub(super) async fn start(
        cloud: &Cloud,
        nodes: &Api,
        clusters: &Api,
        cluster: &str,
    ) -> QuorumWatch {
        let path = format!("/bedplate/v1/clusters/{cluster}/machines");
        let (answer, _) = send(clusters, Method::GET, &path, None).await;
        let Members { machines } = answer.read("the members");
        let masters = machines.into_iter().filter(|it| it.role == "master");
        let masters: BTreeSet<String> = masters.filter_map(|it| it.server_id).collect();
        assert_eq!(masters.len(), 3);
        let (stop, looks) = (CancellationToken::new(), Arc::new(AtomicUsize::new(0)));
        let mut tasks = JoinSet::new();
        let (cloud, nodes) = (cloud.clone(), nodes.clone());
        let (until, count) = (stop.clone(), looks.clone());
        tasks.spawn(async move {
            while !until.is_cancelled() {
                let off = hosts_that_are_off(&nodes).await;
                // The hosts come first: a member that has left its host since then runs.
                let running = members_that_run(&cloud, &masters, &off);
                assert!(running >= QUORUM, "{running} members run; these hosts are off: {off:?}");
                count.fetch_add(1, Ordering::Relaxed);
                sleep(PAUSE).await;
            }
        });
        QuorumWatch { stop, tasks, looks }
    }

    /// Ends the watch. Returns how often it has looked; asserts that there always was a quorum.
    pub(super) async fn end(mut self) -> usize {
        self.stop.cancel();
        while let Some(ended) = self.tasks.join_next().await {
            ended.expect("etcd has its quorum");
        }
        self.looks.load(Ordering::Relaxed)
    }
}

/// The nodes of hosts.
const HOSTS: &str = "/v1/nodes?driver=fake-hardware&fields=power_state,instance_info";

/// The hosts whose nodes are switched off.
async fn hosts_that_are_off(nodes: &Api) -> BTreeSet<String> {
    let (answer, _) = send(nodes, Method::GET, HOSTS, None).await;
    let all: Vec<Node> = serde_json::from_value(answer.body["nodes"].clone()).expect("nodes");
    let off = all.iter().filter(|node| node.power_state.as_deref() == Some("power off"));
    let host = |node: &Node| {
        node.instance_info.get("hypervisor_hostname").and_then(|it| it.as_str().map(str::to_owned))
    };
    off.filter_map(host).collect()
}

fn members_that_run(cloud: &Cloud, masters: &BTreeSet<String>, off: &BTreeSet<String>) -> usize {
    let servers = cloud.objects(Kind::Server);
    let own = servers.iter().filter(|server| masters.contains(&server.id));
    let runs = |status: &str| status == "ACTIVE" || status == "MIGRATING";
    own.filter(|it| runs(it.text("status")) && !off.contains(it.note("host"))).count()
}
