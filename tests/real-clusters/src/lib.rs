#![doc = include_str!("../README.md")]

pub use crate::claims::Claims;
pub use crate::cloud::{Cloud, fetch};
pub use crate::cluster::{control_plane, set_version, settings, worker};
pub use crate::clusterd::{
    Mirror, NEWER, VERSION, clusterd, for_machines, for_nobody, for_virtual_machines, mirror,
};
pub use crate::control_plane_logs::print_control_plane_logs;
pub use crate::emulated::{Emulated, Server};
pub use crate::etcd::{etcd_forgets, etcd_health, etcdctl, etcdctl_words};
pub use crate::fcos::{Disk, FcosMachine};
pub use crate::kubectl::Kubectl;
pub use crate::lan::Lan;
pub use crate::network::{HOST, Network, objections};
pub use crate::renewal::renew;
pub use crate::rotation::rotate;
pub use crate::tenant::Tenant;

mod claims;
mod cloud;
mod cluster;
mod clusterd;
mod control_plane_logs;
mod emulated;
mod etcd;
mod fcos;
mod kubectl;
mod lan;
mod network;
mod renewal;
mod rotation;
mod tenant;
