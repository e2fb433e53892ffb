//! The part of a turn that calls the cloud, for clusters and VMs.

mod act;
mod action_context;
mod create;
mod error;
mod flavors;
mod found;
mod host_capacity;
mod ledger;
mod lookups;
mod made_by_kubernetes;
mod observation_cache;
mod observe;
mod owner;
mod perform;
mod quota;
mod requeue;
mod security;
mod server;
mod work;
mod work_vm;

pub(crate) use error::CloudWorkError;
pub(crate) use flavors::Flavors;
pub(crate) use flavors::size as flavor_size;
pub(crate) use lookups::{CloudLookups, operators_zone};
pub(crate) use observation_cache::ObservationCache;
pub(crate) use quota::outlook;
pub(crate) use work::{WorkResult, work};
pub(crate) use work_vm::{VmWorkResult, work_vm};
