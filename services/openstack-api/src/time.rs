//! Times in the format of OpenStack.

use jiff::Timestamp;
use serde::{Serialize, Serializer};

/// A time that is serialized like `2026-01-31T23:59:59.000001+00:00`.
#[derive(Clone, Copy)]
pub struct Time(pub Timestamp);

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0.strftime("%Y-%m-%dT%H:%M:%S%.6f+00:00"))
    }
}

impl Time {
    /// Wraps an optional time.
    pub fn some(at: Option<Timestamp>) -> Option<Time> {
        at.map(Time)
    }
}
