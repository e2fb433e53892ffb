//! Cinder: volumes, and what they were at some time. A cloud need not have it.

pub mod limits;
pub mod snapshots;
pub mod volumes;

use crate::service::Service;

const SERVICE: Service = Service::BlockStorage;
