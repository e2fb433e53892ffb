//! Labels and taints of the nodes of a group, which a request changes.

use cluster_core::{NodeGroup, NodeTaint, changed_group};
use jiff::Timestamp;
use kubernetes::nodes::{self, Node};

use crate::given::ClusterFixture;
use crate::life::workers;

/// Changes the workers as a request does, while the conductor works.
async fn patch(given: &ClusterFixture, labels: &[(&str, &str)], taints: &[NodeTaint]) {
    let pair = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    let change = |group: &mut NodeGroup| {
        let node_labels = labels.iter().map(pair).collect();
        let after = NodeGroup { node_labels, node_taints: taints.to_vec(), ..group.clone() };
        *group = changed_group(group, after, Timestamp::UNIX_EPOCH).unwrap();
    };
    given.ask(|_, group| change(group), workers()).await;
}

async fn until(given: &ClusterFixture, wanted: impl Fn(&Node) -> bool) {
    let client = given.kubernetes().await;
    loop {
        let all = nodes::list(&client).await.unwrap();
        if all.iter().any(|node| node.name.ends_with("-default-worker-0") && wanted(node)) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn nodes_get_and_lose_the_labels_and_taints_of_their_group() {
    let (given, _working) = ClusterFixture::complete(1, 1).await;
    let taint = |key: &str| NodeTaint::new(key.to_owned(), String::new(), "NoSchedule").unwrap();
    let has =
        |node: &Node, key: &str, value: &str| node.labels.get(key).is_some_and(|it| it == value);
    let is_tainted = |node: &Node, key: &str| node.taints.iter().any(|it| it.key == key);
    patch(&given, &[("tier", "a"), ("old", "x")], &[taint("one")]).await;
    until(&given, |it| has(it, "tier", "a") && has(it, "old", "x") && is_tainted(it, "one")).await;
    patch(&given, &[("tier", "b")], &[taint("two")]).await;
    until(&given, |it| {
        has(it, "tier", "b")
            && !it.labels.contains_key("old")
            && is_tainted(it, "two")
            && !is_tainted(it, "one")
    })
    .await;
}
