//! Whose objects a turn is about.

use cluster_core::{ClusterSpec, Vm, tag, vm_tag};

/// Whose objects a turn is about. Both are made of the same kinds of object, by the same machinery.
#[derive(Clone, Copy)]
pub(crate) enum Of<'a> {
    /// A cluster's.
    Cluster(&'a ClusterSpec<'a>),
    /// A person's machine's.
    Vm(&'a Vm),
}

impl Of<'_> {
    /// What its objects are tagged with.
    pub(crate) fn tag(self) -> String {
        match self {
            Of::Cluster(spec) => tag(spec.cluster.id),
            Of::Vm(vm) => vm_tag(vm.id),
        }
    }
}
