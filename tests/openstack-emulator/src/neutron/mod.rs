//! Neutron v2.0: networks and the objects in them.

mod address;
mod floating_ip;
mod network;
mod object;
mod port;
mod quota;
mod refuse;
mod route;
mod router;
mod routes;
mod security_group;
mod subnet;
mod tag;
mod types;

pub(crate) use object::{add, update};
pub(crate) use port::{delete as delete_port, make as make_port};
pub(crate) use quota::check as check_quota;
pub(crate) use routes::answer;
pub(crate) use security_group::{default_group, group_called};
