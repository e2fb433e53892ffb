//! The section `[cloud]`: the OpenStack that machines join.

use std::path::PathBuf;

use serde::Deserialize;

/// The OpenStack that machines join as hypervisors, and the credentials for it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CloudConfig {
    /// A clouds.yaml. A secure.yaml beside it takes precedence.
    pub clouds_yaml: PathBuf,
    /// The cloud's name in the file; needed if the file contains several clouds.
    #[serde(default)]
    pub name: Option<String>,
}
