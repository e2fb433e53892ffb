//! Tests of draining a node.

use kubernetes::drain::drain;
use kubernetes::nodes;
use kubernetes::obstacles::{removed_apis, tight_budgets};

use crate::given::{cluster, name, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_node_is_drained_as_far_as_budgets_allow() {
    let given = cluster().await;
    let name = name();
    let (_, workers) = given.nodes().await;
    let node = &workers.last().unwrap().name;
    let namespace = format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n");
    let budget = |version: &str| {
        format!(
            "apiVersion: policy/{version}\nkind: PodDisruptionBudget\nmetadata: {{name: web, namespace: {name}}}\n\
             spec: {{minAvailable: 2, selector: {{matchLabels: {{app: web}}}}}}\n"
        )
    };
    // Two pods that restart on another node if there is one, and one of a DaemonSet, which stays.
    let pods = format!(
        "
apiVersion: apps/v1
kind: ReplicaSet
metadata: {{name: web, namespace: {name}}}
spec:
  replicas: 2
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      terminationGracePeriodSeconds: 1
      automountServiceAccountToken: false
      affinity: {{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: [
        {{matchExpressions: [{{key: kubernetes.io/hostname, operator: In, values: [{node}]}}]}}]}}}}}}
      containers: [{{name: web, image: {image}}}]
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: everywhere, namespace: {name}}}
spec:
  selector: {{matchLabels: {{app: everywhere}}}}
  template:
    metadata: {{labels: {{app: everywhere}}}}
    spec:
      terminationGracePeriodSeconds: 1
      automountServiceAccountToken: false
      containers: [{{name: everywhere, image: {image}}}]
",
        image = given.image
    );
    given.apply(&namespace).await;
    // `policy/v1` exists from 1.21 on.
    let there = given.object("/apis/policy/v1").await.is_some();
    let budget = budget(if there { "v1" } else { "v1beta1" });
    given.apply(&budget).await;
    given.apply(&pods).await;
    until("two pods on the node", || async {
        let path = format!("/apis/apps/v1/namespaces/{name}/replicasets/web");
        let object = given.object(&path).await.unwrap();
        Ok((object["status"]["readyReplicas"] == 2).then_some(()))
    })
    .await;
    until("the budget to know them", || async {
        let version = if there { "v1" } else { "v1beta1" };
        let path = format!("/apis/policy/{version}/namespaces/{name}/poddisruptionbudgets/web");
        let object = given.object(&path).await.unwrap();
        Ok((object["status"]["currentHealthy"] == 2).then_some(()))
    })
    .await;

    let ours = |pods: &[kubernetes::PodName]| {
        pods.iter().filter(|it| it.namespace == name && it.name.starts_with("web")).count()
    };
    let left = drain(&given.client, node).await.unwrap();
    let held: Vec<_> = left.held.iter().filter(|it| it.pod.namespace == name).collect();
    assert_eq!((held.len(), ours(&left.evicted), ours(&left.leaving)), (2, 0, 0), "{left:?}");
    assert!(held[0].reason.contains("disruption budget"), "{left:?}");
    assert!(nodes::find(&given.client, node).await.unwrap().unwrap().unschedulable);

    let tight = tight_budgets(&given.client).await.unwrap();
    assert!(tight.contains(&format!("{name}/web")), "{tight:?}");
    removed_apis(&given.client, 99).await.unwrap();

    given.delete(&budget).await;
    let left = drain(&given.client, node).await.unwrap();
    assert_eq!(ours(&left.evicted), 2, "{left:?}");
    assert!(left.evicted.iter().all(|it| !it.name.starts_with("everywhere")), "{left:?}");
    until("the node to be empty", || async {
        let left = drain(&given.client, node).await?;
        Ok(left.is_empty().then_some(()))
    })
    .await;

    nodes::uncordon(&given.client, node).await.unwrap();
    assert!(!nodes::find(&given.client, node).await.unwrap().unwrap().unschedulable);
    given.delete(&pods).await;
    given.delete(&namespace).await;
}
