//! Members whose flavor has GPUs.

use cluster_core::GroupRole;
use cluster_store::ClusterChange;

use crate::given::ClusterFixture;

#[tokio::test]
async fn nodes_with_gpus_are_labelled_and_tainted() {
    let given = ClusterFixture::cluster(1, 1).await;
    let mut groups = given.store.groups_of(given.id).await.unwrap();
    groups.retain(|group| group.role != GroupRole::Master);
    groups[0].flavor = Some("g1.small".to_owned());
    let change =
        ClusterChange { changed: groups, ..ClusterChange::of(given.find().await.unwrap()) };
    given.store.change_cluster(&change).await.unwrap();

    let _working = given.conductor();
    given.until_complete().await;
    let client = given.kubernetes().await;
    let marked = loop {
        let mut nodes = kubernetes::nodes::list(&client).await.unwrap();
        nodes.retain(|node| node.labels.contains_key("nvidia.com/gpu.present"));
        if let [node] = &nodes[..] {
            break node.clone();
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    };
    assert!(marked.name.ends_with("-default-worker-0"), "{}", marked.name);
    let taint = marked.taints.iter().find(|taint| taint.key == "nvidia.com/gpu").unwrap();
    assert_eq!(taint.effect, "NoSchedule");
}
