//! What the cloud has of a cluster's: a list or two of each kind, whatever the number of machines.
//!
//! What is looked for is what the ledger names, by the name in the ledger. A list may lag behind: an object whose id is
//! known and that a list does not show is asked for by its id before it counts as gone.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use cluster_core::{ClusterSpec, Facts, Found, FoundState, Key, Kind, LedgerState, tag};
use openstack::compute::{server_groups, servers};
use openstack::dns::recordsets;
use openstack::identity::application_credentials;
use openstack::load_balancer::load_balancers::{self, LoadBalancer};
use openstack::load_balancer::{ProvisioningStatus, pools};
use openstack::network::ports::PortQuery;
use openstack::network::security_groups::SecurityGroup;
use openstack::network::{floating_ips, networks, ports, routers, security_groups, subnets};
use openstack::{CloudError, Session};

use super::found::{self, Listed};
use super::ledger::Ledger;
use super::site::Site;
use super::trouble::Trouble;
use super::{inside, security};

/// All that the cloud has of what the ledger names.
pub(crate) async fn observe(
    site: &Site<'_>,
    spec: &ClusterSpec<'_>,
    ledger: &Ledger<'_>,
) -> Result<BTreeMap<Key, Found>, Trouble> {
    let (plain, machines, groups, balancers, records) = tokio::try_join!(
        plain(site.session, ledger),
        machines(site.session, spec, ledger),
        groups(site.session, ledger),
        balancers(site.session, ledger),
        records(site, ledger),
    )?;
    let all = [plain, machines, groups, balancers, records].into_iter().flatten();
    let mut objects: BTreeMap<Key, Found> = all.collect();
    let leg = leg(site.session, ledger, &objects).await?;
    objects.extend(leg.map(|found| (Key::RouterInterface, found)));
    objects.extend(inside::observe(site, spec, ledger, &objects).await?);
    Ok(objects)
}

type Owned = Vec<(Key, Found)>;

/// Of what a list shows, that which the ledger names.
async fn ours<T: Listed>(
    session: &Session,
    ledger: &Ledger<'_>,
    kind: Kind,
    mut listed: Vec<T>,
) -> Result<Vec<(Key, T)>, CloudError> {
    let mut ours = Vec::new();
    for (key, line) in ledger.of_kind(kind) {
        let known = line.cloud_id.as_deref();
        let by_id = listed.iter().position(|it| known == Some(it.id()));
        let at = by_id.or_else(|| listed.iter().position(|it| it.name() == line.name));
        let found = match (at, known) {
            (Some(at), _) => Some(listed.swap_remove(at)),
            (None, Some(id)) => T::show(session, id).await?,
            (None, None) => None,
        };
        ours.extend(found.map(|found| (key.clone(), found)));
    }
    Ok(ours)
}

fn names(ledger: &Ledger<'_>, kind: Kind) -> Vec<String> {
    ledger.of_kind(kind).into_iter().map(|(_, line)| line.name.clone()).collect()
}

fn owned<T: Listed>(ours: Vec<(Key, T)>) -> Owned {
    ours.into_iter().map(|(key, it)| (key, it.found())).collect()
}

/// All kinds of which a list says everything.
async fn plain(session: &Session, ledger: &Ledger<'_>) -> Result<Owned, Trouble> {
    let networks = async {
        let Some(name) = names(ledger, Kind::Network).pop() else { return Ok(Vec::new()) };
        let listed = networks::find(session, &name).await?;
        Ok::<_, CloudError>(owned(ours(session, ledger, Kind::Network, listed).await?))
    };
    let subnets = async {
        let Some(name) = names(ledger, Kind::Subnet).pop() else { return Ok(Vec::new()) };
        let listed = subnets::find(session, &name).await?;
        Ok::<_, CloudError>(owned(ours(session, ledger, Kind::Subnet, listed).await?))
    };
    let routers = async {
        let Some(name) = names(ledger, Kind::Router).pop() else { return Ok(Vec::new()) };
        let listed = routers::find(session, &name).await?;
        Ok::<_, CloudError>(owned(ours(session, ledger, Kind::Router, listed).await?))
    };
    let ports = async {
        let listed = ports::named(session, &names(ledger, Kind::Port)).await?;
        Ok::<_, CloudError>(owned(ours(session, ledger, Kind::Port, listed).await?))
    };
    let addresses = async {
        let names = names(ledger, Kind::FloatingIp);
        let listed = floating_ips::described(session, &names).await?;
        Ok::<_, CloudError>(owned(ours(session, ledger, Kind::FloatingIp, listed).await?))
    };
    let server_groups = async {
        if ledger.of_kind(Kind::ServerGroup).is_empty() {
            return Ok(Vec::new());
        }
        let listed = server_groups::list(session).await?;
        Ok::<_, CloudError>(owned(ours(session, ledger, Kind::ServerGroup, listed).await?))
    };
    let (networks, subnets, routers, ports, addresses, server_groups) =
        tokio::try_join!(networks, subnets, routers, ports, addresses, server_groups)?;
    Ok([networks, subnets, routers, ports, addresses, server_groups].concat())
}

/// Servers, and the credential.
async fn machines(
    session: &Session,
    spec: &ClusterSpec<'_>,
    ledger: &Ledger<'_>,
) -> Result<Owned, Trouble> {
    let servers = async {
        if ledger.of_kind(Kind::Server).is_empty() {
            return Ok(Vec::new());
        }
        let listed = servers::tagged(session, &tag(spec.cluster.id)).await?;
        Ok::<_, CloudError>(owned(ours(session, ledger, Kind::Server, listed).await?))
    };
    let credentials = async {
        let mut owned = Vec::new();
        for (key, line) in ledger.of_kind(Kind::Credential) {
            let found = application_credentials::find(session, &line.name).await?;
            owned.extend(found.map(|it| (key.clone(), found::credential(&it))));
        }
        Ok::<_, CloudError>(owned)
    };
    let (servers, credentials) = tokio::try_join!(servers, credentials)?;
    Ok([servers, credentials].concat())
}

/// Security groups, with what they let in.
async fn groups(session: &Session, ledger: &Ledger<'_>) -> Result<Owned, Trouble> {
    let listed = security_groups::named(session, &names(ledger, Kind::SecurityGroup)).await?;
    let groups: Vec<(Key, SecurityGroup)> =
        ours(session, ledger, Kind::SecurityGroup, listed).await?;
    let ids: BTreeMap<&str, Key> =
        groups.iter().map(|(key, group)| (group.id.as_str(), key.clone())).collect();
    let with_rules = |(key, group): &(Key, SecurityGroup)| {
        (key.clone(), Found { facts: security::facts(group, &ids), ..group.found() })
    };
    Ok(groups.iter().map(with_rules).collect())
}

/// Load balancers, with the addresses behind them.
async fn balancers(session: &Session, ledger: &Ledger<'_>) -> Result<Owned, Trouble> {
    let mut listed = Vec::new();
    for name in names(ledger, Kind::LoadBalancer) {
        listed.extend(load_balancers::find(session, &name).await?);
    }
    listed.retain(|it| it.provisioning_status != ProvisioningStatus::Deleted);
    let mut owned = Vec::new();
    for (key, balancer) in ours(session, ledger, Kind::LoadBalancer, listed).await? {
        let facts = behind(session, &balancer).await?;
        owned.push((key, Found { facts, ..balancer.found() }));
    }
    Ok(owned)
}

/// The addresses behind a load balancer; nothing is known of it while its pools differ.
async fn behind(session: &Session, balancer: &LoadBalancer) -> Result<Facts, CloudError> {
    // What is under way will be looked at again.
    if balancer.found().state != FoundState::Ready {
        return Ok(Facts::None);
    }
    let mut each: BTreeSet<BTreeSet<IpAddr>> = BTreeSet::new();
    for pool in &balancer.pools {
        let members = pools::members(session, &pool.id).await?;
        each.insert(members.iter().map(|member| member.address).collect());
    }
    let agreed = if each.len() == 1 { each.pop_first() } else { None };
    Ok(agreed.map_or(Facts::None, Facts::Addresses))
}

/// DNS records, which have no name but a description of our own.
async fn records(site: &Site<'_>, ledger: &Ledger<'_>) -> Result<Owned, Trouble> {
    let lines = ledger.of_kind(Kind::Record);
    if lines.is_empty() {
        return Ok(Vec::new());
    }
    // A zone that is gone took its names with it.
    let Some(zone) = site.zone().await? else { return Ok(Vec::new()) };
    let listed = recordsets::list(site.session, zone).await?;
    let mut owned = Vec::new();
    for (key, line) in lines {
        let found = match listed.iter().find(|set| set.description == line.name) {
            Some(set) => Some(set.clone()),
            None => match &line.cloud_id {
                Some(id) => recordsets::show(site.session, zone, id).await?,
                None => None,
            },
        };
        let is_leaving = line.state == LedgerState::Leaving;
        owned.extend(found.map(|set| (key.clone(), found::record(&set, is_leaving))));
    }
    Ok(owned)
}

/// The router's leg in the subnet: a port that the router made.
async fn leg(
    session: &Session,
    ledger: &Ledger<'_>,
    objects: &BTreeMap<Key, Found>,
) -> Result<Option<Found>, Trouble> {
    let ends = (objects.get(&Key::Router), objects.get(&Key::Subnet));
    let (Some(router), Some(subnet)) = ends else { return Ok(None) };
    let Some(line) = ledger.line(&Key::RouterInterface) else { return Ok(None) };
    let query = PortQuery { device_id: Some(&router.id), ..PortQuery::default() };
    let legs = ports::list(session, &query).await?;
    let leg = legs.iter().find(|port| port.fixed_ips.iter().any(|ip| ip.subnet_id == subnet.id));
    // Its port's id is learnt from that list only: until then, Neutron's word that it was added counts.
    let late = line.cloud_id.as_ref().filter(|_| ledger.is_fresh(&Key::RouterInterface));
    Ok(leg.map(Listed::found).or_else(|| {
        late.map(|id| Found {
            id: id.clone(),
            state: FoundState::Working,
            address: None,
            facts: Facts::None,
        })
    }))
}
