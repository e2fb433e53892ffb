//! The record of a cluster template.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{ClusterParameters, Name, TemplateUuid};

/// The project and the user that a resource belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    pub project: String,
    /// The user of the project who created the resource.
    pub user: String,
}

impl Owner {
    /// Names a user in a project.
    pub fn new(project: impl Into<String>, user: impl Into<String>) -> Self {
        Owner { project: project.into(), user: user.into() }
    }
}

/// A cluster template: the parameters from which clusters are made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Template {
    pub id: TemplateUuid,
    /// Counts the changes; an update names the version it read, so that no change is lost.
    pub version: i64,
    /// The project that owns the template.
    pub project: String,
    pub user: String,
    pub name: Name,
    pub created_at: Timestamp,
    pub updated_at: Option<Timestamp>,
    /// Whether every project may use the template.
    pub public: bool,
    /// Whether the lists of other projects omit the template.
    pub hidden: bool,
    /// Free text of the owner.
    pub tags: Option<String>,
    pub blueprint: ClusterParameters,
}

impl Template {
    /// Makes a new template that is visible to its project alone and appears in lists.
    pub fn new(
        id: TemplateUuid,
        owner: Owner,
        name: Name,
        blueprint: ClusterParameters,
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
