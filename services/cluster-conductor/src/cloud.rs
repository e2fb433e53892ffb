//! The cloud: errors, look-ups, the ledger, observation, quotas. Nothing here changes the cloud.

#[cfg(test)]
pub(crate) mod emulated;
mod error;
mod flavors;
pub(crate) mod found;
mod host_capacity;
mod ledger;
mod lookups;
mod made_by_kubernetes;
mod observation_cache;
mod observe;
mod quota;
pub(crate) mod security;

pub(crate) use error::{CloudWorkError, Result};
pub(crate) use flavors::{Flavors, size as flavor_size};
pub(crate) use host_capacity::missing_capacity;
pub(crate) use ledger::reconcile_ledger;
pub(crate) use lookups::{CloudLookups, id_of, operators_zone};
pub(crate) use observation_cache::{CachedObservations, ObservationCache};
pub(crate) use observe::observe;
pub(crate) use quota::{outlook, shortage};
