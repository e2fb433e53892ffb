//! Tests of nodes: read, label, taint, cordon and uncordon.

use std::collections::BTreeMap;

use kubernetes::health;
use kubernetes::nodes::{self, Taint};

use crate::given::{cluster, name, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_ready_and_reports_its_version() {
    let given = cluster().await;
    let ready = || async { Ok(health::is_ready(&given.client).await?.then_some(())) };
    until("the API server to be ready", ready).await;
    let version = health::version(&given.client).await.unwrap();
    assert!(version.git_version.starts_with("v1."), "{version:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_report_their_properties() {
    let given = cluster().await;
    let (control_plane, workers) = given.nodes().await;
    assert!(!control_plane.is_empty() && !workers.is_empty());
    for node in control_plane.iter().chain(&workers) {
        assert!(node.readiness.is_ready(), "{node:?}");
        assert!(node.kubelet_version.starts_with("v1.") && !node.uid.is_empty(), "{node:?}");
        assert!(!node.internal_addresses.is_empty() && node.created.is_some(), "{node:?}");
        let found = nodes::find(&given.client, &node.name).await.unwrap().unwrap();
        assert_eq!(found.uid, node.uid);
    }
    assert_eq!(nodes::find(&given.client, "no-such-node").await.unwrap(), None);
    nodes::delete(&given.client, "no-such-node").await.unwrap();
    let error = nodes::cordon(&given.client, "no-such-node").await.unwrap_err();
    assert!(error.is_not_found(), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_gets_labels_that_its_kubelet_cannot_set() {
    let given = cluster().await;
    let (_, workers) = given.nodes().await;
    let node = &workers[0].name;
    let key = format!("node-restriction.kubernetes.io/{}", name());
    let label = |value: Option<&str>| BTreeMap::from([(key.clone(), value.map(str::to_owned))]);
    nodes::label(&given.client, node, &label(Some("gpu"))).await.unwrap();
    let read = nodes::find(&given.client, node).await.unwrap().unwrap();
    assert_eq!(read.labels.get(&key).map(String::as_str), Some("gpu"));
    assert!(read.labels.len() > 1, "others stay");
    nodes::label(&given.client, node, &label(None)).await.unwrap();
    let read = nodes::find(&given.client, node).await.unwrap().unwrap();
    assert_eq!(read.labels.get(&key), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn taints_are_added_and_removed_without_touching_others() {
    let given = cluster().await;
    let (control_plane, _) = given.nodes().await;
    let name = &control_plane[0].name;
    let read = || async { nodes::find(&given.client, name).await.map(Option::unwrap) };
    let ours = |node: &nodes::Node| node.taints.iter().filter(|it| it.key == "contract").count();
    // Kubelets and controllers change a node too, so the test reads the node again after a conflict.
    let all = [
        Taint::new("contract", Some("a"), "PreferNoSchedule"),
        Taint::new("contract", None, "NoSchedule"),
    ];
    let before = read().await.unwrap().taints.len();
    until("both taints", || async {
        nodes::taint(&given.client, &read().await?, &all).await?;
        Ok(Some(()))
    })
    .await;
    let node = read().await.unwrap();
    assert_eq!((ours(&node), node.taints.len()), (2, before + 2));
    // The taints are there already, so nothing is written, although this node object is outdated.
    nodes::taint(&given.client, &node, &all).await.unwrap();
    let stale = node.clone();
    until("another effect", || async {
        let wanted = [Taint::new("contract", Some("b"), "NoSchedule")];
        nodes::change_taints(&given.client, &read().await?, &wanted, &all[..1]).await?;
        Ok(Some(()))
    })
    .await;
    let changed = read().await.unwrap();
    let values: Vec<_> = changed.taints.iter().filter(|it| it.key == "contract").collect();
    assert_eq!(values, [&Taint::new("contract", Some("b"), "NoSchedule")]);
    until("no taint of ours", || async {
        nodes::untaint(&given.client, &read().await?, &["contract"]).await?;
        Ok(Some(()))
    })
    .await;
    assert_eq!(read().await.unwrap().taints.len(), before);
    let error = nodes::untaint(&given.client, &stale, &["contract"]).await.unwrap_err();
    assert!(error.is_changed() && error.is_transient(), "{error}");
}
