//! The settings of backups of etcd.

use std::path::PathBuf;

use cluster_core::BackupRules;

/// The settings of backups of etcd.
#[derive(Clone, Debug)]
pub struct BackupSettings {
    pub place: BackupPlace,
    /// When backups are made, and how many are kept.
    pub rules: BackupRules,
}

/// Where backups are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackupPlace {
    /// A directory, which several clusterd share.
    Directory(PathBuf),
    /// A container of Swift, in clusterd's own project of the cloud.
    Container(String),
}
