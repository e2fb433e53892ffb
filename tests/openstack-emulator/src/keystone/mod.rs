//! Keystone v3: users, their roles, and the catalog of services.

mod application_credential;
mod assignment;
mod catalogue;
mod directory;
mod given;
mod records;
mod refuse;
mod routes;
mod token;
mod trust;
mod types;

pub(crate) use assignment::{SYSTEM, grant};
pub(crate) use catalogue::{plant as plant_catalogue, register};
pub(crate) use routes::answer;
pub(crate) use token::{caller, issue};
