//! Cinder: volumes and snapshots. A cloud may lack this service.

pub mod limits;
pub mod snapshots;
pub mod volumes;

use crate::service::Service;

const SERVICE: Service = Service::BlockStorage;
