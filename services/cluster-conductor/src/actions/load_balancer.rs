//! Creates load balancers, each with its listeners, pools and members in one request.

use std::collections::BTreeSet;
use std::net::IpAddr;

use cluster_core::{Cidr, CloudObject, Key, Listener};
use openstack::load_balancer::listeners::NewListener;
use openstack::load_balancer::load_balancers::{self, NewLoadBalancer};
use openstack::load_balancer::monitors::NewMonitor;
use openstack::load_balancer::pools::{NewMember, NewPool};

use super::action_context::ActionContext;
use crate::cloud::found::Listed;
use crate::cloud::{CloudWorkError, Result, id_of};

/// Creates the load balancer `key` under `name`, on its VIP port.
pub(super) async fn create(
    action_context: &ActionContext<'_>,
    (key, name): (&Key, &str),
    provider: &Option<String>,
    listeners: Vec<NewListener>,
) -> Result<CloudObject> {
    let Key::LoadBalancer(of) = key else {
        return Err(CloudWorkError::DependencyMissing(key.clone()));
    };
    let about = action_context.of.tag();
    let new = NewLoadBalancer {
        name: name.to_owned(),
        description: about.clone(),
        vip_port_id: Some(id_of(&Key::VipPort(*of), &action_context.seen)?.to_owned()),
        provider: provider.clone(),
        tags: vec![about],
        listeners,
        ..NewLoadBalancer::default()
    };
    Ok(load_balancers::create(action_context.site.session, &new).await?.found())
}

/// Returns a listener with its pool. Clients connect from the ranges `allowed`, or from anywhere when there are none.
pub(super) fn listener(
    listener: &Listener,
    algorithm: &str,
    allowed: &[Cidr],
    addresses: &BTreeSet<IpAddr>,
) -> NewListener {
    NewListener {
        name: listener.name.to_owned(),
        protocol: "TCP".to_owned(),
        protocol_port: listener.port,
        allowed_cidrs: allowed.iter().map(ToString::to_string).collect(),
        timeout_client_data: Some(listener.idle_timeout_ms),
        timeout_member_data: Some(listener.idle_timeout_ms),
        default_pool: Some(pool(listener, algorithm, addresses)),
    }
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
pub(super) fn members(listener: &Listener, addresses: &BTreeSet<IpAddr>) -> Vec<NewMember> {
    let member = |address: &IpAddr| NewMember {
        name: String::new(),
        address: *address,
        protocol_port: listener.port,
        subnet_id: None,
    };
    addresses.iter().map(member).collect()
}
