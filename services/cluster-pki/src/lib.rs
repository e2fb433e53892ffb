#![doc = include_str!("../README.md")]

mod kubeconfig;
mod seed;
mod sign;
mod token;

pub use kubeconfig::{Kubeconfig, admin};
pub use seed::{PkiError, Validity, seed};
pub use sign::{SignError, sign};
pub use token::token;
