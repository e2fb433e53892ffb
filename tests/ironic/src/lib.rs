#![doc = include_str!("../README.md")]

use std::path::PathBuf;
use std::time::Duration;

pub mod answer;
pub mod change;
pub mod difference;
pub mod known;
pub mod reasons;
pub mod recording;
pub mod versions;
pub mod walk;
pub mod walker;

/// The longest time of one wait for baremetald. Its fake hardware needs less than a second.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// The configuration of the compared baremetald, because Ironic serves the routes of agents on its only listener.
pub const CONFIGURATION: &str = "[agents]\non_api_listener = true\n";

/// Returns the path of a file or folder of this crate.
pub fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name)
}
