#![doc = include_str!("../README.md")]

mod add_on;
mod cinder_csi;
mod cloud_config;
mod cloud_controller;
mod cluster_settings;
mod document;
mod error;
mod flannel;
mod gpu;
mod gpu_plugin;
mod image;
mod metrics_server;
mod object;
mod receipt;
mod settings;
mod version;
mod wanted;

pub use add_on::AddOn;
pub use cluster_settings::{ClusterContext, settings};
pub use document::{Document, ObjectRef};
pub use error::AddOnError;
pub use gpu::{GpuNode, GpuVendor, gpu_node};
pub use image::ImageSource;
pub use receipt::{Changes, InvalidReceipt, RECEIPT_LABEL, RECEIPT_NAMESPACE, Receipt, changes};
pub use settings::{
    Cloud, Credential, KubeletCertificates, LoadBalancing, Settings, StorageClass, Volumes,
};
pub use wanted::desired_add_ons;
