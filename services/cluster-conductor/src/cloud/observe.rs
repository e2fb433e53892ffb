//! Observes the cloud objects of a cluster or VM: one or two lists per kind, whatever the number of members. Objects are fetched by id when
//! a list would contain those of everybody.
//!
//! Objects are found by the name in the ledger. A list may lag behind, so an object whose id is known and that is missing in a list is
//! fetched by its id before it counts as deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use cluster_core::{
    CloudObject, CloudObjectDetails, CloudObjectState, Key, Kind, Ledger, ObjectOwner,
};
use futures::future::try_join_all;
use openstack::block_storage::volumes;
use openstack::compute::server_groups::{self, ServerGroup};
use openstack::compute::servers;
use openstack::dns::recordsets::{self, Recordset};
use openstack::identity::application_credentials;
use openstack::load_balancer::load_balancers::{self, LoadBalancer};
use openstack::load_balancer::{ProvisioningStatus, pools};
use openstack::network::ports::PortQuery;
use openstack::network::security_groups::SecurityGroup;
use openstack::network::{floating_ips, networks, ports, routers, security_groups, subnets};
use openstack::{CloudError, Session};
use reconcile::Mutation;

use super::error::Result;
use super::found::{self, Listed};
use super::lookups::CloudLookups;
use super::observation_cache::CachedObservations;
use super::{made_by_kubernetes, security};

/// The kinds that are observed in parallel.
const KINDS: [Kind; 12] = [
    Kind::Network,
    Kind::Subnet,
    Kind::Router,
    Kind::SecurityGroup,
    Kind::ServerGroup,
    Kind::Port,
    Kind::LoadBalancer,
    Kind::FloatingIp,
    Kind::Record,
    Kind::Server,
    Kind::RootVolume,
    Kind::Credential,
];
/// For kinds whose list contains everybody's objects: up to this number, each object is fetched by its id.
const MAX_SINGLE_FETCHES: usize = 4;

/// Returns all objects in the ledger that the cloud has. Objects in `looks` are not observed again.
pub(crate) async fn observe(
    site: &CloudLookups<'_>,
    of: ObjectOwner<'_>,
    ledger: &Ledger,
    looks: &CachedObservations,
) -> Result<BTreeMap<Key, CloudObject>> {
    let each = KINDS.map(|kind| of_kind(site, of, (ledger, looks), kind));
    let all = try_join_all(each).await?.into_iter().flatten();
    let mut objects: BTreeMap<Key, CloudObject> = all.collect();
    match looks.all_of(ledger, Kind::RouterInterface) {
        Some(known) => objects.extend(known),
        None => {
            let leg = router_interface(site.session, ledger, &objects).await?;
            objects.extend(leg.map(|found| (Key::RouterInterface, found)));
        }
    }
    if let ObjectOwner::Cluster(spec) = of {
        objects.extend(made_by_kubernetes::observe(site, spec, ledger, &objects).await?);
    }
    Ok(objects)
}

type Owned = Vec<(Key, CloudObject)>;

async fn of_kind(
    site: &CloudLookups<'_>,
    of: ObjectOwner<'_>,
    (ledger, looks): (&Ledger, &CachedObservations),
    kind: Kind,
) -> Result<Owned> {
    if let Some(known) = looks.all_of(ledger, kind) {
        return Ok(known);
    }
    let (session, names) = (site.session, names(ledger, kind));
    let Some(name) = names.last() else { return Ok(Vec::new()) };
    Ok(match kind {
        Kind::Network => owned(session, ledger, kind, networks::find(session, name).await?).await?,
        Kind::Subnet => owned(session, ledger, kind, subnets::find(session, name).await?).await?,
        Kind::Router => owned(session, ledger, kind, routers::find(session, name).await?).await?,
        Kind::SecurityGroup => groups(session, ledger, &names).await?,
        Kind::ServerGroup => match one_by_one::<ServerGroup>(session, ledger, kind).await? {
            Some(owned) => owned,
            None => owned(session, ledger, kind, server_groups::list(session).await?).await?,
        },
        Kind::Port => owned(session, ledger, kind, ports::named(session, &names).await?).await?,
        Kind::LoadBalancer => balancers(session, ledger, &names).await?,
        Kind::FloatingIp => {
            let listed = floating_ips::described(session, &names).await?;
            owned(session, ledger, kind, listed).await?
        }
        Kind::Record => records(site, ledger).await?,
        Kind::Server => {
            let listed = servers::tagged(session, &of.tag()).await?;
            owned(session, ledger, kind, listed).await?
        }
        Kind::RootVolume => {
            owned(session, ledger, kind, volumes::find(session, name).await?).await?
        }
        Kind::Credential => credentials(session, ledger).await?,
        // These objects are found by the objects they depend on, or by the marks of their makers.
        Kind::RouterInterface | Kind::ServiceBalancer | Kind::Volume => Vec::new(),
    })
}

/// Returns the listed objects that are in the ledger.
async fn ours<T: Listed>(
    session: &Session,
    ledger: &Ledger,
    kind: Kind,
    mut listed: Vec<T>,
) -> Result<Vec<(Key, T)>, CloudError> {
    let mut ours = Vec::new();
    for (key, line) in ledger.of_kind(kind) {
        let known = match line.cloud_id.as_deref() {
            Some(id) => match listed.iter().position(|it| it.id() == id) {
                Some(at) => Some(listed.swap_remove(at)),
                None => T::show(session, id).await?,
            },
            None => None,
        };
        let looks = !Mutation::ForgetUnanswered.is_made();
        let found = known.or_else(|| looks.then(|| take(&mut listed, &line.name)).flatten());
        ours.extend(found.map(|found| (key.clone(), found)));
    }
    Ok(ours)
}

/// Removes and returns the object of this name. Of several, the one with the lowest id is taken, so that every turn takes the same; the
/// entry of a duplicate comes later and gets the other.
fn take<T: Listed>(listed: &mut Vec<T>, name: &str) -> Option<T> {
    let named = listed.iter().enumerate().filter(|(_, it)| it.name() == name);
    let (at, _) = named.min_by_key(|(_, it)| it.id().to_owned())?;
    Some(listed.swap_remove(at))
}

fn names(ledger: &Ledger, kind: Kind) -> Vec<String> {
    let names = ledger.of_kind(kind).into_iter().map(|(_, line)| line.name.clone());
    names.collect::<BTreeSet<_>>().into_iter().collect()
}

async fn owned<T: Listed>(
    session: &Session,
    ledger: &Ledger,
    kind: Kind,
    listed: Vec<T>,
) -> Result<Owned, CloudError> {
    let ours = ours(session, ledger, kind, listed).await?;
    Ok(ours.into_iter().map(|(key, it)| (key, it.found())).collect())
}

/// Fetches each object by its id, when all ids are known and there are few. `None` otherwise.
async fn one_by_one<T: Listed>(
    session: &Session,
    ledger: &Ledger,
    kind: Kind,
) -> Result<Option<Owned>, CloudError> {
    let Some(ids) = ids_of_few(ledger, kind) else { return Ok(None) };
    let each = ids.into_iter().map(|(key, id)| async move {
        let found = T::show(session, id).await?;
        Ok::<_, CloudError>(found.map(|it| (key.clone(), it.found())))
    });
    Ok(Some(try_join_all(each).await?.into_iter().flatten().collect()))
}

fn ids_of_few(ledger: &Ledger, kind: Kind) -> Option<Vec<(&Key, &str)>> {
    let lines = ledger.of_kind(kind);
    if lines.len() > MAX_SINGLE_FETCHES {
        return None;
    }
    lines.into_iter().map(|(key, line)| Some((key, line.cloud_id.as_deref()?))).collect()
}

async fn credentials(session: &Session, ledger: &Ledger) -> Result<Owned, CloudError> {
    let mut owned = Vec::new();
    for (key, line) in ledger.of_kind(Kind::Credential) {
        let found = application_credentials::find(session, &line.name).await?;
        owned.extend(found.map(|it| (key.clone(), found::credential(&it))));
    }
    Ok(owned)
}

/// Returns the security groups with their rules.
async fn groups(session: &Session, ledger: &Ledger, names: &[String]) -> Result<Owned> {
    let listed = security_groups::named(session, names).await?;
    let groups: Vec<(Key, SecurityGroup)> =
        ours(session, ledger, Kind::SecurityGroup, listed).await?;
    let ids: BTreeMap<&str, Key> =
        groups.iter().map(|(key, group)| (group.id.as_str(), key.clone())).collect();
    let with_rules = |(key, group): &(Key, SecurityGroup)| {
        (key.clone(), CloudObject { facts: security::facts(group, &ids), ..group.found() })
    };
    Ok(groups.iter().map(with_rules).collect())
}

/// Returns the load balancers with the addresses of their members.
async fn balancers(session: &Session, ledger: &Ledger, names: &[String]) -> Result<Owned> {
    let mut listed = Vec::new();
    for name in names {
        listed.extend(load_balancers::find(session, name).await?);
    }
    listed.retain(|it| it.provisioning_status != ProvisioningStatus::Deleted);
    let mut owned = Vec::new();
    for (key, balancer) in ours(session, ledger, Kind::LoadBalancer, listed).await? {
        let facts = member_addresses(session, &balancer).await?;
        owned.push((key, CloudObject { facts, ..balancer.found() }));
    }
    Ok(owned)
}

/// Returns the addresses of a load balancer's members; `CloudObjectDetails::None` when its pools differ, a listener or a pool is missing, or a
/// member is stuck: Octavia locks a load balancer while it works on a member.
async fn member_addresses(
    session: &Session,
    balancer: &LoadBalancer,
) -> Result<CloudObjectDetails, CloudError> {
    // A load balancer in progress is observed again by the next turn.
    if balancer.found().state != CloudObjectState::Ready {
        return Ok(CloudObjectDetails::None);
    }
    // Each listener has a pool of its own.
    if balancer.listeners.len() != balancer.pools.len() {
        return Ok(CloudObjectDetails::None);
    }
    let mut each: BTreeSet<BTreeSet<IpAddr>> = BTreeSet::new();
    for pool in &balancer.pools {
        let members = pools::members(session, &pool.id).await?;
        if members.iter().any(|member| found::is_stuck(&member.provisioning_status)) {
            return Ok(CloudObjectDetails::None);
        }
        each.insert(members.iter().map(|member| member.address).collect());
    }
    let agreed = if each.len() == 1 { each.pop_first() } else { None };
    Ok(agreed.map_or(CloudObjectDetails::None, CloudObjectDetails::Addresses))
}

/// Returns the DNS records. A record set is found by its description, which holds the object's name.
async fn records(site: &CloudLookups<'_>, ledger: &Ledger) -> Result<Owned> {
    let lines = ledger.of_kind(Kind::Record);
    // A deleted zone has no records.
    let Some(zone) = site.zone().await? else { return Ok(Vec::new()) };
    let found =
        |key: &Key, set: &Recordset| (key.clone(), found::record(set, ledger.is_leaving(key)));
    let found = &found;
    if let Some(ids) = ids_of_few(ledger, Kind::Record) {
        let each = ids.into_iter().map(|(key, id)| async move {
            let set = recordsets::show(zone.session, zone.id, id).await?;
            Ok::<_, CloudError>(set.map(|set| found(key, &set)))
        });
        return Ok(try_join_all(each).await?.into_iter().flatten().collect());
    }
    let listed = recordsets::list(zone.session, zone.id).await?;
    let mut owned = Vec::new();
    for (key, line) in lines {
        let set = match listed.iter().find(|set| set.description == line.name) {
            Some(set) => Some(set.clone()),
            None => match &line.cloud_id {
                Some(id) => recordsets::show(zone.session, zone.id, id).await?,
                None => None,
            },
        };
        owned.extend(set.map(|set| found(key, &set)));
    }
    Ok(owned)
}

/// Returns the interface of the router in the subnet: a port that the router created.
async fn router_interface(
    session: &Session,
    ledger: &Ledger,
    objects: &BTreeMap<Key, CloudObject>,
) -> Result<Option<CloudObject>> {
    let ends = (objects.get(&Key::Router), objects.get(&Key::Subnet));
    let (Some(router), Some(subnet)) = ends else { return Ok(None) };
    let Some(line) = ledger.line(&Key::RouterInterface) else { return Ok(None) };
    let query = PortQuery { device_id: Some(&router.id), ..PortQuery::default() };
    let legs = ports::list(session, &query).await?;
    let leg = legs.iter().find(|port| port.fixed_ips.iter().any(|ip| ip.subnet_id == subnet.id));
    // Only this list has the id of the port. Until the list shows it, Neutron's answer to the create request counts.
    let late = line.cloud_id.as_ref().filter(|_| ledger.is_fresh(&Key::RouterInterface));
    Ok(leg.map(Listed::found).or_else(|| {
        late.map(|id| CloudObject {
            id: id.clone(),
            state: CloudObjectState::Working,
            address: None,
            facts: CloudObjectDetails::None,
        })
    }))
}

#[cfg(test)]
mod tests;
