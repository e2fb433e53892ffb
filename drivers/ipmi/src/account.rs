//! The account by which the driver logs in: a user of the BMC.

use std::ops::RangeInclusive;

use async_trait::async_trait;
use bmc::{Account, BmcError};

use crate::client::Client;
use crate::commands::Command;
use crate::commands::users::{CountUsers, GetUserName, SHORT_PASSWORD, SetUserPassword};
use crate::target::Target;

#[async_trait]
impl Account for Client {
    async fn try_password(&self) -> Result<bool, BmcError> {
        self.close().await;
        match self.device_id().await {
            Ok(_) => Ok(true),
            Err(BmcError::Unauthorized { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Some BMCs store 16 bytes only, and none tells.
    async fn password_length(&self) -> Result<RangeInclusive<usize>, BmcError> {
        Ok(1..=SHORT_PASSWORD)
    }

    async fn set_password(&self, wanted: &str) -> Result<(), BmcError> {
        if wanted.len() > Target::LONGEST_PASSWORD {
            let limit = Target::LONGEST_PASSWORD;
            let what = format!("take a password of more than {limit} bytes, the limit of IPMI");
            return Err(BmcError::Unsupported { what });
        }
        let user = self.user().await?;
        match self.call(&SetUserPassword { user, password: wanted }).await? {
            Ok(()) => Ok(()),
            Err(code) if code.is_unknown_command() => {
                Err(self.refusal(code, SetUserPassword::NAME))
            }
            // A missing privilege is no wrong password, for which `Client::refusal` takes it.
            Err(code) => Err(code.refusal(SetUserPassword::NAME)),
        }
    }
}

impl Client {
    /// Returns the id of the user with the name of the account.
    async fn user(&self) -> Result<u8, BmcError> {
        let name = self.line().target.username.as_bytes();
        for user in 1..=self.run(&CountUsers).await? {
            // Some BMCs refuse to name an id without a user.
            if let Ok(found) = self.call(&GetUserName { user }).await?
                && found == name
            {
                return Ok(user);
            }
        }
        let what = "change the password: it lists no user with the name of the account".to_owned();
        Err(BmcError::Unsupported { what })
    }
}
