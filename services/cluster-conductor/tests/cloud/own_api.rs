//! A cluster's own Kubernetes API that fails: it is overloaded, broken, silent, or closes connections. A condition reports each fault, and
//! afterwards the cluster becomes as requested, with no object created twice.

use std::collections::BTreeSet;
use std::time::Duration;

use cluster_core::{Condition, ConditionStatus, GroupRole};
use kubernetes::apply::documents;
use openstack_emulator::{Act, Cloud, Rule};

use crate::given::{ClusterFixture, PATIENCE};
use crate::life::workers;

/// The task that makes the conductor call the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    Look,
    /// The creation of another worker.
    Grow,
    /// A new credential, which the add-ons must use.
    Apply,
    /// The removal of a worker, whose pods are evicted.
    Shrink,
    /// The replacement of a control-plane member, which leaves etcd.
    Replace,
}

/// A kind of call: its purpose, its method and path, and the task that needs it.
type Call = (&'static str, &'static str, &'static str, Task);

#[rustfmt::skip]
const CALLS: &[Call] = &[
    ("readiness",            "GET",    "kubernetes:/readyz", Task::Look),
    ("nodes",                "GET",    "kubernetes:/api/v1/nodes", Task::Look),
    ("receipts of add-ons",  "GET",    "kubernetes:/api/v1/namespaces/*/configmaps", Task::Look),
    ("certificate requests", "GET",    "kubernetes:/apis/certificates.k8s.io/v1/certificatesigningrequests", Task::Grow),
    ("approval",             "PUT",    "kubernetes:/apis/certificates.k8s.io/v1/certificatesigningrequests/*/approval", Task::Grow),
    ("add-ons",              "PATCH",  "kubernetes:/api/v1/namespaces/kube-system/secrets/*", Task::Apply),
    ("cordon",               "PATCH",  "kubernetes:/api/v1/nodes/*", Task::Shrink),
    ("pods of a node",       "GET",    "kubernetes:/api/v1/pods", Task::Shrink),
    ("eviction",             "POST",   "kubernetes:/api/v1/namespaces/default/pods/*/eviction", Task::Shrink),
    ("forgetting a node",    "DELETE", "kubernetes:/api/v1/nodes/*", Task::Shrink),
    ("etcdctl",              "POST",   "kubernetes:/api/v1/namespaces/kube-system/pods", Task::Replace),
    ("what etcdctl printed", "GET",    "kubernetes:/api/v1/namespaces/kube-system/pods/*/log", Task::Replace),
];

/// The reasons with which conditions may report such a fault.
const REASONS: [&str; 4] = ["ApiSilent", "KubernetesRefused", "NotApplied", "DrainHeld"];

/// Pods that can move from one node to another.
const PODS: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: moves, namespace: default}
spec:
  replicas: 4
  selector: {matchLabels: {app: moves}}
  template:
    metadata: {labels: {app: moves}}
    spec: {containers: [{name: moves, image: registry.example/moves:1}]}
";

impl ClusterFixture {
    /// Requests the change that needs such calls.
    async fn ask_for(&self, task: Task) {
        match task {
            Task::Look => {}
            Task::Grow => {
                let more = |group: &mut cluster_core::NodeGroup| {
                    group.add_machine();
                };
                self.ask(|_, group| more(group), workers()).await;
            }
            Task::Apply => self.ask(|cluster, _| cluster.credential += 1, workers()).await,
            Task::Shrink => {
                self.ask(|_, group| assert!(group.machines.pop_first().is_some()), workers()).await;
            }
            Task::Replace => {
                let replace = |group: &mut cluster_core::NodeGroup| {
                    let newest = *group.machines.last().unwrap();
                    assert!(group.replace_machine(newest));
                };
                self.ask(|_, group| replace(group), GroupRole::Master).await;
            }
        }
    }

    /// Waits until a condition names the cluster's own API as the cause.
    async fn until_own_api_is_told(&self, what: &str) -> Condition {
        let looking = async {
            loop {
                let conditions = self.find().await.unwrap().conditions;
                let tells = |it: &Condition| {
                    it.status == ConditionStatus::False && REASONS.contains(&it.reason.as_str())
                };
                if let Some(reported) = conditions.into_iter().find(tells) {
                    return reported;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        match tokio::time::timeout(PATIENCE, looking).await {
            Ok(reported) => reported,
            Err(_) => {
                panic!("{what}: nobody says why: {:?}", self.find().await.unwrap().conditions)
            }
        }
    }

    /// Asserts that every member has a Kubernetes node, and that there are no other nodes.
    async fn assert_nodes_are_machines(&self, what: &str) {
        let nodes = kubernetes::nodes::list(&self.kubernetes().await).await.unwrap();
        let nodes: BTreeSet<String> = nodes.into_iter().map(|node| node.name).collect();
        let servers = self.of_kind(openstack_emulator::Kind::Server);
        let servers: BTreeSet<String> =
            servers.iter().map(|it| it.text("name").to_owned()).collect();
        assert_eq!(nodes, servers, "{what}");
    }
}

/// Runs one cluster, whose API fails in this way at one kind of call after another.
async fn faults(act: Act, calls: impl Iterator<Item = &'static Call>) {
    let (given, _working) = ClusterFixture::complete(3, 2).await;
    let client = given.kubernetes().await;
    kubernetes::apply::apply(&client, &documents(PODS).unwrap()).await.unwrap();
    // As on a real first member: the conductor approves kubelets, not the cluster itself.
    kubernetes::bootstrap::forbid_automatic_approval(&client).await.unwrap();
    let mut count = 2;
    for (what, method, path, task) in calls {
        let what = format!("{what}, {act:?}");
        let fault = given.cloud.misbehave(Rule::new(method, path, act.clone()));
        given.ask_for(*task).await;
        let is_hit = |cloud: &Cloud| (cloud.hits(fault) > 0).then_some(());
        let hit = tokio::time::timeout(PATIENCE, given.cloud.wait_until(is_hit)).await;
        assert!(hit.is_ok(), "{what}: the call was never made");
        let reported = given.until_own_api_is_told(&what).await;
        assert!(!reported.is_final && !reported.message.is_empty(), "{what}: {reported:?}");
        given.cloud.end_rule(fault);

        given.until_complete().await;
        given.until_complete_again().await;
        count = match task {
            Task::Grow => count + 1,
            Task::Shrink => count - 1,
            Task::Look | Task::Apply | Task::Replace => count,
        };
        given.until_once_again().await;
        given.assert_once(3, count);
        given.assert_ledger_agrees().await;
        given.assert_nodes_are_machines(&what).await;
        if count < 2 {
            given.ask_for(Task::Grow).await;
            given.until_complete().await;
            given.until_complete_again().await;
            count += 1;
        }
    }
    given.deleted().await;
}

impl ClusterFixture {
    /// Waits until the ledger has one credential and no duplicate.
    pub(crate) async fn until_once_again(&self) {
        let looking = async {
            loop {
                let lines = self.store.ledger_of(self.id).await.unwrap();
                let is_twin = |kind: &str| kind.starts_with("twin/");
                let credentials = lines.iter().filter(|it| it.kind.starts_with("credential"));
                if credentials.count() == 1 && !lines.iter().any(|it| is_twin(&it.kind)) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, looking).await.expect("it is once again");
    }
}

fn answers(status: u16) -> Act {
    Act::Answer { status, retry_after: None, message: None }
}

#[tokio::test]
async fn its_own_api_is_overloaded() {
    faults(answers(429), CALLS.iter()).await;
}

#[tokio::test]
async fn its_own_api_breaks() {
    faults(answers(500), CALLS.iter()).await;
}

#[tokio::test]
async fn its_own_api_is_unavailable() {
    faults(answers(503), CALLS.iter()).await;
}

#[tokio::test]
async fn its_own_api_hangs_up() {
    faults(Act::Close, CALLS.iter()).await;
}

#[tokio::test]
async fn the_answers_of_its_own_api_are_lost() {
    faults(Act::LoseAnswer, CALLS.iter()).await;
}

/// A turn waits ten seconds for an answer, so only calls that change something are tried.
#[tokio::test]
async fn its_own_api_says_nothing() {
    let changes = ["nodes", "approval", "eviction", "etcdctl"];
    faults(Act::Hang, CALLS.iter().filter(move |call| changes.contains(&call.0))).await;
}
