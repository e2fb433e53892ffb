//! The cloud that machines join.

use std::path::PathBuf;

use serde::Deserialize;

/// The cloud that machines join as hypervisors, and as whom it is asked.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CloudConfig {
    /// A clouds.yaml; what a secure.yaml beside it says goes before it.
    pub clouds_yaml: PathBuf,
    /// Which of its clouds; needed where there are several.
    #[serde(default)]
    pub name: Option<String>,
}
