//! Placement: what fits where. It tells administrators alone, as clouds are set up as a rule.

pub mod candidates;
pub mod providers;

use crate::service::Service;

const SERVICE: Service = Service::Placement;

/// 1.29 came with Rocky (2018): since then a provider's summary names the host that a nested one belongs to, and
/// since 1.17 it names traits; both are needed to count a host once.
pub(crate) const MICROVERSION: &str = "1.29";
