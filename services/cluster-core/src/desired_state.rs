//! Whether clusterd keeps an object or deletes it.

use serde::{Deserialize, Serialize};

/// Whether a cluster or a VM should exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DesiredState {
    Exist,
    /// The object is to be deleted, with everything it owns in the cloud.
    Gone,
}
