//! Nova v2.1: servers, and the objects around them.

mod action;
mod aggregate;
mod attach;
mod compute;
pub(crate) mod compute_host;
mod console;
mod create;
mod diagnostics;
pub(crate) mod flavor;
mod group;
mod hosts;
mod keypair;
mod life;
mod limits;
mod list;
mod migrate;
mod parts;
pub(crate) mod provider;
mod refuse;
mod resize;
mod routes;
mod server;
mod snapshot;
mod types;
mod view;

pub(crate) use hosts::plant as plant_hosts;
pub(crate) use life::{acted, built, gone};
pub(crate) use migrate::migrated;
pub(crate) use routes::answer;
pub(crate) use server::ports;
pub(crate) use snapshot::went_on as snapshot_went_on;
