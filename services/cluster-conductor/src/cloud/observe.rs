//! What the cloud has of a cluster's: a list or two of each kind, whatever the number of machines; a few things by their
//! ids, where a list would hold everybody's.
//!
//! What is looked for is what the ledger names, by the name in the ledger. A list may lag behind: an object whose id is
//! known and that a list does not show is asked for by its id before it counts as gone.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use cluster_core::{Facts, Found, FoundState, Key, Kind};
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

use super::found::{self, Listed};
use super::lately::Looks;
use super::ledger::Ledger;
use super::of::Of;
use super::site::Site;
use super::trouble::Trouble;
use super::{inside, security};

/// What is asked of the cloud by kind, side by side.
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
/// Of kinds that are listed with everybody else's, so many are asked for one by one.
const FEW: usize = 4;

/// All that the cloud has of what the ledger names. What `looks` knows is not asked.
pub(crate) async fn observe(
    site: &Site<'_>,
    of: Of<'_>,
    ledger: &Ledger<'_>,
    looks: &Looks,
) -> Result<BTreeMap<Key, Found>, Trouble> {
    let each = KINDS.map(|kind| of_kind(site, of, (ledger, looks), kind));
    let all = try_join_all(each).await?.into_iter().flatten();
    let mut objects: BTreeMap<Key, Found> = all.collect();
    match looks.all_of(ledger, Kind::RouterInterface) {
        Some(known) => objects.extend(known),
        None => {
            let leg = leg(site.session, ledger, &objects).await?;
            objects.extend(leg.map(|found| (Key::RouterInterface, found)));
        }
    }
    if let Of::Cluster(spec) = of {
        objects.extend(inside::observe(site, spec, ledger, &objects).await?);
    }
    Ok(objects)
}

type Owned = Vec<(Key, Found)>;

/// All of one kind.
async fn of_kind(
    site: &Site<'_>,
    of: Of<'_>,
    (ledger, looks): (&Ledger<'_>, &Looks),
    kind: Kind,
) -> Result<Owned, Trouble> {
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
        // They are found by what rests on them, or by what their makers wrote on them.
        Kind::RouterInterface | Kind::ServiceBalancer | Kind::Volume => Vec::new(),
    })
}

/// Of what a list shows, that which the ledger names.
async fn ours<T: Listed>(
    session: &Session,
    ledger: &Ledger<'_>,
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
        let found = known.or_else(|| take(&mut listed, &line.name));
        ours.extend(found.map(|found| (key.clone(), found)));
    }
    Ok(ours)
}

/// Takes the one of that name. Of several, whoever looks takes the same: a twin's line comes after its own, and gets what is
/// left.
fn take<T: Listed>(listed: &mut Vec<T>, name: &str) -> Option<T> {
    let named = listed.iter().enumerate().filter(|(_, it)| it.name() == name);
    let (at, _) = named.min_by_key(|(_, it)| it.id().to_owned())?;
    Some(listed.swap_remove(at))
}

fn names(ledger: &Ledger<'_>, kind: Kind) -> Vec<String> {
    let names = ledger.of_kind(kind).into_iter().map(|(_, line)| line.name.clone());
    names.collect::<BTreeSet<_>>().into_iter().collect()
}

async fn owned<T: Listed>(
    session: &Session,
    ledger: &Ledger<'_>,
    kind: Kind,
    listed: Vec<T>,
) -> Result<Owned, CloudError> {
    let ours = ours(session, ledger, kind, listed).await?;
    Ok(ours.into_iter().map(|(key, it)| (key, it.found())).collect())
}

/// Each by its id, where all ids are known and they are few.
async fn one_by_one<T: Listed>(
    session: &Session,
    ledger: &Ledger<'_>,
    kind: Kind,
) -> Result<Option<Owned>, CloudError> {
    let Some(ids) = ids_of_few(ledger, kind) else { return Ok(None) };
    let each = ids.into_iter().map(|(key, id)| async move {
        let found = T::show(session, id).await?;
        Ok::<_, CloudError>(found.map(|it| (key.clone(), it.found())))
    });
    Ok(Some(try_join_all(each).await?.into_iter().flatten().collect()))
}

fn ids_of_few<'l>(ledger: &'l Ledger<'_>, kind: Kind) -> Option<Vec<(&'l Key, &'l str)>> {
    let lines = ledger.of_kind(kind);
    if lines.len() > FEW {
        return None;
    }
    lines.into_iter().map(|(key, line)| Some((key, line.cloud_id.as_deref()?))).collect()
}

async fn credentials(session: &Session, ledger: &Ledger<'_>) -> Result<Owned, CloudError> {
    let mut owned = Vec::new();
    for (key, line) in ledger.of_kind(Kind::Credential) {
        let found = application_credentials::find(session, &line.name).await?;
        owned.extend(found.map(|it| (key.clone(), found::credential(&it))));
    }
    Ok(owned)
}

/// Security groups, with what they let in.
async fn groups(
    session: &Session,
    ledger: &Ledger<'_>,
    names: &[String],
) -> Result<Owned, Trouble> {
    let listed = security_groups::named(session, names).await?;
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
async fn balancers(
    session: &Session,
    ledger: &Ledger<'_>,
    names: &[String],
) -> Result<Owned, Trouble> {
    let mut listed = Vec::new();
    for name in names {
        listed.extend(load_balancers::find(session, name).await?);
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
    // A zone that is gone took its names with it.
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
