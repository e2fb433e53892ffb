//! Checks the project's quotas in the cloud before anything is created.

use std::collections::{BTreeMap, BTreeSet};

use cluster_core::{
    ClusterObservation, DesiredObjects, FlavorSize, Key, Problem, QuotaNeed, QuotaShortage,
    ResourceSpec, quota_need, shortages,
};
use openstack::compute::limits;
use openstack::{CloudError, QuotaUsage, block_storage, dns, load_balancer, network};

use super::error::Result;
use super::flavors::size;
use super::lookups::CloudLookups;

/// Returns the quotas that are too small, as a problem that stops the creation; `None` when everything fits.
pub(crate) async fn shortage(
    site: &CloudLookups<'_>,
    shape: &DesiredObjects,
    seen: &ClusterObservation,
) -> Result<Option<Problem>> {
    let short = short(site, shape, seen).await?;
    if short.is_empty() {
        return Ok(None);
    }
    let all: Vec<String> = short.iter().map(QuotaShortage::to_string).collect();
    Ok(Some(Problem {
        reason: "QuotaExceeded".to_owned(),
        message: format!(
            "nothing more is created, because the project's quota is too small; needed: {}",
            all.join(", ")
        ),
        next_action: "raise the project's quota, or delete or resize the cluster".to_owned(),
        is_final: true,
    }))
}

/// Returns the need of all of `shape`, and the quotas that are too small for the objects that do not exist yet.
pub(crate) async fn outlook(
    site: &CloudLookups<'_>,
    shape: &DesiredObjects,
    there: &BTreeSet<Key>,
) -> Result<(QuotaNeed, Vec<QuotaShortage>)> {
    let (sizes, free) = tokio::try_join!(sizes(site, shape), allowed(site))?;
    let missing = quota_need(shape, &sizes, |key| there.contains(key));
    Ok((quota_need(shape, &sizes, |_| false), shortages(&missing, &free)))
}

/// Returns the quotas that are too small for the objects that were not observed.
async fn short(
    site: &CloudLookups<'_>,
    shape: &DesiredObjects,
    seen: &ClusterObservation,
) -> Result<Vec<QuotaShortage>> {
    let (sizes, free) = tokio::try_join!(sizes(site, shape), allowed(site))?;
    let needed = quota_need(shape, &sizes, |key| seen.objects.contains_key(key));
    Ok(shortages(&needed, &free))
}

/// Returns the sizes of the flavors in `shape`.
async fn sizes(
    site: &CloudLookups<'_>,
    shape: &DesiredObjects,
) -> Result<BTreeMap<String, FlavorSize>> {
    let mut sizes = BTreeMap::new();
    for object in shape.values() {
        if let ResourceSpec::Server { flavor: Some(given), .. } = &object.thing
            && !sizes.contains_key(given)
        {
            sizes.insert(given.clone(), size(site.flavor(given).await?));
        }
    }
    Ok(sizes)
}

/// Returns what is left of each quota, by the names of [`cluster_core::QuotaNeed`]. Unlimited quotas are missing.
async fn allowed(site: &CloudLookups<'_>) -> Result<BTreeMap<String, u64>> {
    let session = site.session;
    let services = async {
        Ok(tokio::try_join!(
            limits::show(session),
            network::quotas::show(session),
            present(load_balancer::quotas::load_balancers(session)),
            present(block_storage::limits::show(session)),
        )?)
    };
    let ((compute, neutron, balancers, volumes), recordsets) =
        tokio::try_join!(services, recordsets(site))?;
    let mut free = BTreeMap::new();
    let mut note = |resource: &str, allowance: Option<&QuotaUsage>| {
        if let Some(left) = allowance.and_then(QuotaUsage::left) {
            free.insert(resource.to_owned(), left);
        }
    };
    note("instances", Some(&compute.instances));
    note("cores", Some(&compute.cores));
    note("ram_mib", Some(&compute.ram));
    note("server_groups", Some(&compute.server_groups));
    for (resource, word) in [
        ("networks", "network"),
        ("subnets", "subnet"),
        ("routers", "router"),
        ("ports", "port"),
        ("security_groups", "security_group"),
        ("security_group_rules", "security_group_rule"),
        ("floating_ips", "floatingip"),
    ] {
        note(resource, neutron.get(word));
    }
    note("load_balancers", balancers.as_ref());
    note("volumes", volumes.as_ref().map(|it| &it.volumes));
    note("gigabytes", volumes.as_ref().map(|it| &it.gigabytes));
    note("recordsets", recordsets.as_ref());
    Ok(free)
}

/// Returns the quota of record sets in the cluster's zone; `None` when the zone does not exist, which the creation of a record reports.
async fn recordsets(site: &CloudLookups<'_>) -> Result<Option<QuotaUsage>> {
    match site.zone().await? {
        Some(zone) => Ok(present(dns::limits::recordsets(zone.session, zone.id)).await?),
        None => Ok(None),
    }
}

/// A cloud without the service has no such quota; the creation of an object reports the missing service.
async fn present<T>(
    asked: impl Future<Output = Result<T, CloudError>>,
) -> Result<Option<T>, CloudError> {
    match asked.await {
        Err(CloudError::NoEndpoint { .. }) => Ok(None),
        other => other.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cluster_core::{CloudObject, CloudObjectDetails, CloudObjectState, DesiredObject};

    use super::*;
    use crate::cloud::emulated::emulated_cloud;

    fn servers(flavors: &[Option<&str>]) -> DesiredObjects {
        let server = |(number, flavor): (usize, &Option<&str>)| {
            let thing = ResourceSpec::Server {
                image: "i".to_owned(),
                flavor: flavor.map(str::to_owned),
                keypair: None,
                availability_zone: None,
                disks: Vec::new(),
            };
            (key(number), DesiredObject { name: String::new(), thing, needs: BTreeSet::new() })
        };
        flavors.iter().enumerate().map(server).collect()
    }

    fn key(number: usize) -> Key {
        format!("server/default-worker-{number}").parse().unwrap()
    }

    #[tokio::test]
    async fn the_sizes_of_flavors_count_for_the_servers_that_do_not_exist_yet() {
        let (emulator, session) = emulated_cloud().await;
        // The flavors have 1 processor and 2048 MiB, and 4 processors and 8192 MiB. The size of a server without a flavor is not known.
        let (small, large) = (Some("m1.small"), Some("m1.large"));
        let shape = servers(&[small, large, small, None]);
        let rows: [(_, _, &[usize], _); 5] = [
            (6, 12_288, &[], ""),
            (5, 12_288, &[], "6 cores (5 free)"),
            (5, 12_287, &[], "6 cores (5 free), 12288 ram_mib (12287 free)"),
            (5, 10_240, &[0], ""),
            (1, 2047, &[1, 2], "2048 ram_mib (2047 free)"),
        ];
        for (cores, ram, there, want) in rows {
            emulator.cloud.set_quota("tenant-a", "cores", cores);
            emulator.cloud.set_quota("tenant-a", "ram", ram);
            let site = CloudLookups::new((&session, &session), None, Arc::default());
            let keys: BTreeSet<Key> = there.iter().copied().map(key).collect();
            let (need, short) = outlook(&site, &shape, &keys).await.unwrap();
            // The whole need does not depend on the existing servers.
            assert_eq!((need.instances, need.cores, need.ram_mib), (4, 6, 12_288));
            let short: Vec<String> = short.iter().map(ToString::to_string).collect();
            assert_eq!(short.join(", "), want, "{cores} cores, {ram} MiB, {there:?} exist");

            let found = |key: Key| {
                let (id, facts) = (key.to_string(), CloudObjectDetails::None);
                (key, CloudObject { id, state: CloudObjectState::Ready, address: None, facts })
            };
            let objects = keys.into_iter().map(found).collect();
            let seen = ClusterObservation { objects, ..ClusterObservation::default() };
            let problem = shortage(&site, &shape, &seen).await.unwrap();
            let told = problem.map(|it| it.message.rsplit_once("needed: ").unwrap().1.to_owned());
            assert_eq!(told.unwrap_or_default(), want, "{cores} cores, {ram} MiB, {there:?} exist");
        }
    }
}
