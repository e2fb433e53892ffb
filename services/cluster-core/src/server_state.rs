//! The state of a server in Nova.

use serde::{Deserialize, Serialize};

/// The properties of a server that change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerDetails {
    pub is: ServerState,
    /// Whether Nova is doing something to the server (`task_state`).
    pub is_busy: bool,
    /// The name of its flavor.
    pub flavor: String,
}

/// The state of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServerState {
    Building,
    On,
    Off,
    /// Resized; the new size must still be confirmed.
    Resized,
    /// Between two of the other states.
    Changing,
    /// In ERROR, with Nova's message.
    Failed(String),
    Leaving,
    /// A state that only direct calls to Nova lead to: paused, suspended, shelved.
    Other(String),
}
