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

use super::error::CloudWorkError;
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
) -> Result<BTreeMap<Key, CloudObject>, CloudWorkError> {
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
) -> Result<BTreeMap<Key, CloudObject>, CloudWorkError> {
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
) -> Result<Option<String>, CloudWorkError> {
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
) -> Result<BTreeMap<Key, CloudObject>, CloudWorkError> {
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
