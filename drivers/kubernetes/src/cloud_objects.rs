//! Cloud objects that the cluster itself made: load balancers for Services, and volumes for claims. Only the cluster can remove them in the
//! right order, so they have to go while the cluster still runs.

use jiff::Timestamp;
use serde::Deserialize;

use crate::client::Client;
use crate::error::Result;
use crate::lenient;
use crate::object::{self, Grace, Metadata};
use crate::pods::Pod;

/// The annotation in which the cloud controller manager records the load balancer that it made.
const LOAD_BALANCER_ID: &str = "loadbalancer.openstack.org/load-balancer-id";
/// Suffix of the names of OpenStack's storage drivers: `cinder.csi.openstack.org`, `nfs.manila.csi.openstack.org`.
const CSI: &str = "csi.openstack.org";
/// Name of the storage driver that was built in up to 1.25.
const IN_TREE: &str = "kubernetes.io/cinder";

/// A Service that has, or will have, a load balancer in the cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BalancedService {
    pub namespace: String,
    pub name: String,
    /// The load balancer's name is derived from the uid.
    pub uid: String,
    /// The load balancer's id, if the cloud controller manager has recorded it.
    pub load_balancer: Option<String>,
    /// The time of the deletion request. The Service disappears after its load balancer.
    pub deleted: Option<Timestamp>,
}

/// A volume that an OpenStack driver made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// The name of the `PersistentVolume`.
    pub name: String,
    pub uid: String,
    pub driver: String,
    /// The volume's id in the cloud.
    pub handle: String,
    pub claim: Option<Claim>,
    /// Whether the volume in the cloud is deleted with its claim. If not, its owner wants to keep it.
    pub goes_with_its_claim: bool,
    /// The time of the deletion request.
    pub deleted: Option<Timestamp>,
}

/// A `PersistentVolumeClaim` that uses a volume.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Claim {
    pub namespace: String,
    pub name: String,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub uid: String,
}

/// Lists all Services with load balancers.
pub async fn services(client: &Client) -> Result<Vec<BalancedService>> {
    let all: Vec<Service> = object::list(client, &["api", "v1", "services"], &[]).await?;
    Ok(all.into_iter().filter_map(Service::balanced).collect())
}

/// Lists all volumes that OpenStack drivers made.
pub async fn volumes(client: &Client) -> Result<Vec<Volume>> {
    let all: Vec<PersistentVolume> =
        object::list(client, &["api", "v1", "persistentvolumes"], &[]).await?;
    Ok(all.into_iter().filter_map(PersistentVolume::of_openstack).collect())
}

/// Requests the deletion of a Service. The cluster deletes its load balancer first.
pub async fn delete_service(client: &Client, service: &BalancedService) -> Result<()> {
    let path = ["api", "v1", "namespaces", &service.namespace, "services", &service.name];
    object::remove(client, &path, &service.uid, Grace::Own).await
}

/// Requests the deletion of a volume: of its claim, of the pods that use the claim, and of the volume itself.
///
/// Its own policy (`goes_with_its_claim`) decides whether the volume in the cloud is deleted as well. A StatefulSet that creates the claim
/// again is not stopped; it gets no volume once no node accepts pods.
pub async fn delete_volume(client: &Client, volume: &Volume) -> Result<()> {
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
    fn volumes_of_openstack_are_distinguished_from_others() {
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
