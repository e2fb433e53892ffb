//! Keystone: whose token this is, and credentials that can do less than we can.

pub mod application_credentials;
pub mod tokens;
pub mod trusts;

use crate::service::Service;
pub use crate::session::Identity;

const SERVICE: Service = Service::Identity;
