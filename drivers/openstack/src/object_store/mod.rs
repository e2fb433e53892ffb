//! Swift: containers of objects in the account of the session's project.
//!
//! Swift's usual configuration admits only users with the role `admin` or `swiftoperator`.

pub mod containers;
pub mod objects;

use crate::service::Service;

const SERVICE: Service = Service::ObjectStore;
