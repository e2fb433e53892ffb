//! Lookup and heartbeat: the requests by which an agent finds its node and reports to the conductor.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The body of `POST /v1/heartbeat/{node}`.
#[derive(Clone, Serialize, Deserialize)]
pub struct Heartbeat {
    /// Base URL of the agent's own API: `https://ADDRESS:9999`.
    pub callback_url: String,
    /// The secret that agent and conductor share for this boot.
    #[serde(default)]
    pub agent_token: Option<String>,
    #[serde(default)]
    pub agent_version: Option<String>,
    /// PEM of the certificate that the agent's API serves (since API 1.68).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_verify_ca: Option<String>,
    /// Since API microversion 1.72.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_status: Option<String>,
    /// Since API microversion 1.72.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_status_message: Option<String>,
}

impl std::fmt::Debug for Heartbeat {
    /// Leaves the token out, so that no log shows the token.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Heartbeat")
            .field("callback_url", &self.callback_url)
            .finish_non_exhaustive()
    }
}

/// The answer to `GET /v1/lookup?addresses=…&node_uuid=…`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LookupAnswer {
    pub node: LookupNode,
    pub config: AgentConfig,
}

/// The part of a node's record that its agent may read.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LookupNode {
    pub uuid: String,
    /// Includes the root device hints.
    #[serde(default)]
    pub properties: Map<String, Value>,
    /// Never holds a secret.
    #[serde(default)]
    pub instance_info: Map<String, Value>,
    /// Never holds a secret.
    #[serde(default)]
    pub driver_internal_info: Map<String, Value>,
    /// Links, in the form that the API uses everywhere.
    #[serde(default)]
    pub links: Vec<Value>,
}

/// The conductor's settings for an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AgentConfig {
    /// Seconds without a heartbeat after which the conductor considers the agent lost.
    pub heartbeat_timeout: u64,
    /// Always `******`: the agent has the token from its kernel command line, and the conductor never sends the token again.
    #[serde(default)]
    pub agent_token: Option<String>,
    /// Always true: our conductor accepts no agent without a token.
    #[serde(default)]
    pub agent_token_required: bool,
    /// Whether ironic-python-agent may run the program of a partition image that installs its boot loader. Our agent never does.
    #[serde(default)]
    pub enable_bios_bootloader_install: bool,
}
