//! Placement: resources of hosts. By default only administrators may use this service.

pub mod candidates;
pub mod providers;

use crate::service::Service;

const SERVICE: Service = Service::Placement;

/// 1.29 came with Rocky (2018). Since then, the summary of a nested provider names its host, and since 1.17 a summary has traits; both are
/// needed to count a host once.
pub(crate) const MICROVERSION: &str = "1.29";
