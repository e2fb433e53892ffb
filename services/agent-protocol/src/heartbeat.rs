//! How an agent finds its node and says that it is there.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The body of `POST /v1/heartbeat/{node}`.
#[derive(Clone, Serialize, Deserialize)]
pub struct Heartbeat {
    /// Base URL of the agent's own API: `https://ADDRESS:9999`.
    pub callback_url: String,
    /// The secret shared with the conductor for this boot.
    #[serde(default)]
    pub agent_token: Option<String>,
    /// The agent's version.
    #[serde(default)]
    pub agent_version: Option<String>,
    /// The certificate the agent's API serves, PEM (from API 1.68).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_verify_ca: Option<String>,
    /// From API 1.72.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_status: Option<String>,
    /// From API 1.72.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_status_message: Option<String>,
}

impl std::fmt::Debug for Heartbeat {
    /// Leaves the token out.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Heartbeat")
            .field("callback_url", &self.callback_url)
            .finish_non_exhaustive()
    }
}

/// The answer to `GET /v1/lookup?addresses=…&node_uuid=…`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LookupAnswer {
    /// The node the agent runs on.
    pub node: LookupNode,
    /// How the agent is to behave.
    pub config: AgentConfig,
}

/// What an agent may know of its node.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LookupNode {
    /// The node's id.
    pub uuid: String,
    /// The node's properties: root device hints among them.
    #[serde(default)]
    pub properties: Map<String, Value>,
    /// Never holds a secret.
    #[serde(default)]
    pub instance_info: Map<String, Value>,
    /// Never holds a secret.
    #[serde(default)]
    pub driver_internal_info: Map<String, Value>,
    /// As everywhere in the API.
    #[serde(default)]
    pub links: Vec<Value>,
}

/// How an agent is to behave.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AgentConfig {
    /// Seconds without a heartbeat after which the conductor gives the agent up.
    pub heartbeat_timeout: u64,
    /// `******`: the token came by the kernel command line and is never handed out again.
    #[serde(default)]
    pub agent_token: Option<String>,
    /// Always true here.
    #[serde(default)]
    pub agent_token_required: bool,
}
