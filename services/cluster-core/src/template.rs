//! Cluster templates.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{Blueprint, Name, TemplateUuid};

/// A cluster template.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Template {
    /// Its id.
    pub id: TemplateUuid,
    /// Counts its changes.
    pub version: i64,
    /// Whose it is.
    pub project: String,
    /// Who made it.
    pub user: String,
    /// Its name.
    pub name: Name,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was changed.
    pub updated_at: Option<Timestamp>,
    /// Whether every project may use it.
    pub public: bool,
    /// Whether lists leave it out.
    pub hidden: bool,
    /// Words of its owner's.
    pub tags: Option<String>,
    /// What it says.
    pub blueprint: Blueprint,
}
