#![doc = include_str!("../README.md")]

mod kubeconfig;
mod period;
mod seed;
mod sign;
mod token;

pub use kubeconfig::{Kubeconfig, admin_kubeconfig};
pub use period::{Period, read_period};
pub use seed::{PkiError, Validity, make_pki};
pub use sign::{SignError, sign};
pub use token::new_bootstrap_token;
