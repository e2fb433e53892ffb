//! Finds what Kubernetes created in the cloud: load balancers of Services, and volumes of claims.
//!
//! clusterd did not create these objects, so the marks of their makers identify them: cloud-provider-openstack names a load balancer
//! `kube_service_CLUSTER_NAMESPACE_NAME`, and its Cinder driver writes the cluster into the volume's metadata.

use std::collections::BTreeMap;

use cluster_core::{
    CloudObject, ClusterParameters, ClusterSpec, DesiredState, Key, Kind, Ledger, Reference,
};
use openstack::block_storage::volumes;
use openstack::load_balancer::ProvisioningStatus;
use openstack::load_balancer::load_balancers::{self, LoadBalancer};
use openstack::{CloudError, Session};

use super::error::{CloudWorkError, Result};
use super::found::{self, Listed};
use super::lookups::CloudLookups;

/// The key of a volume's metadata that names the cluster.
const VOLUME_CLUSTER: &str = "cinder.csi.openstack.org/cluster";

/// Returns every object that Kubernetes created and that exists.
pub(crate) async fn observe(
    site: &CloudLookups<'_>,
    spec: &ClusterSpec<'_>,
    ledger: &Ledger,
    objects: &BTreeMap<Key, CloudObject>,
) -> Result<BTreeMap<Key, CloudObject>> {
    // A cluster that was never complete runs nothing that could have created an object.
    if spec.cluster.completed_at.is_none() && spec.cluster.desire == DesiredState::Exist {
        return Ok(BTreeMap::new());
    }
    let (mut balancers, volumes) =
        tokio::try_join!(balancers(site, spec, objects), volumes_of(site.session, spec),)?;
    for (key, line) in ledger.of_kind(Kind::ServiceBalancer) {
        let known = line.cloud_id.as_deref().filter(|_| !balancers.contains_key(key));
        if let Some(id) = known
            && let Some(found) = LoadBalancer::show(site.session, id).await?
        {
            balancers.insert(key.clone(), found.found());
        }
    }
    balancers.extend(volumes);
    Ok(balancers)
}

async fn balancers(
    site: &CloudLookups<'_>,
    spec: &ClusterSpec<'_>,
    objects: &BTreeMap<Key, CloudObject>,
) -> Result<BTreeMap<Key, CloudObject>> {
    if !spec.cluster.blueprint.labels.settings().cloud_provider {
        return Ok(BTreeMap::new());
    }
    let Some(subnet) = subnet(site, &spec.cluster.blueprint, objects).await? else {
        return Ok(BTreeMap::new());
    };
    let prefix = format!("kube_service_{}_", spec.cluster.id);
    let listed = present(load_balancers::on_subnet(site.session, &subnet).await)?;
    let ours = listed.into_iter().filter(|it| {
        it.name.starts_with(&prefix) && it.provisioning_status != ProvisioningStatus::Deleted
    });
    Ok(ours.map(|it| (Key::ServiceBalancer(it.id.clone()), it.found())).collect())
}

/// Returns the id of the servers' subnet, while it exists.
async fn subnet(
    site: &CloudLookups<'_>,
    blueprint: &ClusterParameters,
    objects: &BTreeMap<Key, CloudObject>,
) -> Result<Option<String>> {
    let Some(given) = &blueprint.fixed_subnet else {
        return Ok(objects.get(&Key::Subnet).map(|found| found.id.clone()));
    };
    match site
        .subnet(&Reference::Given(given.clone()), &cluster_core::ClusterObservation::default())
        .await
    {
        Ok(id) => Ok(Some(id.to_owned())),
        // A deleted subnet has no load balancers.
        Err(CloudWorkError::NoSuch { .. }) => Ok(None),
        Err(other) => Err(other),
    }
}

async fn volumes_of(
    session: &Session,
    spec: &ClusterSpec<'_>,
) -> Result<BTreeMap<Key, CloudObject>> {
    if !spec.cluster.blueprint.labels.settings().cinder_csi {
        return Ok(BTreeMap::new());
    }
    let id = spec.cluster.id.to_string();
    let listed = present(volumes::list(session).await)?;
    let ours = listed.into_iter().filter(|it| it.metadata.get(VOLUME_CLUSTER) == Some(&id));
    Ok(ours.map(|it| (Key::Volume(it.id.clone()), found::volume(&it))).collect())
}

/// A cloud without the service has no such objects.
fn present<T>(listed: Result<Vec<T>, CloudError>) -> Result<Vec<T>, CloudError> {
    match listed {
        Err(CloudError::NoEndpoint { .. }) => Ok(Vec::new()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cluster_core::{
        CloudObjectDetails, CloudObjectState, LedgerEntry, LedgerState, LedgerUuid,
        RequestedCluster,
    };
    use jiff::Timestamp;
    use openstack::block_storage::volumes::{NewVolume, Source};

    use super::*;
    use crate::cloud::emulated::{emulated_cloud, new_balancer, new_subnet};

    async fn new_volume(session: &Session, cluster: String) -> String {
        let volume = NewVolume {
            name: "pvc-1".to_owned(),
            size: 1,
            kind: None,
            availability_zone: None,
            source: Source::Empty,
            metadata: BTreeMap::from([(VOLUME_CLUSTER.to_owned(), cluster)]),
        };
        volumes::create(session, &volume).await.unwrap().id
    }

    /// The entry of a load balancer that an earlier observation found.
    fn entry(of: cluster_core::ClusterUuid, id: &str) -> LedgerEntry {
        let key = Key::ServiceBalancer(id.to_owned());
        LedgerEntry {
            id: LedgerUuid::new_v4(),
            of: of.into(),
            kind: key.to_string(),
            name: key.to_string(),
            cloud_id: Some(id.to_owned()),
            state: LedgerState::Present,
            created_at: Timestamp::UNIX_EPOCH,
            updated_at: None,
        }
    }

    #[tokio::test]
    async fn objects_of_kubernetes_are_found_once_a_cluster_was_complete_or_is_deleted() {
        let (emulator, session) = emulated_cloud().await;
        let at = Timestamp::now();
        let blueprint = ClusterParameters::new("fedora-coreos".to_owned());
        let RequestedCluster { mut cluster, groups, .. } =
            RequestedCluster::new(blueprint, 1, 1, at);
        let subnet = new_subnet(&session).await;
        let cloud = (&emulator.cloud, &session);
        let name = format!("kube_service_{}_default_web", cluster.id);
        let named = new_balancer(cloud, &name, &subnet).await;
        // Somebody gave the load balancer another name after it was observed.
        let renamed = new_balancer(cloud, "renamed", &subnet).await;
        new_balancer(cloud, "kube_service_another_default_web", &subnet).await;
        let volume = new_volume(&session, cluster.id.to_string()).await;
        new_volume(&session, "another".to_owned()).await;
        let facts = CloudObjectDetails::None;
        let state = CloudObjectState::Ready;
        let subnet = CloudObject { id: subnet, state, address: None, facts };
        let objects = BTreeMap::from([(Key::Subnet, subnet)]);

        let [named, renamed] = [named, renamed].map(Key::ServiceBalancer);
        let Key::ServiceBalancer(renamed_id) = &renamed else { panic!("{renamed}") };
        let Key::ServiceBalancer(named_id) = &named else { panic!("{named}") };
        let volume = Key::Volume(volume);
        let of = cluster.id;
        let (exists, gone) = (DesiredState::Exist, DesiredState::Gone);
        let found = || vec![named.clone(), volume.clone()];
        let with_renamed = || vec![named.clone(), renamed.clone(), volume.clone()];
        let rows = [
            (None, exists, vec![], vec![]),
            (None, gone, vec![], found()),
            (Some(at), exists, vec![], found()),
            (Some(at), gone, vec![], found()),
            (Some(at), gone, vec![entry(of, named_id)], found()),
            (Some(at), gone, vec![entry(of, renamed_id)], with_renamed()),
            (Some(at), gone, vec![entry(of, named_id), entry(of, renamed_id)], with_renamed()),
            (Some(at), gone, vec![entry(of, "absent")], found()),
        ];
        for (number, (completed_at, desire, entries, mut want)) in rows.into_iter().enumerate() {
            (cluster.completed_at, cluster.desire) = (completed_at, desire);
            let spec = ClusterSpec { cluster: &cluster, groups: &groups };
            let site = CloudLookups::new((&session, &session), None, Arc::default());
            let ledger = Ledger::new(of, at, entries);
            let found = observe(&site, &spec, &ledger, &objects).await.unwrap();
            want.sort();
            assert_eq!(found.into_keys().collect::<Vec<_>>(), want, "row {number}");
        }
    }
}
