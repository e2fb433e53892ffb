//! Hypervisor profiles.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::with_json::WithJson;

/// A hypervisor profile, with its secrets masked.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Profile {
    pub name: String,
    pub description: Option<String>,
    pub kind: String,
    pub instance_info: Map<String, Value>,
    pub settings: WithJson<ProfileSettings>,
    pub joining: JoinTimeouts,
    pub placement: Placement,
}

/// The settings of a hypervisor.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ProfileSettings {
    pub keystone: Keystone,
}

/// The account with which the host's services authenticate.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Keystone {
    pub auth_url: String,
    pub username: String,
}

/// How long each step of joining the cloud may take, as ISO 8601 durations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct JoinTimeouts {
    pub compute_service: Option<String>,
    pub hypervisor: Option<String>,
    pub resource_provider: Option<String>,
}

/// The place of hypervisors in the cloud.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Placement {
    pub availability_zone: Option<PlaceName>,
    pub aggregate: Option<PlaceName>,
}

/// The name of an availability zone or aggregate.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum PlaceName {
    /// The same name for all hypervisors.
    Fixed { fixed: String },
    /// The rule that makes the name, such as `rack_and_group`.
    By(String),
}

impl Profile {
    /// The URL or id of the image.
    pub fn image(&self) -> Option<&str> {
        self.instance_info.get("image_source")?.as_str()
    }
}
