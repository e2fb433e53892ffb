//! The desired objects of a VM: every cloud object that it should have.

use std::collections::BTreeSet;

use crate::{
    Cidr, DesiredObject, DesiredObjects, DesiredState, DnsName, IngressRule, Key, MemberName,
    Protocol, Reference, ResourceSpec, RuleSource, SecurityGroupRole, VmUuid,
};

use super::Vm;

/// The range of every IPv4 address.
const ANYWHERE: Cidr = Cidr::v4([0, 0, 0, 0], 0);

/// The member name in the [`Key`]s of a VM's objects. A VM has a single server.
pub type VmMachine = MemberName;

/// Returns the member name of the single server.
pub fn vm_machine() -> VmMachine {
    let group = "vm".parse().expect("it begins with a letter, and has nothing else");
    MemberName { group, number: 0 }
}

/// Returns the tag of all cloud objects of a VM. At most 60 characters, Nova's limit.
pub fn vm_tag(vm: VmUuid) -> String {
    format!("bedplate-vm={vm}")
}

/// Returns the security group rules of a VM: SSH and ping from everywhere.
fn rules() -> BTreeSet<IngressRule> {
    let from = || RuleSource::Range(ANYWHERE);
    BTreeSet::from([
        IngressRule { protocol: Protocol::Icmp, ports: None, from: from() },
        IngressRule { protocol: Protocol::Tcp, ports: Some((22, 22)), from: from() },
    ])
}

/// Computes every object that should exist for `vm`. Empty when the VM is to be deleted.
pub fn vm_desired_objects(vm: &Vm) -> DesiredObjects {
    let mut shape = DesiredObjects::new();
    if vm.desire == DesiredState::Gone {
        return shape;
    }
    let id = vm.id.to_string();
    // The name becomes the server's host name, so it is one DNS label.
    let stem = format!("{}-{}", vm.name.label(40), id.get(..8).unwrap_or(&id));
    let mut add = |key: Key, thing: ResourceSpec, needs: &[Key]| {
        let name = if matches!(key, Key::Server(_)) {
            stem.clone()
        } else {
            // The full id keeps the name unique, whatever other objects are called.
            format!("{stem}/{id}/{key}")
        };
        shape.insert(key, DesiredObject { name, thing, needs: needs.iter().cloned().collect() });
    };
    let machine = vm_machine();
    let group = Key::SecurityGroup(SecurityGroupRole::Node);
    let port = Key::Port(machine.clone());
    let address = Key::MachineAddress(machine.clone());
    add(group.clone(), ResourceSpec::SecurityGroup { rules: rules() }, &[]);
    let thing = ResourceSpec::Port {
        network: Reference::Given(vm.network.clone()),
        subnet: None,
        groups: BTreeSet::from([group.clone()]),
        allowed: BTreeSet::new(),
    };
    add(port.clone(), thing, std::slice::from_ref(&group));
    if let Some(external_network) = vm.public.clone() {
        let thing = ResourceSpec::FloatingIp { external_network, port: port.clone() };
        add(address.clone(), thing, std::slice::from_ref(&port));
    }
    let mut needs = vec![port.clone()];
    if let Some(size) = vm.root_volume {
        let (image, availability_zone) = (vm.image.id.clone(), vm.availability_zone.clone());
        add(Key::RootVolume, ResourceSpec::Volume { image, size, availability_zone }, &[]);
        needs.push(Key::RootVolume);
    }
    let thing = ResourceSpec::Server {
        image: vm.image.id.clone(),
        flavor: Some(vm.flavor.id.clone()),
        keypair: None,
        availability_zone: vm.availability_zone.clone(),
        disks: Vec::new(),
    };
    add(Key::Server(machine.clone()), thing, &needs);
    if let (Some(host), Some(zone)) = (vm.host(), vm.zone_name()) {
        let of = if vm.public.is_some() { address } else { port };
        let thing = ResourceSpec::Record {
            zone,
            host: format!("{host}."),
            of: BTreeSet::from([of.clone()]),
        };
        add(Key::Record(DnsName::Machine(machine)), thing, &[of]);
    }
    shape
}
