//! Tries to make the configs of a new cluster with made-up addresses, keys and tokens. The API thus accepts only clusters whose configs
//! can be made.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use cluster_bootstrap::{BootstrapToken, CertificateAuthority, KeyPair, Pki, inline};
use cluster_core::{
    BalancerPurpose, CloudObject, CloudObjectDetails as KeyFacts, CloudObjectState, Cluster,
    ClusterObservation, ClusterSpec, Delivery, GroupRole, Key, MemberName, NodeGroup,
};
use ipnet::IpNet;

use super::facts::{Founder, MemberFacts, masters, outside, placed};
use super::{MemberConfigError, Result, config};
use crate::settings::MachineSettings;

/// The length of an elliptic curve key or certificate in PEM.
const PEM_LENGTH: usize = 900;

/// Tries to make the config of one member per group, and returns the first error.
///
/// A clusterd without any Kubernetes version accepts every cluster: the clusters wait until an administrator configures a version.
pub(crate) fn check_member_configs(
    machines: &MachineSettings,
    cluster: &Cluster,
    groups: &[NodeGroup],
) -> Result<()> {
    if machines.kubernetes.versions.is_empty() {
        return Ok(());
    }
    let groups: Vec<NodeGroup> = groups.iter().map(populated).collect();
    let spec = ClusterSpec { cluster, groups: &groups };
    let seen = made_up(&spec);
    let shape = cluster_core::desired_objects(&spec);
    let founder =
        |machine: MemberName| Ok(Founder { placed: placed(&machine, &shape, &seen)?, machine });
    let founders = masters(&spec).map(founder).collect::<Result<Vec<_>>>()?;
    for group in &groups {
        let delivery = group.labels.settings().delivery;
        if delivery == Delivery::Claim && machines.nodes.is_none() {
            return Err(MemberConfigError::NoListener);
        }
        // A control-plane member founds the control plane, or joins it as a replacement.
        let parts: &[&[Founder]] = match group.role {
            GroupRole::Master => &[&founders, &[]],
            GroupRole::Worker(_) => &[&founders],
        };
        let Some(machine) = group.refs().next() else { continue };
        for founders in parts {
            let facts = MemberFacts::gather(&spec, &machine, &seen, founders)?;
            let names = outside(&spec, Some(&seen))?;
            let public = (&facts, names.as_slice());
            let kubernetes = &machines.kubernetes;
            let config = config::compose(kubernetes, &spec, &machine, public, (token(), pki()))?;
            if delivery == Delivery::Inline {
                inline(&config).map_err(MemberConfigError::TooLong)?;
            }
        }
    }
    Ok(())
}

/// Returns the group with at least one member, and without the replacements that exist beside their members during an upgrade: founders are
/// 1, 3 or 5.
fn populated(group: &NodeGroup) -> NodeGroup {
    let mut group = group.clone();
    for new in std::mem::take(&mut group.replacing).into_values() {
        group.machines.remove(&new);
    }
    if group.machines.is_empty() {
        group.add_machine();
    }
    group
}

/// Makes an observation in which every object with an address has one.
fn made_up(spec: &ClusterSpec<'_>) -> ClusterObservation {
    let settings = spec.cluster.blueprint.labels.settings();
    let mut seen = ClusterObservation::default();
    let firsts = spec.groups.iter().filter_map(|group| group.refs().next());
    let machines: Vec<MemberName> = masters(spec).chain(firsts).collect();
    let inside = [Key::VipPort(BalancerPurpose::Api), Key::Router].into_iter();
    let inside = inside.chain(machines.iter().cloned().map(Key::Port));
    let first = IpNet::from(settings.node_cidr).addr();
    for (number, key) in (1..).zip(inside) {
        seen.objects.insert(key, found(after(first, number)));
    }
    // TEST-NET-3: unlikely to overlap a range of the cluster, and compared with nothing.
    let outside = [Key::BalancerAddress(BalancerPurpose::Api)].into_iter();
    let outside = outside.chain(machines.into_iter().map(Key::MachineAddress));
    for (number, key) in (1..).zip(outside) {
        seen.objects.insert(key, found(after([203, 0, 113, 0].into(), number)));
    }
    seen
}

fn found(address: IpAddr) -> CloudObject {
    let id = address.to_string();
    CloudObject {
        id,
        state: CloudObjectState::Ready,
        address: Some(address),
        facts: KeyFacts::None,
    }
}

fn after(address: IpAddr, number: u32) -> IpAddr {
    match address {
        IpAddr::V4(four) => Ipv4Addr::from(u32::from(four).wrapping_add(number)).into(),
        IpAddr::V6(six) => Ipv6Addr::from(u128::from(six).wrapping_add(number.into())).into(),
    }
}

fn token() -> BootstrapToken {
    BootstrapToken::try_from("abcdef.0123456789abcdef").expect("it has the form of a token")
}

fn pki() -> Pki {
    let pem = || "A".repeat(PEM_LENGTH);
    let authority = || CertificateAuthority {
        certificate: pem(),
        key: pem().into(),
        public_key_sha256: "0".repeat(64),
    };
    Pki {
        cluster: authority(),
        etcd: authority(),
        front_proxy: authority(),
        service_account: KeyPair { public: pem(), private: pem().into() },
    }
}
