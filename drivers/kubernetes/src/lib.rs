#![doc = include_str!("../README.md")]

mod access;
mod client;
mod error;
mod kubeconfig;
mod lenient;
mod object;
mod refusal;

pub mod apply;
pub mod certificates;
pub mod health;
pub mod nodes;

pub use access::{Access, AccessError, Endpoint, Timeouts};
pub use client::Client;
pub use error::{KubernetesError, Refusal, Request};
pub use kubeconfig::KubeconfigError;
