#![doc = include_str!("../README.md")]

mod add_ons;
mod backups;
mod ca_rotation;
mod claim;
mod containerd;
mod kubeadm;
mod name;
mod node;
mod os_updates;
mod pki;
mod pod_routes;
mod proxy;
mod renewal;
mod reporting;
mod reports;
mod settings;
mod source;
mod token;
mod units;
mod version;
mod volumes;

pub use backups::starting_from_backup;
pub use ca_rotation::{CaRotationStep, MemberRole, rotation_archive};
pub use claim::{Claim, inline, stub};
pub use name::{InvalidName, Name};
pub use node::{
    BootstrapError, NodeConfig, control_plane, joining_control_plane, restored_control_plane,
    upgrading_control_plane, worker,
};
pub use pki::{CertificateAuthority, KeyPair, Pki};
pub use proxy::Proxies;
pub use reporting::reporting;
pub use reports::Reports;
pub use settings::{
    Approval, CgroupDriver, ClusterDns, ClusterSettings, Endpoint, Member, Overrides, PodNetwork,
    SettingsError, Taint, TaintEffect, Worker,
};
pub use source::{Archives, Artifact, Images, InvalidSha256, Programs, Sha256, Source};
pub use token::{BootstrapToken, InvalidToken};
pub use version::{InvalidVersion, KubernetesVersion};
pub use volumes::{Volume, with_volumes};
