//! Cinder v3: volumes and snapshots.

mod limits;
mod routes;
mod server;
mod types;
mod volume;

pub(crate) use routes::answer;
pub(crate) use server::{attach, for_server, release};
pub(crate) use volume::snap;
