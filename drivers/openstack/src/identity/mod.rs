//! Keystone: tokens, restricted credentials, role assignments, and the catalogue.

pub mod application_credentials;
pub mod endpoints;
pub mod projects;
pub mod regions;
pub mod roles;
pub mod services;
pub mod tokens;
pub mod trusts;
pub mod users;

use crate::service::Service;
pub use crate::session::Identity;

const SERVICE: Service = Service::Identity;
