//! What is known of a machine before it exists, and makes its config different from its neighbours'. Nothing of it is
//! secret.

use std::net::IpAddr;

use cluster_core::{
    Balancer, ClusterSpec, GroupRole, Key, MachineRef, NodeGroup, Seen, Shape, Thing, api_name,
    api_name_of_machines, shape,
};
use serde::{Deserialize, Serialize};

use super::MachinesError;
use super::founding::Founder;

/// What is known of a machine before it exists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Facts {
    /// Who it is.
    pub(crate) own: Placed,
    /// What it does.
    pub(crate) part: Part,
    /// At which address, or by which name, machines find the API.
    pub(crate) endpoint: String,
    /// The control plane: its founders, for one of them; else those that are to be there.
    pub(crate) control_plane: Vec<Placed>,
    /// What the world sees of those behind the cluster's router.
    pub(crate) router: Option<IpAddr>,
    /// What the volumes of its own are for that its server is asked for with.
    #[serde(default)]
    pub(crate) volumes: Vec<String>,
}

/// A machine's name and its port's address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Placed {
    /// Its server's name, which becomes its host's and its node's.
    pub(crate) name: String,
    /// Its port's address.
    pub(crate) address: IpAddr,
}

/// What a machine does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Part {
    /// It is one of those that make the control plane.
    Founds,
    /// It becomes one more of the control plane.
    JoinsControlPlane,
    /// It runs pods.
    Works,
}

impl Facts {
    /// Takes names from the cluster's shape and addresses from what was seen.
    pub(crate) fn gather(
        spec: &ClusterSpec<'_>,
        machine: &MachineRef,
        seen: &Seen,
        founders: &[Founder],
    ) -> Result<Self, MachinesError> {
        let shape = shape(spec);
        let part = match group_of(spec, machine)?.role {
            GroupRole::Worker(_) => Part::Works,
            GroupRole::Master if founders.iter().any(|it| it.machine == *machine) => Part::Founds,
            GroupRole::Master => Part::JoinsControlPlane,
        };
        let control_plane: Vec<Placed> = match part {
            // One that is gone by now is named to the others as it was to its fellows.
            Part::Founds => {
                let now = |it: &Founder| placed(&it.machine, &shape, seen);
                founders.iter().map(|it| now(it).unwrap_or_else(|_| it.placed.clone())).collect()
            }
            Part::JoinsControlPlane | Part::Works => {
                let placed = |it: MachineRef| placed(&it, &shape, seen);
                masters(spec).map(placed).collect::<Result<_, _>>()?
            }
        };
        let endpoint = if spec.cluster.blueprint.master_lb_enabled {
            address(&Key::VipPort(Balancer::Api), seen)?.to_string()
        } else if let Some(name) = api_name_of_machines(spec) {
            name
        } else {
            let first = control_plane.first().map(|it| it.address.to_string());
            first.ok_or_else(|| MachinesError::NoMachine(machine.clone()))?
        };
        let router = seen.objects.get(&Key::Router).and_then(|found| found.address);
        let own = placed(machine, &shape, seen)?;
        let volumes = volumes(machine, &shape);
        Ok(Facts { own, part, endpoint, control_plane, router, volumes })
    }
}

/// The names and addresses by which the API is reached besides: as far as they are to be there, they have to be known.
pub(crate) fn outside(
    spec: &ClusterSpec<'_>,
    seen: Option<&Seen>,
) -> Result<Vec<String>, MachinesError> {
    let (cluster, blueprint) = (spec.cluster, &spec.cluster.blueprint);
    let seen = |key: &Key| seen.and_then(|seen| seen.objects.get(key)?.address);
    let mut names: Vec<String> = api_name(cluster).into_iter().collect();
    if blueprint.master_lb_enabled && blueprint.has_floating_balancer() {
        let key = Key::BalancerAddress(Balancer::Api);
        let known = seen(&key).or_else(|| host(cluster.api_address.as_deref()?));
        names.push(known.ok_or(MachinesError::Waits(key))?.to_string());
    }
    if blueprint.has_floating_machines() {
        for machine in masters(spec) {
            let known = cluster.machine_addresses.get(&machine).copied();
            let key = Key::MachineAddress(machine);
            let known = seen(&key).or(known);
            names.push(known.ok_or(MachinesError::Waits(key))?.to_string());
        }
    }
    Ok(names)
}

/// The group that a machine is of.
pub(crate) fn group_of<'a>(
    spec: &ClusterSpec<'a>,
    machine: &MachineRef,
) -> Result<&'a NodeGroup, MachinesError> {
    let of = |group: &&NodeGroup| {
        group.name == machine.group && group.machines.contains(&machine.number)
    };
    spec.groups.iter().find(of).ok_or_else(|| MachinesError::NoMachine(machine.clone()))
}

/// The machines of the control plane.
pub(crate) fn masters<'a>(spec: &ClusterSpec<'a>) -> impl Iterator<Item = MachineRef> + 'a {
    let of_role = spec.groups.iter().filter(|group| group.role == GroupRole::Master);
    of_role.flat_map(NodeGroup::refs)
}

/// A machine's name, and where it is.
pub(crate) fn placed(
    machine: &MachineRef,
    shape: &Shape,
    seen: &Seen,
) -> Result<Placed, MachinesError> {
    let server = shape.get(&Key::Server(machine.clone()));
    let name = server.ok_or_else(|| MachinesError::NoMachine(machine.clone()))?.name.clone();
    Ok(Placed { name, address: address(&Key::Port(machine.clone()), seen)? })
}

/// What the machine's volumes are for.
fn volumes(machine: &MachineRef, shape: &Shape) -> Vec<String> {
    let server = shape.get(&Key::Server(machine.clone())).map(|object| &object.thing);
    let Some(Thing::Server { disks, .. }) = server else { return Vec::new() };
    disks.iter().map(|disk| disk.purpose.to_owned()).collect()
}

fn address(key: &Key, seen: &Seen) -> Result<IpAddr, MachinesError> {
    let found = seen.objects.get(key).and_then(|found| found.address);
    found.ok_or_else(|| MachinesError::Waits(key.clone()))
}

/// The address in `https://ADDRESS:PORT`.
fn host(url: &str) -> Option<IpAddr> {
    let (host, _) = url.strip_prefix("https://")?.rsplit_once(':')?;
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}
