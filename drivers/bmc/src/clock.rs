//! The clock of a BMC.

use async_trait::async_trait;
use jiff::Timestamp;
use jiff::tz::Offset;

use crate::BmcError;

/// The clock of a BMC. The times in its logs and its view of certificates depend on the clock.
#[async_trait]
pub trait Clock: Send + Sync {
    /// Sets the clock to `time`, and the offset of the BMC's local time from UTC if `offset` is given. Fails if the BMC shows another time
    /// afterwards.
    async fn set_clock(&self, time: Timestamp, offset: Option<Offset>) -> Result<(), BmcError>;
}
