//! Cluster templates.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{Blueprint, Name, TemplateUuid};

/// Whose something is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The project.
    pub project: String,
    /// Who of it asked for it.
    pub user: String,
}

impl Owner {
    /// This user, in this project.
    pub fn new(project: impl Into<String>, user: impl Into<String>) -> Self {
        Owner { project: project.into(), user: user.into() }
    }
}

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

impl Template {
    /// A template that was just made: for its project alone, and in lists.
    pub fn new(
        id: TemplateUuid,
        owner: Owner,
        name: Name,
        blueprint: Blueprint,
        now: Timestamp,
    ) -> Self {
        Template {
            id,
            version: 1,
            project: owner.project,
            user: owner.user,
            name,
            created_at: now,
            updated_at: None,
            public: false,
            hidden: false,
            tags: None,
            blueprint,
        }
    }
}
