//! Placement: the inventory and usage of each host, and the hosts that fit a request.

mod candidates;
mod provider;
mod routes;

pub(crate) use routes::answer;
