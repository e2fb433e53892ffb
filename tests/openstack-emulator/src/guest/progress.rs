//! How far a guest has come.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How far a guest has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Progress {
    /// The guest reads its user data.
    Booting,
    /// The user data could not be applied, for this reason.
    Failed(String),
    /// The guest has its final config and runs.
    Running,
    Joined,
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Progress::Booting => write!(f, "guest: booting"),
            Progress::Failed(why) => write!(f, "guest: emergency: {why}"),
            Progress::Running => write!(f, "guest: running"),
            Progress::Joined => write!(f, "guest: joined"),
        }
    }
}
