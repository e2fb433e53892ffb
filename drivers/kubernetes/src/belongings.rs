//! What the cluster itself made in its cloud: load balancers for Services, volumes for claims. Nobody but the cluster knows how to take
//! them down in order, so they go while it still runs.

use jiff::Timestamp;
use serde::Deserialize;

use crate::client::Client;
use crate::error::KubernetesError;
use crate::lenient;
use crate::object::{self, Grace, Metadata};
use crate::pods::Pod;

/// Where the cloud controller manager notes which load balancer it made.
const LOAD_BALANCER_ID: &str = "loadbalancer.openstack.org/load-balancer-id";
/// How the drivers of OpenStack's storage are called: `cinder.csi.openstack.org`, `nfs.manila.csi.openstack.org`.
const CSI: &str = "csi.openstack.org";
/// What a volume of the driver that was built in up to 1.25 is said to be of.
const IN_TREE: &str = "kubernetes.io/cinder";

/// A Service that has a load balancer in the cloud, or gets one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BalancedService {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid, of which the load balancer's name is made.
    pub uid: String,
    /// The load balancer's id, if the cloud controller manager noted it.
    pub load_balancer: Option<String>,
    /// When somebody asked for its deletion: it goes when its load balancer is gone.
    pub deleted: Option<Timestamp>,
}

/// A volume that a driver of OpenStack's made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// The name of the `PersistentVolume`.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// The driver.
    pub driver: String,
    /// Its id in the cloud.
    pub handle: String,
    /// Whose it is.
    pub claim: Option<Claim>,
    /// Whether the volume in the cloud goes with its claim. Where not, its owner wants to keep it.
    pub goes_with_its_claim: bool,
    /// When somebody asked for its deletion.
    pub deleted: Option<Timestamp>,
}

/// A `PersistentVolumeClaim`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Claim {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub uid: String,
}

/// All Services with load balancers.
pub async fn services(client: &Client) -> Result<Vec<BalancedService>, KubernetesError> {
    let all: Vec<Service> = object::list(client, &["api", "v1", "services"], &[]).await?;
    Ok(all.into_iter().filter_map(Service::balanced).collect())
}

/// All volumes that drivers of OpenStack's made.
pub async fn volumes(client: &Client) -> Result<Vec<Volume>, KubernetesError> {
    let all: Vec<PersistentVolume> =
        object::list(client, &["api", "v1", "persistentvolumes"], &[]).await?;
    Ok(all.into_iter().filter_map(PersistentVolume::of_openstack).collect())
}

/// Asks for the deletion of a Service: the cluster takes down its load balancer, then forgets it.
pub async fn delete_service(
    client: &Client,
    service: &BalancedService,
) -> Result<(), KubernetesError> {
    let path = ["api", "v1", "namespaces", &service.namespace, "services", &service.name];
    object::remove(client, &path, &service.uid, Grace::Own).await
}

/// Asks for the deletion of a volume: of its claim, of the pods that hold the claim, then of itself.
///
/// Whether the volume in the cloud goes as well is its own policy (`goes_with_its_claim`). What makes claims anew, a StatefulSet, is
/// not stopped: it gets no volume where no node takes pods any more.
pub async fn delete_volume(client: &Client, volume: &Volume) -> Result<(), KubernetesError> {
    if let Some(Claim { namespace, name, uid }) = &volume.claim {
        let all = ["api", "v1", "namespaces", namespace, "pods"];
        let claim = ["api", "v1", "namespaces", namespace, "persistentvolumeclaims", name];
        object::remove(client, &claim, uid, Grace::Own).await?;
        let pods: Vec<Pod> = object::list(client, &all, &[]).await?;
        for pod in pods.iter().filter(|pod| holds(pod, name)) {
            let path = ["api", "v1", "namespaces", namespace, "pods", &pod.metadata.name];
            object::remove(client, &path, &pod.metadata.uid, Grace::Own).await?;
        }
    }
    let path = ["api", "v1", "persistentvolumes", &volume.name];
    object::remove(client, &path, &volume.uid, Grace::Own).await
}

fn holds(pod: &Pod, claim: &str) -> bool {
    let leaving = pod.metadata.deletion_timestamp.is_some();
    let mut volumes = pod.spec.volumes.iter();
    !leaving && volumes.any(|it| it.persistent_volume_claim.claim_name == claim)
}

#[derive(Deserialize)]
struct Service {
    metadata: Metadata,
    #[serde(default)]
    spec: ServiceSpec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ServiceSpec {
    #[serde(deserialize_with = "lenient::or_default")]
    r#type: String,
}

impl Service {
    fn balanced(self) -> Option<BalancedService> {
        let Metadata { namespace, name, uid, deletion_timestamp, mut annotations, .. } =
            self.metadata;
        (self.spec.r#type == "LoadBalancer").then(|| BalancedService {
            namespace,
            name,
            uid,
            load_balancer: annotations.remove(LOAD_BALANCER_ID),
            deleted: deletion_timestamp,
        })
    }
}

#[derive(Deserialize)]
struct PersistentVolume {
    metadata: Metadata,
    spec: VolumeSpec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct VolumeSpec {
    csi: Option<Csi>,
    cinder: Option<Cinder>,
    claim_ref: Option<Claim>,
    #[serde(default, deserialize_with = "lenient::or_default")]
    persistent_volume_reclaim_policy: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Csi {
    driver: String,
    volume_handle: String,
}

#[derive(Deserialize)]
struct Cinder {
    #[serde(rename = "volumeID")]
    volume_id: String,
}

impl PersistentVolume {
    fn of_openstack(self) -> Option<Volume> {
        let spec = self.spec;
        let (driver, handle) = match (spec.csi, spec.cinder) {
            (Some(csi), _) => (csi.driver, csi.volume_handle),
            (None, Some(cinder)) => (IN_TREE.to_owned(), cinder.volume_id),
            (None, None) => return None,
        };
        (driver.ends_with(CSI) || driver == IN_TREE).then_some(Volume {
            name: self.metadata.name,
            uid: self.metadata.uid,
            driver,
            handle,
            claim: spec.claim_ref,
            goes_with_its_claim: spec.persistent_volume_reclaim_policy == "Delete",
            deleted: self.metadata.deletion_timestamp,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn volume(spec: Value) -> Option<Volume> {
        let metadata = json!({"name": "pvc-1", "uid": "u"});
        let read = json!({"metadata": metadata, "spec": spec});
        serde_json::from_value::<PersistentVolume>(read).unwrap().of_openstack()
    }

    #[test]
    fn volumes_of_openstack_are_told_from_others() {
        let claim = json!({"namespace": "default", "name": "data-db-0", "uid": "c"});
        let mine = volume(json!({
            "csi": {"driver": "cinder.csi.openstack.org", "volumeHandle": "v", "fsType": "ext4"},
            "claimRef": claim, "persistentVolumeReclaimPolicy": "Delete",
        }))
        .unwrap();
        assert_eq!((mine.handle.as_str(), mine.goes_with_its_claim), ("v", true));
        assert_eq!(mine.claim.unwrap().name, "data-db-0");
        let old =
            volume(json!({"cinder": {"volumeID": "w"}, "persistentVolumeReclaimPolicy": "Retain"}))
                .unwrap();
        assert_eq!((old.handle.as_str(), old.goes_with_its_claim), ("w", false));
        assert_eq!(
            volume(json!({"csi": {"driver": "rook-ceph.rbd.csi.ceph.com", "volumeHandle": "x"}})),
            None
        );
        assert_eq!(volume(json!({"hostPath": {"path": "/data"}})), None);
    }

    #[test]
    fn only_services_of_one_type_have_load_balancers() {
        let service = |kind: &str| {
            let metadata = json!({"namespace": "default", "name": "web", "uid": "u", "annotations": {LOAD_BALANCER_ID: "lb"}});
            let read = json!({"metadata": metadata, "spec": {"type": kind}});
            serde_json::from_value::<Service>(read).unwrap().balanced()
        };
        assert_eq!(service("LoadBalancer").unwrap().load_balancer.as_deref(), Some("lb"));
        assert_eq!(service("ClusterIP"), None);
    }
}
