//! How often the cloud failed at one object.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The failures in a row of the cloud at one object, since the owner last asked for a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureCount {
    pub times: u32,
    /// When the cloud last failed.
    pub at: Timestamp,
    /// The cloud's message at the last failure.
    pub why: String,
    /// The id of the failed object, when the cloud had created one. The same id in a later observation is the same failure.
    pub object: Option<String>,
}
