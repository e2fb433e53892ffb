//! The resources that limits apply to, and amounts of them.

use std::ops::{AddAssign, Index, IndexMut};

use serde::Serialize;

words::words! {
    /// A resource that can have a limit, with its name in the API and the database.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Resource {
        Clusters = "clusters",
        /// Members of clusters.
        Nodes = "nodes",
        /// VMs of persons.
        Vms = "vms",
        /// Of the flavors of members and VMs.
        Vcpus = "vcpus",
        /// Of the flavors of members and VMs.
        RamMib = "ram_mib",
        /// Disks of flavors, and volumes that are created and deleted with their server.
        DiskGib = "disk_gib",
        /// Of the flavors of members and VMs.
        Gpus = "gpus",
        FloatingIps = "floating_ips",
        /// The longest lease. The only resource whose use is not a sum.
        LeaseSeconds = "lease_seconds",
    }
}

impl Resource {
    /// The number of resources whose use is a sum.
    pub const SUMMED: usize = Resource::ALL.len() - 1;

    /// Returns the resources whose use is a sum: [`Amounts`] has a number for each.
    pub fn summed() -> impl Iterator<Item = Resource> {
        Resource::ALL.into_iter().take(Resource::SUMMED)
    }

    /// Whether the amount that a server uses depends on its flavor.
    pub fn depends_on_flavor(self) -> bool {
        matches!(self, Resource::Vcpus | Resource::RamMib | Resource::DiskGib | Resource::Gpus)
    }
}

/// An amount of each resource whose use is a sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amounts([u64; Resource::SUMMED]);

impl Amounts {
    /// Returns each resource with its amount.
    pub fn each(&self) -> impl Iterator<Item = (Resource, u64)> {
        Resource::summed().zip(self.0)
    }

    /// Returns, for each resource, how much `self` exceeds `less`.
    pub fn minus(&self, less: &Amounts) -> Amounts {
        let mut beyond = *self;
        for (amount, less) in beyond.0.iter_mut().zip(less.0) {
            *amount = amount.saturating_sub(less);
        }
        beyond
    }
}

impl Index<Resource> for Amounts {
    type Output = u64;

    /// Returns 0 for [`Resource::LeaseSeconds`], which is not summed.
    fn index(&self, resource: Resource) -> &u64 {
        self.0.get(resource as usize).unwrap_or(&0)
    }
}

impl IndexMut<Resource> for Amounts {
    /// # Panics
    ///
    /// For [`Resource::LeaseSeconds`], which is not summed.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_exceeds_a_larger_one_by_nothing() {
        let amounts = |nodes, vcpus, gpus| {
            let each = [(Resource::Nodes, nodes), (Resource::Vcpus, vcpus), (Resource::Gpus, gpus)];
            Amounts::from_iter(each)
        };
        assert_eq!(amounts(5, 8, 1).minus(&amounts(2, 8, 3)), amounts(3, 0, 0));
        assert_eq!(amounts(5, 8, 1).minus(&Amounts::default()), amounts(5, 8, 1));
    }
}
