//! Performs a single action.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use cluster_core::{
    Action, ActionChange, CloudObject, CloudObjectDetails, CloudObjectState, IngressRule, Key,
    Kind, MemberName, MemberObservation, ResourceSpec,
};
use futures::future::try_join_all;
use openstack::block_storage::volumes;
use openstack::compute::{server_groups, servers};
use openstack::dns::recordsets;
use openstack::identity::application_credentials;
use openstack::load_balancer::{load_balancers, pools};
use openstack::network::security_groups::{self, Direction};
use openstack::network::{floating_ips, networks, ports, routers, subnets};

use super::action_context::ActionContext;
use super::create::create;
use super::load_balancer::{listener, members};
use super::load_balancer_parts::mend;
use crate::cloud::{CloudWorkError, Result, id_of, security};

pub(crate) type Outcome = Result<ActionChange>;

fn object((key, found): (Key, CloudObject)) -> ActionChange {
    ActionChange::Object(key, found)
}

fn machine_of((machine, said): (MemberName, MemberObservation)) -> ActionChange {
    ActionChange::Member(machine, said)
}

type Object = Result<(Key, CloudObject)>;

impl ActionContext<'_> {
    /// Performs `action`, and records the id of a created object.
    pub(crate) async fn perform(&self, action: Action) -> (Action, Outcome) {
        let outcome = match &action {
            Action::Create(key) => self.create(key).await.map(object),
            Action::SetRules(key) => self.set_rules(key).await.map(object),
            Action::SetAddresses(key, addresses) => {
                self.set_addresses(key, addresses).await.map(object)
            }
            Action::Delete(key) => self.delete(key).await.map(object),
            Action::Drain(machine) | Action::LeaveEtcd(machine) | Action::ForgetNode(machine) => {
                self.perform_on_node(&action, machine).await.map(machine_of)
            }
        };
        (action, outcome)
    }

    async fn perform_on_node(
        &self,
        action: &Action,
        machine: &MemberName,
    ) -> Result<(MemberName, MemberObservation)> {
        let nodes = self.nodes.ok_or(CloudWorkError::Silent)?;
        match action {
            Action::Drain(_) => nodes.drain(machine, &self.seen).await,
            Action::LeaveEtcd(_) => nodes.leave_etcd(machine, &self.seen).await,
            Action::ForgetNode(_)
            | Action::Create(_)
            | Action::SetRules(_)
            | Action::SetAddresses(..)
            | Action::Delete(_) => nodes.forget(machine, &self.seen).await,
        }
    }

    async fn create(&self, key: &Key) -> Object {
        let line =
            self.ledger.line(key).ok_or_else(|| CloudWorkError::DependencyMissing(key.clone()))?;
        let what = (key, line.name.as_str(), self.thing(key)?);
        let found = create(self, what).await?;
        if let Some(line) = self.ledger.created(key, &found.id) {
            self.store.save_ledger(&[line]).await?;
        }
        Ok((key.clone(), found))
    }

    async fn set_rules(&self, key: &Key) -> Object {
        let ResourceSpec::SecurityGroup { rules } = self.thing(key)? else {
            return Err(CloudWorkError::DependencyMissing(key.clone()));
        };
        let session = self.site.session;
        let found = self.found(key)?;
        let group = security_groups::show(session, &found.id).await?;
        let group = group.ok_or_else(|| CloudWorkError::DependencyMissing(key.clone()))?;
        let ids: BTreeMap<&str, Key> =
            self.seen.objects.iter().map(|(key, found)| (found.id.as_str(), key.clone())).collect();
        let inward = group.rules.iter().filter(|rule| rule.what.direction == Direction::Ingress);
        let has: Vec<_> = inward.map(|rule| (&rule.id, security::read(&rule.what, &ids))).collect();
        let is_missing =
            |rule: &&IngressRule| !has.iter().any(|(_, it)| it.as_ref() == Some(*rule));
        try_join_all(rules.iter().filter(is_missing).map(|rule| self.allow(key, rule))).await?;
        for (id, rule) in &has {
            if rule.as_ref().is_none_or(|rule| !rules.contains(rule)) {
                security_groups::remove_rule(session, id).await?;
            }
        }
        Ok((
            key.clone(),
            CloudObject { facts: CloudObjectDetails::Rules(rules.clone()), ..found.clone() },
        ))
    }

    /// Adds a rule to the security group `key`.
    async fn allow(&self, key: &Key, rule: &IngressRule) -> Result<()> {
        let id = |key: &Key| id_of(key, &self.seen).ok().map(str::to_owned);
        let pass = security::write(rule, id)
            .ok_or_else(|| CloudWorkError::DependencyMissing(key.clone()))?;
        Ok(security_groups::allow(self.site.session, &self.found(key)?.id, &pass).await?)
    }

    async fn set_addresses(&self, key: &Key, addresses: &BTreeSet<IpAddr>) -> Object {
        let session = self.site.session;
        let found = self.found(key)?;
        match self.thing(key)? {
            ResourceSpec::LoadBalancer { listeners, algorithm, allowed, .. } => {
                let working = || {
                    (key.clone(), CloudObject { state: CloudObjectState::Working, ..found.clone() })
                };
                for of in listeners.iter().filter(|_| is_doubtful(&found.facts)) {
                    let wanted = listener(of, algorithm, allowed, addresses);
                    if mend(session, &found.id, &wanted).await? {
                        return Ok(working());
                    }
                }
                for listener in listeners {
                    for pool in pools::find(session, &found.id, listener.name).await? {
                        let has = pools::members(session, &pool.id).await?;
                        let has: BTreeSet<IpAddr> = has.iter().map(|it| it.address).collect();
                        if has == *addresses {
                            continue;
                        }
                        let wanted = members(listener, addresses);
                        pools::set_members(session, &pool.id, &wanted).await?;
                        // Octavia locks the load balancer during a change, so the next pool waits for the next turn.
                        return Ok(working());
                    }
                }
                // All parts of the cluster are as they should be. Listeners and pools of others differ, and stay.
                let facts = CloudObjectDetails::Addresses(addresses.clone());
                return Ok((key.clone(), CloudObject { facts, ..found.clone() }));
            }
            ResourceSpec::Record { zone, .. } => {
                let zone = self.site.needed_zone(zone).await?;
                let records: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
                recordsets::set_records(zone.session, zone.id, &found.id, &records).await?;
            }
            ResourceSpec::Network
            | ResourceSpec::Subnet { .. }
            | ResourceSpec::Router { .. }
            | ResourceSpec::RouterInterface
            | ResourceSpec::SecurityGroup { .. }
            | ResourceSpec::ServerGroup { .. }
            | ResourceSpec::Port { .. }
            | ResourceSpec::FloatingIp { .. }
            | ResourceSpec::Server { .. }
            | ResourceSpec::Volume { .. }
            | ResourceSpec::Credential => {
                return Err(CloudWorkError::DependencyMissing(key.clone()));
            }
        }
        Ok((key.clone(), CloudObject { state: CloudObjectState::Working, ..found.clone() }))
    }

    /// Requests a delete. The ledger entry stays until the cloud no longer has the object.
    async fn delete(&self, key: &Key) -> Object {
        let session = self.site.session;
        let found = self.found(key)?;
        let id = &found.id;
        match key.kind() {
            Kind::Network => networks::delete(session, id).await?,
            Kind::Subnet => subnets::delete(session, id).await?,
            Kind::Router => routers::delete(session, id).await?,
            Kind::RouterInterface => {
                let (router, subnet) =
                    (&self.found(&Key::Router)?.id, &self.found(&Key::Subnet)?.id);
                routers::remove_subnet(session, router, subnet).await?;
            }
            Kind::SecurityGroup => security_groups::delete(session, id).await?,
            Kind::ServerGroup => server_groups::delete(session, id).await?,
            Kind::Port => ports::delete(session, id).await?,
            Kind::LoadBalancer => load_balancers::delete(session, id).await?,
            Kind::FloatingIp => floating_ips::delete(session, id).await?,
            Kind::Record => {
                // A record set is observed only in an existing zone.
                let zone = self
                    .site
                    .zone()
                    .await?
                    .ok_or_else(|| CloudWorkError::DependencyMissing(key.clone()))?;
                recordsets::delete(zone.session, zone.id, id).await?;
            }
            Kind::Server => servers::delete(session, id).await?,
            Kind::Credential => application_credentials::delete(session, id).await?,
            Kind::ServiceBalancer => load_balancers::delete(session, id).await?,
            Kind::Volume | Kind::RootVolume => volumes::delete(session, id).await?,
        }
        Ok((key.clone(), CloudObject { state: CloudObjectState::Deleting, ..found.clone() }))
    }
}

/// Whether parts of a load balancer may be missing or stuck: the observation found no common set of members, or no member.
fn is_doubtful(facts: &CloudObjectDetails) -> bool {
    match facts {
        CloudObjectDetails::Addresses(members) => members.is_empty(),
        CloudObjectDetails::None | CloudObjectDetails::Rules(_) | CloudObjectDetails::Server(_) => {
            true
        }
    }
}
