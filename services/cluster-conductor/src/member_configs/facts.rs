//! The facts that distinguish a member's config from those of other members, known before its server exists. No fact is secret.

use std::net::IpAddr;

use cluster_core::{
    BackupUuid, BalancerPurpose, ClusterObservation, ClusterSpec, DesiredObjects, GroupRole, Key,
    MemberName, NodeGroup, ResourceSpec, api_name, api_name_for_members, desired_objects,
};
use serde::{Deserialize, Serialize};

use super::{MemberConfigError, Result};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MemberFacts {
    pub(crate) own: NamedAddress,
    pub(crate) part: BootstrapRole,
    /// The address or DNS name at which members reach the API.
    pub(crate) endpoint: String,
    /// The control plane: for a founding member the founding members, otherwise the members that should exist. In a restoration all members
    /// found the control plane again.
    pub(crate) control_plane: Vec<NamedAddress>,
    /// The external address of the cluster's router, from which requests of the members come.
    pub(crate) router: Option<IpAddr>,
    /// The purposes of the volumes that the server is created with.
    #[serde(default)]
    pub(crate) volumes: Vec<String>,
    /// Whether the member joins a control plane that gets another version of Kubernetes.
    #[serde(default)]
    pub(crate) upgrades: bool,
    /// The backup from which the member's etcd starts, in a restoration.
    #[serde(default)]
    pub(crate) starts_from: Option<BackupUuid>,
}

/// The name and the address of a member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NamedAddress {
    /// The name of the server, which becomes the host name and the node name.
    pub(crate) name: String,
    /// The address of the port.
    pub(crate) address: IpAddr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum BootstrapRole {
    /// A member of the first control plane.
    Founds,
    /// An additional control-plane member.
    JoinsControlPlane,
    /// A worker.
    Works,
}

/// A founding member.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Founder {
    pub(crate) machine: MemberName,
    /// The name and the address that the other founding members were told.
    pub(crate) placed: NamedAddress,
}

impl MemberFacts {
    /// Collects the facts: names from the desired objects, addresses from the observation.
    pub(crate) fn gather(
        spec: &ClusterSpec<'_>,
        machine: &MemberName,
        seen: &ClusterObservation,
        founders: &[Founder],
    ) -> Result<Self> {
        let shape = desired_objects(spec);
        let backup = spec.cluster.starts_from();
        let part = match group_of(spec, machine)?.role {
            GroupRole::Worker(_) => BootstrapRole::Works,
            GroupRole::Master if backup.is_some() => BootstrapRole::Founds,
            GroupRole::Master if founders.iter().any(|it| it.machine == *machine) => {
                BootstrapRole::Founds
            }
            GroupRole::Master => BootstrapRole::JoinsControlPlane,
        };
        let control_plane: Vec<NamedAddress> = match part {
            BootstrapRole::Founds if backup.is_some() => {
                let placed = |it: MemberName| placed(&it, &shape, seen);
                masters(spec).map(placed).collect::<Result<_, _>>()?
            }
            // A founding member that was deleted since is listed with the name and address that the other founders know.
            BootstrapRole::Founds => {
                let now = |it: &Founder| placed(&it.machine, &shape, seen);
                founders.iter().map(|it| now(it).unwrap_or_else(|_| it.placed.clone())).collect()
            }
            BootstrapRole::JoinsControlPlane | BootstrapRole::Works => {
                let placed = |it: MemberName| placed(&it, &shape, seen);
                masters(spec).map(placed).collect::<Result<_, _>>()?
            }
        };
        let endpoint = if spec.cluster.blueprint.master_lb_enabled {
            address(&Key::VipPort(BalancerPurpose::Api), seen)?.to_string()
        } else if let Some(name) = api_name_for_members(spec) {
            name
        } else {
            let first = control_plane.first().map(|it| it.address.to_string());
            first.ok_or_else(|| MemberConfigError::NoMachine(machine.clone()))?
        };
        let router = seen.objects.get(&Key::Router).and_then(|found| found.address);
        let own = placed(machine, &shape, seen)?;
        let volumes = volumes(machine, &shape);
        let starts_from = backup.filter(|_| part == BootstrapRole::Founds);
        let roll = spec.cluster.roll.as_ref();
        let is_upgrade = roll.is_some_and(|it| it.upgrades_control_plane(spec.cluster.kubernetes));
        let upgrades = part == BootstrapRole::JoinsControlPlane && is_upgrade;
        Ok(MemberFacts {
            own,
            part,
            endpoint,
            control_plane,
            router,
            volumes,
            upgrades,
            starts_from,
        })
    }
}

/// Returns the additional names and addresses of the API for its certificates. Floating IPs that the cluster should have must be known.
pub(crate) fn outside(
    spec: &ClusterSpec<'_>,
    seen: Option<&ClusterObservation>,
) -> Result<Vec<String>> {
    let (cluster, blueprint) = (spec.cluster, &spec.cluster.blueprint);
    let seen = |key: &Key| seen.and_then(|seen| seen.objects.get(key)?.address);
    let mut names: Vec<String> = api_name(cluster).into_iter().collect();
    if blueprint.master_lb_enabled && blueprint.has_floating_balancer() {
        let key = Key::BalancerAddress(BalancerPurpose::Api);
        let known = seen(&key).or_else(|| host(cluster.api_address.as_deref()?));
        names.push(known.ok_or(MemberConfigError::Waits(key))?.to_string());
    }
    if blueprint.has_floating_machines() {
        for machine in masters(spec) {
            let known = cluster.machine_addresses.get(&machine).copied();
            let key = Key::MachineAddress(machine);
            let known = seen(&key).or(known);
            names.push(known.ok_or(MemberConfigError::Waits(key))?.to_string());
        }
    }
    Ok(names)
}

pub(crate) fn group_of<'a>(spec: &ClusterSpec<'a>, machine: &MemberName) -> Result<&'a NodeGroup> {
    let of = |group: &&NodeGroup| {
        group.name == machine.group && group.machines.contains(&machine.number)
    };
    spec.groups.iter().find(of).ok_or_else(|| MemberConfigError::NoMachine(machine.clone()))
}

/// Returns the control-plane members.
pub(crate) fn masters<'a>(spec: &ClusterSpec<'a>) -> impl Iterator<Item = MemberName> + 'a {
    let of_role = spec.groups.iter().filter(|group| group.role == GroupRole::Master);
    of_role.flat_map(NodeGroup::refs)
}

/// Returns the name and the address of a member.
pub(crate) fn placed(
    machine: &MemberName,
    shape: &DesiredObjects,
    seen: &ClusterObservation,
) -> Result<NamedAddress> {
    let server = shape.get(&Key::Server(machine.clone()));
    let name = server.ok_or_else(|| MemberConfigError::NoMachine(machine.clone()))?.name.clone();
    Ok(NamedAddress { name, address: address(&Key::Port(machine.clone()), seen)? })
}

/// Returns the purposes of the member's volumes.
fn volumes(machine: &MemberName, shape: &DesiredObjects) -> Vec<String> {
    let server = shape.get(&Key::Server(machine.clone())).map(|object| &object.thing);
    let Some(ResourceSpec::Server { disks, .. }) = server else { return Vec::new() };
    disks.iter().map(|disk| disk.purpose.to_owned()).collect()
}

fn address(key: &Key, seen: &ClusterObservation) -> Result<IpAddr> {
    let found = seen.objects.get(key).and_then(|found| found.address);
    found.ok_or_else(|| MemberConfigError::Waits(key.clone()))
}

/// Returns the address in `https://ADDRESS:PORT`.
fn host(url: &str) -> Option<IpAddr> {
    let (host, _) = url.strip_prefix("https://")?.rsplit_once(':')?;
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}
