//! The owner of cloud objects.

use crate::{ClusterSpec, Vm, tag, vm_tag};

/// The owner of the objects of a turn. Clusters and VMs have the same kinds of objects, which the same code creates.
#[derive(Clone, Copy, Debug)]
pub enum ObjectOwner<'a> {
    Cluster(&'a ClusterSpec<'a>),
    Vm(&'a Vm),
}

impl ObjectOwner<'_> {
    /// Returns the tag of the owner's objects.
    pub fn tag(self) -> String {
        match self {
            ObjectOwner::Cluster(spec) => tag(spec.cluster.id),
            ObjectOwner::Vm(vm) => vm_tag(vm.id),
        }
    }
}
