//! The control plane as kubeadm runs it: pods from files on each control-plane node, and kube-proxy on every node.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::client::Client;
use crate::error::Result;
use crate::pods::Pod;
use crate::{lenient, object};

/// The components without which a control-plane node serves nothing.
const COMPONENTS: [&str; 2] = ["etcd", "kube-apiserver"];

/// Returns the names of the nodes whose API server and etcd are ready.
pub async fn serving_nodes(client: &Client) -> Result<BTreeSet<String>> {
    let path = ["api", "v1", "namespaces", "kube-system", "pods"];
    // The label that kubeadm gives to its pods (kubernetes, cmd/kubeadm/app/constants: ControlPlaneTier).
    let selector = [("labelSelector", "tier=control-plane".to_owned())];
    let pods: Vec<Pod> = object::list(client, &path, &selector).await?;
    let ready = |component: &str| -> BTreeSet<String> {
        let of = |pod: &&Pod| {
            let label = pod.metadata.labels.get("component");
            label.is_some_and(|label| label == component) && pod.is_ready()
        };
        pods.iter().filter(of).map(|pod| pod.spec.node_name.clone()).collect()
    };
    let [etcd, api] = COMPONENTS.map(ready);
    Ok(etcd.intersection(&api).cloned().collect())
}

/// Returns the tag of kube-proxy's image; `None` if the cluster has no kube-proxy, or its image has no tag.
pub async fn kube_proxy_tag(client: &Client) -> Result<Option<String>> {
    let path = ["apis", "apps", "v1", "namespaces", "kube-system", "daemonsets", "kube-proxy"];
    let found: Option<Value> = client.get(&path).find().await?;
    let containers = found.as_ref().map(|it| &it["spec"]["template"]["spec"]["containers"]);
    let image = containers.and_then(|it| it[0]["image"].as_str());
    Ok(image.and_then(tag).map(|tag| lenient::plain(tag, 100)))
}

/// Returns the tag in the name of an image: `v1.34.1` in `registry.example:5000/kube-proxy:v1.34.1@sha256:…`.
fn tag(image: &str) -> Option<&str> {
    let name = image.split('@').next()?;
    let last = name.rsplit('/').next()?;
    last.split_once(':').map(|(_, tag)| tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_of_an_image_is_found() {
        for (image, want) in [
            ("registry.k8s.io/kube-proxy:v1.34.1", Some("v1.34.1")),
            ("registry.example:5000/a/kube-proxy:v1.34.1@sha256:0a", Some("v1.34.1")),
            ("registry.example:5000/kube-proxy", None),
            ("kube-proxy@sha256:0a", None),
            ("", None),
        ] {
            assert_eq!(tag(image), want, "{image}");
        }
    }
}
