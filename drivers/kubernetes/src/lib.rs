#![doc = include_str!("../README.md")]

mod access;
mod client;
mod error;
mod kubeconfig;
mod lenient;
mod object;
mod pods;
mod refusal;

pub mod apply;
pub mod bootstrap;
pub mod certificates;
pub mod cloud_objects;
pub mod cluster_info;
pub mod config_maps;
pub mod control_plane;
pub mod drain;
pub mod etcd;
pub mod health;
pub mod nodes;
pub mod obstacles;
pub mod workloads;

pub use access::{Access, AccessError, Endpoint, Timeouts};
pub use client::Client;
pub use error::{KubernetesError, Refusal, Request, Result};
pub use kubeconfig::KubeconfigError;
pub use pods::PodName;
