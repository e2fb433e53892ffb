//! A mistake in a config.

use std::fmt;

/// A mistake in a config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// JSON path of the mistake, such as `storage.files[3].mode`.
    pub path: String,
    pub what: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.what)
    }
}
