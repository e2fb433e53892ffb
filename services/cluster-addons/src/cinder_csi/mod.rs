//! Cinder's CSI driver: volumes for pods.
//!
//! kubernetes/cloud-provider-openstack, docs/cinder-csi-plugin. The controller runs on the control plane, so that the cloud credential does
//! not leave the control plane. Up to Kubernetes 1.31 the driver on each node calls the cloud too, and each node gets the credential.

mod access;
mod controller;
mod node;

use serde_json::{Value, json};

use crate::cloud_config::{block_storage, global, secret};
use crate::object::Kit;
use crate::version::Minor;
use crate::{AddOn, Cloud, Settings, StorageClass, Volumes};

const NAME: &str = "cinder-csi";
const KIT: Kit = Kit { add_on: NAME, namespace: "kube-system" };
/// The driver's name in Kubernetes.
const DRIVER: &str = "cinder.csi.openstack.org";
/// The port of the driver's health check, the default of livenessprobe.
const HEALTH_PORT: u16 = 9808;

pub(crate) fn add_on(settings: &Settings, cloud: &Cloud, volumes: &Volumes) -> AddOn {
    let minor = Minor::of(settings.kubernetes);
    let storage = block_storage(volumes);
    let text = global(cloud) + &storage;
    let controller_config = secret(KIT, controller::CONFIG, &text, cloud);
    let node_config = if minor.nodes_need_no_cloud() {
        KIT.secret(node::CONFIG, &[("cloud.conf", &storage)])
    } else {
        secret(KIT, node::CONFIG, &text, cloud)
    };

    let mut documents = access::documents(volumes.snapshots);
    documents.push(KIT.service_account(node::ACCOUNT));
    documents.push(controller::deployment(settings, volumes, &controller_config));
    documents.push(node::daemon_set(settings, &node_config));
    documents.extend([controller_config, node_config, driver()]);
    documents.extend(volumes.classes.iter().map(storage_class));
    let version = settings.images.tag(&minor.cinder_csi());
    AddOn::new(NAME, version, Some(cloud.credential.generation), documents)
}

fn driver() -> Value {
    let spec = json!({
        "attachRequired": true, "podInfoOnMount": true, "volumeLifecycleModes": ["Persistent"],
    });
    KIT.cluster_wide("storage.k8s.io/v1", "CSIDriver", DRIVER, json!({"spec": spec}))
}

/// A StorageClass that creates a volume only once the scheduler chose a node: the volume has to be in the availability zone of its pod.
fn storage_class(class: &StorageClass) -> Value {
    let mut parameters = json!({"csi.storage.k8s.io/fstype": "ext4"});
    if let Some(kind) = &class.volume_type {
        parameters["type"] = json!(kind);
    }
    let body = json!({
        "provisioner": DRIVER,
        "parameters": parameters,
        "reclaimPolicy": "Delete",
        "allowVolumeExpansion": true,
        "volumeBindingMode": "WaitForFirstConsumer",
    });
    let mut object = KIT.cluster_wide("storage.k8s.io/v1", "StorageClass", &class.name, body);
    let is_default = if class.is_default { "true" } else { "false" };
    object["metadata"]["annotations"] =
        json!({"storageclass.kubernetes.io/is-default-class": is_default});
    object
}

/// The container of the driver itself, which the controller pod and the node pods share.
fn driver_container(settings: &Settings, more: &[&str], needs: (u32, u32)) -> Value {
    let minor = Minor::of(settings.kubernetes);
    let mut args = vec![
        "/bin/cinder-csi-plugin",
        "--endpoint=unix://csi/csi.sock",
        "--cloud-config=/etc/config/cloud.conf",
        "--v=1",
    ];
    args.extend(more);
    if minor.names_its_node() {
        args.push("--nodeid=$(NODE_ID)");
    }
    let image = settings.images.reference(&minor.cinder_csi());
    let mut driver = crate::object::container("cinder-csi-plugin", image, &args, needs);
    if minor.names_its_node() {
        driver["env"] =
            json!([{"name": "NODE_ID", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]);
    }
    driver["ports"] = json!([{"name": "healthz", "containerPort": HEALTH_PORT, "protocol": "TCP"}]);
    driver["livenessProbe"] = json!({
        "httpGet": {"path": "/healthz", "port": "healthz", "scheme": "HTTP"},
        "initialDelaySeconds": 10, "periodSeconds": 30, "timeoutSeconds": 10, "failureThreshold": 5,
    });
    driver
}
