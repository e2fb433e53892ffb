//! A requested change of the password of a node's BMC account, as the node records it.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::secret::Masked;

/// A requested change of the password of the BMC account.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PasswordRotation {
    /// The wanted password under its key of `driver_info`, sealed as the present one; empty before the password is made.
    pub wanted: Map<String, Value>,
    pub stage: RotationStage,
    /// When the change was requested. Its timeout counts from here.
    pub since: Timestamp,
}

/// The progress of a change of the password. Each stage may be repeated after a crash without harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RotationStage {
    /// The rules of the BMC are read, and a password is made.
    Requested,
    /// The password is recorded, and the BMC was not asked for it.
    Made,
    /// The BMC may have the wanted password. It was asked this many times.
    Asked { times: u8 },
    /// The BMC accepts neither password, or does not answer. No password is tried before the next request.
    Unknown,
}

/// One of the two passwords of an account whose password is being changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountPassword {
    Present,
    Wanted,
}

impl PasswordRotation {
    /// Returns whether the conductor has anything left to do.
    pub fn is_in_progress(&self) -> bool {
        self.stage != RotationStage::Unknown
    }
}

impl fmt::Debug for PasswordRotation {
    /// Prints all fields, with the password masked.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PasswordRotation")
            .field("wanted", &Masked(&self.wanted))
            .field("stage", &self.stage)
            .field("since", &self.since)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wanted_password_is_not_printed() {
        let wanted = Map::from_iter([("redfish_password".to_owned(), "hunter2".into())]);
        let (stage, since) = (RotationStage::Made, Timestamp::UNIX_EPOCH);
        let text = format!("{:?}", PasswordRotation { wanted, stage, since });
        assert!(text.contains("Made") && !text.contains("hunter2"), "{text}");
    }
}
