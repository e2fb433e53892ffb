//! Placement: the inventory and usage of each host, and the hosts that fit a request.

mod inventory;
mod routes;
mod view;

pub(crate) use routes::answer;
