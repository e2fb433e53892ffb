//! What is done in a cloud for a cluster in one turn.

mod act;
mod create;
mod flavors;
mod found;
mod inside;
mod lately;
mod ledger;
mod observe;
mod perform;
mod quota;
mod room;
mod security;
mod server;
mod site;
mod trouble;
mod work;

pub(crate) use flavors::Flavors;
pub(crate) use lately::Lately;
pub(crate) use quota::outlook;
pub(crate) use site::{Site, operators_zone};
pub(crate) use trouble::Trouble;
pub(crate) use work::{Worked, work};
