//! What is done in a cloud for a cluster in one turn.

mod create;
mod found;
mod ledger;
mod observe;
mod perform;
mod security;
mod site;
mod trouble;
mod work;

pub(crate) use work::{Worked, work};
