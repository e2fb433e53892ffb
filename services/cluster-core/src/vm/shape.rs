//! The desired objects of a VM: every cloud object that it should have.

use std::collections::BTreeSet;

use crate::{
    Cidr, Desire, Key, MachineRef, Named, Object, Peer, Protocol, Reference, Role, Rule, Shape,
    Thing, VmUuid,
};

use super::Vm;

/// The range of every IPv4 address.
const ANYWHERE: Cidr = Cidr::v4([0, 0, 0, 0], 0);

/// The member name in the [`Key`]s of a VM's objects. A VM has a single server.
pub type VmMachine = MachineRef;

/// Returns the member name of the single server.
pub fn vm_machine() -> VmMachine {
    let group = "vm".parse().expect("it begins with a letter, and has nothing else");
    MachineRef { group, number: 0 }
}

/// Returns the tag of all cloud objects of a VM. At most 60 characters, Nova's limit.
pub fn vm_tag(vm: VmUuid) -> String {
    format!("bedplate-vm={vm}")
}

/// Returns the security group rules of a VM: SSH and ping from everywhere.
fn rules() -> BTreeSet<Rule> {
    let from = || Peer::Range(ANYWHERE);
    BTreeSet::from([
        Rule { protocol: Protocol::Icmp, ports: None, from: from() },
        Rule { protocol: Protocol::Tcp, ports: Some((22, 22)), from: from() },
    ])
}

/// Computes every object that should exist for `vm`. Empty when the VM is to be deleted.
pub fn vm_shape(vm: &Vm) -> Shape {
    let mut shape = Shape::new();
    if vm.desire == Desire::Gone {
        return shape;
    }
    let id = vm.id.to_string();
    // The name becomes the server's host name, so it is one DNS label.
    let stem = format!("{}-{}", vm.name.label(40), id.get(..8).unwrap_or(&id));
    let mut add = |key: Key, thing: Thing, needs: &[Key]| {
        let name = if matches!(key, Key::Server(_)) {
            stem.clone()
        } else {
            // The full id keeps the name unique, whatever other objects are called.
            format!("{stem}/{id}/{key}")
        };
        shape.insert(key, Object { name, thing, needs: needs.iter().cloned().collect() });
    };
    let machine = vm_machine();
    let group = Key::SecurityGroup(Role::Node);
    let port = Key::Port(machine.clone());
    let address = Key::MachineAddress(machine.clone());
    add(group.clone(), Thing::SecurityGroup { rules: rules() }, &[]);
    let thing = Thing::Port {
        network: Reference::Given(vm.network.clone()),
        subnet: None,
        groups: BTreeSet::from([group.clone()]),
        allowed: BTreeSet::new(),
    };
    add(port.clone(), thing, std::slice::from_ref(&group));
    if let Some(external_network) = vm.public.clone() {
        let thing = Thing::FloatingIp { external_network, port: port.clone() };
        add(address.clone(), thing, std::slice::from_ref(&port));
    }
    let mut needs = vec![port.clone()];
    if let Some(size) = vm.root_volume {
        let (image, availability_zone) = (vm.image.id.clone(), vm.availability_zone.clone());
        add(Key::RootVolume, Thing::Volume { image, size, availability_zone }, &[]);
        needs.push(Key::RootVolume);
    }
    let thing = Thing::Server {
        image: vm.image.id.clone(),
        flavor: Some(vm.flavor.id.clone()),
        keypair: None,
        availability_zone: vm.availability_zone.clone(),
        disks: Vec::new(),
    };
    add(Key::Server(machine.clone()), thing, &needs);
    if let (Some(host), Some(zone)) = (vm.host(), vm.zone_name()) {
        let of = if vm.public.is_some() { address } else { port };
        let thing =
            Thing::Record { zone, host: format!("{host}."), of: BTreeSet::from([of.clone()]) };
        add(Key::Record(Named::Machine(machine)), thing, &[of]);
    }
    shape
}
