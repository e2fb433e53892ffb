//! Tests of load balancers and volumes that a cluster made in its cloud.

use kubernetes::cloud_objects;

use crate::given::{cluster, name, until};

#[tokio::test(flavor = "multi_thread")]
async fn services_and_volumes_are_found_and_deleted() {
    let given = cluster().await;
    let name = name();
    // No driver makes these volumes; the test writes the objects that a driver would write.
    let text = format!(
        "
apiVersion: v1
kind: Namespace
metadata: {{name: {name}}}
---
apiVersion: v1
kind: Service
metadata: {{name: web, namespace: {name}}}
spec: {{type: LoadBalancer, selector: {{app: web}}, ports: [{{name: http, port: 80, protocol: TCP}}]}}
---
apiVersion: v1
kind: Service
metadata: {{name: inside, namespace: {name}}}
spec: {{selector: {{app: web}}, ports: [{{name: http, port: 80, protocol: TCP}}]}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: data, namespace: {name}}}
spec: {{storageClassName: '', volumeName: {name}, accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 1Gi}}}}}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {{name: {name}}}
spec:
  accessModes: [ReadWriteOnce]
  capacity: {{storage: 1Gi}}
  persistentVolumeReclaimPolicy: Retain
  claimRef: {{namespace: {name}, name: data}}
  csi: {{driver: cinder.csi.openstack.org, volumeHandle: handle-{name}}}
"
    );
    given.apply(&text).await;
    let services = || async {
        let all = cloud_objects::services(&given.client).await?;
        Ok(all.into_iter().filter(|it| it.namespace == name).collect::<Vec<_>>())
    };
    let volumes = || async {
        let all = cloud_objects::volumes(&given.client).await?;
        Ok::<_, kubernetes::KubernetesError>(all.into_iter().find(|it| it.name == name))
    };
    let found: Vec<cloud_objects::BalancedService> =
        until("the service", || async { services().await.map(Some) }).await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].name.as_str(), found[0].uid.is_empty()), ("web", false));
    let volume = volumes().await.unwrap().unwrap();
    assert_eq!(volume.handle, format!("handle-{name}"));
    assert_eq!(volume.claim.as_ref().unwrap().name, "data");
    assert!(!volume.goes_with_its_claim);

    cloud_objects::delete_service(&given.client, &found[0]).await.unwrap();
    cloud_objects::delete_volume(&given.client, &volume).await.unwrap();
    until("both to be gone", || async {
        let gone = services().await?.is_empty() && volumes().await?.is_none();
        if !gone && let Some(volume) = volumes().await? {
            cloud_objects::delete_volume(&given.client, &volume).await?;
        }
        Ok(gone.then_some(()))
    })
    .await;
    cloud_objects::delete_service(&given.client, &found[0]).await.unwrap();
    given.delete(&text).await;
}
