//! Quotas of projects and users.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The quotas of a project, and of a user in the project, by resource.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Quotas {
    pub project_id: String,
    pub project: BTreeMap<String, ResourceQuota>,
    /// `None` if the request names no user.
    pub user_id: Option<String>,
    #[serde(default)]
    pub user: BTreeMap<String, ResourceQuota>,
}

/// The usage and the limit of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct ResourceQuota {
    /// -1 is no limit.
    pub limit: i64,
    /// `None` if the resource is limited and not counted.
    pub used: Option<u64>,
}
