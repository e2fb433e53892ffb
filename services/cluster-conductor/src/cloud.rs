//! The part of a turn that calls the cloud, for clusters and VMs.

mod act;
mod create;
mod flavors;
mod found;
mod inside;
mod lately;
mod ledger;
mod observe;
mod of;
mod perform;
mod quota;
mod room;
mod security;
mod server;
mod site;
mod trouble;
mod work;
mod work_vm;

pub(crate) use flavors::Flavors;
pub(crate) use flavors::size as flavor_size;
pub(crate) use lately::Lately;
pub(crate) use quota::outlook;
pub(crate) use site::{Site, operators_zone};
pub(crate) use trouble::Trouble;
pub(crate) use work::{PAUSE, Worked, work};
pub(crate) use work_vm::{VmWorked, work_vm};
