//! Cinder's CSI driver: volumes for pods.
//!
//! kubernetes/cloud-provider-openstack, docs/cinder-csi-plugin. The controller runs on the control plane, so that the cloud credential does
//! not leave the control plane. Up to Kubernetes 1.31 the driver on each node calls the cloud too, and each node gets the credential.

mod access;
mod controller;
mod driver;
mod node;

use serde_json::{Value, json};

use crate::cloud_config::{block_storage, global, secret};
use crate::version::AddOnVersions;
use crate::{AddOn, Cloud, Settings, StorageClass, Volumes};
use driver::{DRIVER, KIT, NAME};

pub(crate) fn add_on(settings: &Settings, cloud: &Cloud, volumes: &Volumes) -> AddOn {
    let minor = AddOnVersions::of(settings.kubernetes);
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
    documents.extend([controller_config, node_config, csi_driver()]);
    documents.extend(volumes.classes.iter().map(storage_class));
    let version = settings.images.tag(&minor.cinder_csi());
    AddOn::new(NAME, version, Some(cloud.credential.generation), documents)
}

fn csi_driver() -> Value {
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
