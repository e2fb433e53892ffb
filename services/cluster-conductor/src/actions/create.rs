//! Creates objects in the cloud.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use cluster_core::{
    Cidr, CloudObject, CloudObjectDetails, CloudObjectState, ClusterObservation, Key, Listener,
    ResourceSpec,
};
use openstack::block_storage::volumes::{self, NewVolume, Source};
use openstack::compute::server_groups::{self, Policy};
use openstack::dns::recordsets::{self, NewRecordset};
use openstack::load_balancer::listeners::NewListener;
use openstack::load_balancer::load_balancers::{self, NewLoadBalancer};
use openstack::load_balancer::monitors::NewMonitor;
use openstack::load_balancer::pools::{NewMember, NewPool};
use openstack::network::networks::{self, NewNetwork};
use openstack::network::ports::{self, AddressPair, NewPort};
use openstack::network::subnets::{self, NewSubnet};
use openstack::network::{floating_ips, routers, security_groups};

use super::action_context::ActionContext;
use super::server;
use crate::cloud::found::{self, Listed};
use crate::cloud::{CloudWorkError, id_of};

/// The TTL of a cluster's DNS records, in seconds. Repair changes the addresses, so resolvers must not cache them for long.
const RECORD_TTL: u32 = 60;

/// Creates an object under `name`. Everything it depends on is in the observation. Returns the new object.
pub(crate) async fn create(
    action_context: &ActionContext<'_>,
    (key, name, thing): (&Key, &str, &ResourceSpec),
) -> Result<CloudObject, CloudWorkError> {
    let (site, seen) = (action_context.site, &action_context.seen);
    let session = site.session;
    let about = action_context.of.tag();
    match thing {
        ResourceSpec::Network => {
            let new = NewNetwork { name: name.to_owned(), description: about, mtu: None };
            Ok(networks::create(session, &new).await?.found())
        }
        ResourceSpec::Subnet { cidr, name_servers } => {
            let new = NewSubnet {
                name: name.to_owned(),
                network_id: id_of(&Key::Network, seen)?.to_owned(),
                cidr: cidr.to_string(),
                dns_nameservers: name_servers.clone(),
            };
            Ok(subnets::create(session, &new).await?.found())
        }
        ResourceSpec::Router { external_network } => {
            let external = site.external_network(external_network).await?;
            Ok(routers::create(session, name, Some(external)).await?.found())
        }
        ResourceSpec::RouterInterface => {
            let (router, subnet) = (id_of(&Key::Router, seen)?, id_of(&Key::Subnet, seen)?);
            routers::add_subnet(session, router, subnet).await?;
            // The interface has a port with an id of its own, but router and subnet identify the interface too.
            let id = format!("{router}:{subnet}");
            Ok(CloudObject {
                id,
                state: CloudObjectState::Ready,
                address: None,
                facts: CloudObjectDetails::None,
            })
        }
        ResourceSpec::SecurityGroup { .. } => {
            let group = security_groups::create(session, name, &about).await?;
            Ok(CloudObject { facts: CloudObjectDetails::Rules(BTreeSet::new()), ..group.found() })
        }
        ResourceSpec::ServerGroup { policy } => {
            let policy = Policy::from((*policy).to_owned());
            Ok(server_groups::create(session, name, &policy).await?.found())
        }
        ResourceSpec::Port { network, subnet, groups, allowed } => {
            let groups: Result<Vec<String>, CloudWorkError> =
                groups.iter().map(|key| Ok(id_of(key, seen)?.to_owned())).collect();
            let pair = |range: &Cidr| AddressPair { ip_address: range.to_string() };
            let new = NewPort {
                name: name.to_owned(),
                network_id: site.network(network, seen).await?.to_owned(),
                subnet_id: match subnet {
                    Some(subnet) => Some(site.subnet(subnet, seen).await?.to_owned()),
                    None => None,
                },
                address: None,
                // Without groups Octavia attaches its own security group to the VIP port.
                security_groups: Some(groups?).filter(|groups| !groups.is_empty()),
                allowed_address_pairs: allowed.iter().map(pair).collect(),
            };
            Ok(ports::create(session, &new).await?.found())
        }
        ResourceSpec::LoadBalancer { provider, algorithm, listeners, allowed, members } => {
            let Key::LoadBalancer(of) = key else {
                return Err(CloudWorkError::DependencyMissing(key.clone()));
            };
            let members = addresses(members, seen);
            let whole = |listener: &Listener| NewListener {
                name: listener.name.to_owned(),
                protocol: "TCP".to_owned(),
                protocol_port: listener.port,
                allowed_cidrs: allowed.iter().map(ToString::to_string).collect(),
                timeout_client_data: Some(listener.idle_timeout_ms),
                timeout_member_data: Some(listener.idle_timeout_ms),
                default_pool: Some(pool(listener, algorithm, &members)),
            };
            let new = NewLoadBalancer {
                name: name.to_owned(),
                description: about.clone(),
                vip_port_id: Some(id_of(&Key::VipPort(*of), seen)?.to_owned()),
                provider: provider.clone(),
                tags: vec![about],
                listeners: listeners.iter().map(whole).collect(),
                ..NewLoadBalancer::default()
            };
            let made = load_balancers::create(session, &new).await?.found();
            Ok(CloudObject { facts: CloudObjectDetails::Addresses(members), ..made })
        }
        ResourceSpec::FloatingIp { external_network, port } => {
            let external = site.external_network(external_network).await?;
            let port = id_of(port, seen)?;
            Ok(floating_ips::create(session, external, name, Some(port)).await?.found())
        }
        ResourceSpec::Record { zone, host, of } => {
            let zone = site.needed_zone(zone).await?;
            let addresses = addresses(of, seen);
            let new = NewRecordset {
                name: host.clone(),
                kind: "A".to_owned(),
                records: addresses.iter().map(IpAddr::to_string).collect(),
                description: name.to_owned(),
                ttl: Some(RECORD_TTL),
            };
            match recordsets::create(zone.session, zone.id, &new).await {
                Ok(made) => Ok(found::record(&made, false)),
                Err(error) if error.is_conflict() => {
                    Err(CloudWorkError::NameTaken { host: host.clone() })
                }
                Err(error) => Err(error.into()),
            }
        }
        ResourceSpec::Volume { image, size, availability_zone } => {
            let new = NewVolume {
                name: name.to_owned(),
                size: u64::from(*size),
                kind: None,
                availability_zone: availability_zone.clone(),
                source: Source::Image { id: image.clone() },
                metadata: BTreeMap::from([("bedplate".to_owned(), about)]),
            };
            Ok(volumes::create(session, &new).await?.found())
        }
        ResourceSpec::Server { .. } => server::create(action_context, (key, name, thing)).await,
        ResourceSpec::Credential => server::credential(action_context, key, name).await,
    }
}

/// Returns the addresses of those of the objects that have one.
fn addresses(of: &BTreeSet<Key>, seen: &ClusterObservation) -> BTreeSet<IpAddr> {
    of.iter().filter_map(|key| seen.objects.get(key)?.address).collect()
}

/// Returns the pool of a listener, whose members listen on the listener's port.
fn pool(listener: &Listener, algorithm: &str, addresses: &BTreeSet<IpAddr>) -> NewPool {
    NewPool {
        name: listener.name.to_owned(),
        protocol: "TCP".to_owned(),
        lb_algorithm: algorithm.to_owned(),
        members: members(listener, addresses),
        healthmonitor: Some(NewMonitor {
            name: listener.name.to_owned(),
            kind: "TCP".to_owned(),
            delay: 5,
            timeout: 3,
            max_retries: 2,
            max_retries_down: 2,
            url_path: None,
            expected_codes: None,
        }),
    }
}

/// Returns the members of a listener's pool.
pub(crate) fn members(listener: &Listener, addresses: &BTreeSet<IpAddr>) -> Vec<NewMember> {
    let member = |address: &IpAddr| NewMember {
        name: String::new(),
        address: *address,
        protocol_port: listener.port,
        subnet_id: None,
    };
    addresses.iter().map(member).collect()
}
