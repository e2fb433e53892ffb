//! What is counted of what clusterd makes.

use std::fmt;
use std::ops::{AddAssign, Index, IndexMut};

use serde::Serialize;

/// Something of which there may be a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Clusters.
    Clusters,
    /// Machines of clusters.
    Nodes,
    /// Machines of people.
    Vms,
    /// Processors of their flavors.
    Vcpus,
    /// Memory of their flavors, in MiB.
    RamMib,
    /// Disks of their flavors, and volumes that come and go with them, in GiB.
    DiskGib,
    /// GPUs of their flavors.
    Gpus,
    /// Floating addresses.
    FloatingIps,
    /// How long something may be lent, in seconds: the only one that is not summed up.
    LeaseSeconds,
}

impl Resource {
    /// All, in the order they are told in.
    pub const ALL: [Resource; 9] = [
        Resource::Clusters,
        Resource::Nodes,
        Resource::Vms,
        Resource::Vcpus,
        Resource::RamMib,
        Resource::DiskGib,
        Resource::Gpus,
        Resource::FloatingIps,
        Resource::LeaseSeconds,
    ];

    /// Those that are summed up.
    pub const SUMMED: usize = Resource::ALL.len() - 1;

    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Resource::Clusters => "clusters",
            Resource::Nodes => "nodes",
            Resource::Vms => "vms",
            Resource::Vcpus => "vcpus",
            Resource::RamMib => "ram_mib",
            Resource::DiskGib => "disk_gib",
            Resource::Gpus => "gpus",
            Resource::FloatingIps => "floating_ips",
            Resource::LeaseSeconds => "lease_seconds",
        }
    }

    /// What was written so.
    pub fn read(raw: &str) -> Option<Resource> {
        Resource::ALL.into_iter().find(|it| it.as_str() == raw)
    }

    /// Those of which `Amounts` says how much there is.
    pub fn summed() -> impl Iterator<Item = Resource> {
        Resource::ALL.into_iter().take(Resource::SUMMED)
    }

    /// Whether the cloud's flavors say how much of it a machine takes.
    pub fn is_of_flavors(self) -> bool {
        matches!(self, Resource::Vcpus | Resource::RamMib | Resource::DiskGib | Resource::Gpus)
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How much of each resource that is summed up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amounts([u64; Resource::SUMMED]);

impl Amounts {
    /// How much of each.
    pub fn each(&self) -> impl Iterator<Item = (Resource, u64)> {
        Resource::summed().zip(self.0)
    }

    /// What is in it and not in `less`.
    pub fn beyond(&self, less: &Amounts) -> Amounts {
        let mut beyond = *self;
        for (amount, less) in beyond.0.iter_mut().zip(less.0) {
            *amount = amount.saturating_sub(less);
        }
        beyond
    }
}

impl Index<Resource> for Amounts {
    type Output = u64;

    /// Of what is not summed up there is nothing.
    fn index(&self, resource: Resource) -> &u64 {
        self.0.get(resource as usize).unwrap_or(&0)
    }
}

impl IndexMut<Resource> for Amounts {
    /// # Panics
    ///
    /// For what is not summed up.
    fn index_mut(&mut self, resource: Resource) -> &mut u64 {
        &mut self.0[resource as usize]
    }
}

impl FromIterator<(Resource, u64)> for Amounts {
    fn from_iter<I: IntoIterator<Item = (Resource, u64)>>(each: I) -> Self {
        let mut amounts = Amounts::default();
        for (resource, amount) in each {
            amounts[resource] = amounts[resource].saturating_add(amount);
        }
        amounts
    }
}

impl AddAssign<&Amounts> for Amounts {
    fn add_assign(&mut self, more: &Amounts) {
        for (amount, more) in self.0.iter_mut().zip(more.0) {
            *amount = amount.saturating_add(more);
        }
    }
}
