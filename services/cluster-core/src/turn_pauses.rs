//! The pauses between turns.

use std::time::Duration;

/// The pauses between turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnPauses {
    /// While something is in progress.
    pub soon: Duration,
    /// While nothing changes.
    pub look_every: Duration,
}
