//! Creates objects in the cloud.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use cluster_core::{
    Cidr, CloudObject, CloudObjectDetails, CloudObjectState, ClusterObservation, Key, Reference,
    ResourceSpec,
};
use openstack::block_storage::volumes::{self, NewVolume, Source};
use openstack::compute::server_groups::{self, Policy};
use openstack::dns::recordsets::{self, NewRecordset};
use openstack::network::networks::{self, NewNetwork};
use openstack::network::ports::{self, AddressPair, NewPort};
use openstack::network::subnets::{self, NewSubnet};
use openstack::network::{floating_ips, routers, security_groups};

use super::action_context::ActionContext;
use super::{load_balancer, server};
use crate::cloud::found::{self, Listed};
use crate::cloud::{CloudWorkError, Result, id_of};

/// The TTL of a cluster's DNS records, in seconds. Repair changes the addresses, so resolvers must not cache them for long.
const RECORD_TTL: u32 = 60;

type Created = Result<CloudObject>;

/// Creates an object under `name`. Everything it depends on is in the observation. Returns the new object.
pub(crate) async fn create(
    action_context: &ActionContext<'_>,
    (key, name, thing): (&Key, &str, &ResourceSpec),
) -> Created {
    let (site, seen) = (action_context.site, &action_context.seen);
    match thing {
        ResourceSpec::Network => action_context.create_network(name).await,
        ResourceSpec::Subnet { cidr, name_servers } => {
            action_context.create_subnet(name, cidr, name_servers).await
        }
        ResourceSpec::Router { external_network } => {
            let external = site.external_network(external_network).await?;
            Ok(routers::create(site.session, name, Some(external)).await?.found())
        }
        ResourceSpec::RouterInterface => action_context.create_router_interface().await,
        ResourceSpec::SecurityGroup { .. } => action_context.create_security_group(name).await,
        ResourceSpec::ServerGroup { policy } => {
            let policy = Policy::from((*policy).to_owned());
            Ok(server_groups::create(site.session, name, &policy).await?.found())
        }
        ResourceSpec::Port { network, subnet, groups, allowed } => {
            let place = (network, subnet.as_ref());
            action_context.create_port(name, place, groups, allowed).await
        }
        ResourceSpec::LoadBalancer { provider, algorithm, listeners, allowed, members } => {
            let members = addresses(members, seen);
            let listener = |it| load_balancer::listener(it, algorithm, allowed, &members);
            let listeners = listeners.iter().map(listener).collect();
            load_balancer::create(action_context, (key, name), provider, listeners).await
        }
        ResourceSpec::FloatingIp { external_network, port } => {
            let external = site.external_network(external_network).await?;
            let port = id_of(port, seen)?;
            Ok(floating_ips::create(site.session, external, name, Some(port)).await?.found())
        }
        ResourceSpec::Record { zone, host, of } => {
            action_context.create_record(name, zone, host, &addresses(of, seen)).await
        }
        ResourceSpec::Volume { image, size, availability_zone } => {
            action_context.create_volume(name, image, *size, availability_zone.as_deref()).await
        }
        ResourceSpec::Server { .. } => server::create(action_context, (key, name, thing)).await,
        ResourceSpec::Credential => server::credential(action_context, key, name).await,
    }
}

impl ActionContext<'_> {
    async fn create_network(&self, name: &str) -> Created {
        let new = NewNetwork { name: name.to_owned(), description: self.of.tag(), mtu: None };
        Ok(networks::create(self.site.session, &new).await?.found())
    }

    async fn create_subnet(&self, name: &str, cidr: &Cidr, name_servers: &[IpAddr]) -> Created {
        let new = NewSubnet {
            name: name.to_owned(),
            network_id: id_of(&Key::Network, &self.seen)?.to_owned(),
            cidr: cidr.to_string(),
            dns_nameservers: name_servers.to_vec(),
        };
        Ok(subnets::create(self.site.session, &new).await?.found())
    }

    async fn create_router_interface(&self) -> Created {
        let router = id_of(&Key::Router, &self.seen)?;
        let subnet = id_of(&Key::Subnet, &self.seen)?;
        routers::add_subnet(self.site.session, router, subnet).await?;
        // The interface has a port with an id of its own, but router and subnet identify the interface too.
        Ok(CloudObject {
            id: format!("{router}:{subnet}"),
            state: CloudObjectState::Ready,
            address: None,
            facts: CloudObjectDetails::None,
        })
    }

    async fn create_security_group(&self, name: &str) -> Created {
        let group = security_groups::create(self.site.session, name, &self.of.tag()).await?;
        Ok(CloudObject { facts: CloudObjectDetails::Rules(BTreeSet::new()), ..group.found() })
    }

    async fn create_port(
        &self,
        name: &str,
        (network, subnet): (&Reference, Option<&Reference>),
        groups: &BTreeSet<Key>,
        allowed: &BTreeSet<Cidr>,
    ) -> Created {
        let groups: Result<Vec<String>> =
            groups.iter().map(|key| Ok(id_of(key, &self.seen)?.to_owned())).collect();
        let pair = |range: &Cidr| AddressPair { ip_address: range.to_string() };
        let new = NewPort {
            name: name.to_owned(),
            network_id: self.site.network(network, &self.seen).await?.to_owned(),
            subnet_id: match subnet {
                Some(subnet) => Some(self.site.subnet(subnet, &self.seen).await?.to_owned()),
                None => None,
            },
            address: None,
            // Without groups Octavia attaches its own security group to the VIP port.
            security_groups: Some(groups?).filter(|groups| !groups.is_empty()),
            allowed_address_pairs: allowed.iter().map(pair).collect(),
        };
        Ok(ports::create(self.site.session, &new).await?.found())
    }

    async fn create_record(
        &self,
        name: &str,
        zone: &str,
        host: &str,
        addresses: &BTreeSet<IpAddr>,
    ) -> Created {
        let zone = self.site.needed_zone(zone).await?;
        let new = NewRecordset {
            name: host.to_owned(),
            kind: "A".to_owned(),
            records: addresses.iter().map(IpAddr::to_string).collect(),
            description: name.to_owned(),
            ttl: Some(RECORD_TTL),
        };
        match recordsets::create(zone.session, zone.id, &new).await {
            Ok(made) => Ok(found::record(&made, false)),
            Err(error) if error.is_conflict() => {
                Err(CloudWorkError::NameTaken { host: host.to_owned() })
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn create_volume(
        &self,
        name: &str,
        image: &str,
        size: u32,
        availability_zone: Option<&str>,
    ) -> Created {
        let new = NewVolume {
            name: name.to_owned(),
            size: u64::from(size),
            kind: None,
            availability_zone: availability_zone.map(str::to_owned),
            source: Source::Image { id: image.to_owned() },
            metadata: BTreeMap::from([("bedplate".to_owned(), self.of.tag())]),
        };
        Ok(volumes::create(self.site.session, &new).await?.found())
    }
}

/// Returns the addresses of those of the objects that have one.
fn addresses(of: &BTreeSet<Key>, seen: &ClusterObservation) -> BTreeSet<IpAddr> {
    of.iter().filter_map(|key| seen.objects.get(key)?.address).collect()
}
