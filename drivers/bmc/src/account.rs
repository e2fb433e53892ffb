//! The account by which a driver logs in to a BMC.

use std::ops::RangeInclusive;

use async_trait::async_trait;

use crate::BmcError;

/// The account by which the driver logs in.
#[async_trait]
pub trait Account: Send + Sync {
    /// Logs in anew, and returns whether the BMC accepts the password. An open session proves nothing: it may outlive its password.
    async fn try_password(&self) -> Result<bool, BmcError>;

    /// Returns the smallest and the largest number of characters that the BMC takes as a password.
    async fn password_length(&self) -> Result<RangeInclusive<usize>, BmcError>;

    /// Changes the password of the account to `wanted`. The driver itself goes on with the password that it was given.
    ///
    /// Idempotent. No error contains the password.
    ///
    /// # Errors
    ///
    /// After `Unreachable`, `Malformed` and a transient `Refused` the BMC may have the new password. After other errors it has the old one.
    async fn set_password(&self, wanted: &str) -> Result<(), BmcError>;
}
