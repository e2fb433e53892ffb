//! The answer to an import.

use serde::Deserialize;

/// The result of an import of one record.
#[derive(Clone, Debug, Deserialize)]
pub struct ImportAnswer {
    /// `imported`, `present` or `checked`.
    pub result: String,
}
