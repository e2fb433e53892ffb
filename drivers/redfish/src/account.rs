//! The account by which the driver logs in (DSP0268 `AccountService`, `ManagerAccount`).

use std::ops::RangeInclusive;

use async_trait::async_trait;
use bmc::{Account, BmcError, Result};
use reqwest::StatusCode;
use serde_json::{Value, json};
use url::Url;

use crate::answer::Answer;
use crate::document::Document;
use crate::message::Message;
use crate::service::{Resource, Service};

/// The most accounts that are read. Dell's iDRAC shows 16 slots, most of them without an account.
const MOST_ACCOUNTS: usize = 64;

/// The length of passwords of a BMC that tells no limits. The upper limit is that of IPMI, which often uses the same account.
const LENGTH: RangeInclusive<usize> = 8..=20;

/// A part of a password of this length is no accident in the words of a BMC.
const TELLING_PART: usize = 6;

#[async_trait]
impl Account for Service {
    async fn try_password(&self) -> Result<bool> {
        let root = match self.root().await {
            Ok(root) => root,
            // Some BMCs demand a login for the service root too.
            Err(BmcError::Unauthorized { .. }) => return Ok(false),
            Err(error) => return Err(error),
        };
        let nothing = || cannot("check a password: it shows neither systems nor managers");
        let url = root.systems.clone().or_else(|| root.managers.clone()).ok_or_else(nothing)?;
        self.log_out().await;
        let answer = match self.fetch(&url).await {
            Ok(answer) => answer,
            Err(BmcError::Unauthorized { .. }) => return Ok(false),
            Err(error) => return Err(error),
        };
        match answer.status {
            StatusCode::UNAUTHORIZED => Ok(false),
            // The BMC knows the account by its password, and the account may not read this.
            StatusCode::FORBIDDEN => Ok(answer.messages().iter().any(knows_the_account)),
            _ => answer.accepted(&self.origin.host()).map(|_| true),
        }
    }

    async fn password_length(&self) -> Result<RangeInclusive<usize>> {
        let answer = self.fetch(&self.accounts().await?).await?;
        if answer.status == StatusCode::FORBIDDEN {
            return Ok(LENGTH);
        }
        let service = answer.accepted(&self.origin.host())?.document()?;
        let limit = |name| service.count(name).and_then(|count| usize::try_from(count).ok());
        let shortest = limit("MinPasswordLength").unwrap_or(*LENGTH.start());
        // Zero stands for no limit.
        let longest = limit("MaxPasswordLength").filter(|longest| *longest > 0);
        Ok(shortest..=longest.unwrap_or(shortest.max(*LENGTH.end())))
    }

    async fn set_password(&self, wanted: &str) -> Result<()> {
        let account = self.account().await?;
        let answer = self.answer_to_patch(&account, json!({"Password": wanted})).await?;
        let masked = |error| without_password(error, wanted);
        // `accepted` would take a missing privilege for a wrong password.
        if answer.status == StatusCode::FORBIDDEN {
            return Err(masked(answer.refused()));
        }
        let answer = answer.accepted(&self.origin.host()).map_err(masked)?;
        match self.finish(answer).await {
            Err(error @ BmcError::Refused { transient: false, .. }) => Err(masked(error)),
            // The BMC may have ended the session together with the old password. The next login tells whether it has the new one.
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

impl Service {
    /// Returns the address of the AccountService.
    async fn accounts(&self) -> Result<Url> {
        let none = || cannot("change a password: it has no AccountService");
        self.root().await?.accounts.clone().ok_or_else(none)
    }

    /// Reads the account of the driver. Slots without an account have no user name, so they are passed over.
    async fn account(&self) -> Result<Resource> {
        let url = self.accounts().await?;
        let answer = self.fetch(&url).await?;
        if let Some(account) = self.account_to_change(&answer) {
            return self.get(&account).await;
        }
        let service = self.resource(&url, answer)?.body;
        let none = || cannot("change a password: it lists no accounts");
        let accounts = self.origin.follow(service.link("Accounts").ok_or_else(none)?)?;
        let listed = self.list(&accounts, MOST_ACCOUNTS).await?.ok_or_else(none)?;
        for entry in listed {
            let Some(account) = self.whole(entry).await? else { continue };
            if account.word("UserName") == self.target.username
                && account.truth("Enabled") != Some(false)
                && let Some(id) = account.id()
            {
                // Read by itself, for its entity tag.
                return self.get(&self.origin.follow(id)?).await;
            }
        }
        Err(cannot("change the password: it lists no account with the user name"))
    }

    /// DSP0266 §13.2.6: a BMC may show an account nothing but itself until it has a new password. The message names the account.
    fn account_to_change(&self, answer: &Answer) -> Option<Url> {
        let is_told = answer.status == StatusCode::FORBIDDEN
            && answer.messages().iter().any(|message| message.key == CHANGE_REQUIRED);
        let body: Value = is_told.then(|| answer.document().ok())??;
        let messages = body.at("error").items("@Message.ExtendedInfo");
        let named =
            |message: &Value| message.items("MessageArgs").first()?.as_str().map(str::to_owned);
        self.origin.follow(&messages.iter().find_map(named)?).ok()
    }
}

const CHANGE_REQUIRED: &str = "PasswordChangeRequired";

fn knows_the_account(message: &Message) -> bool {
    [CHANGE_REQUIRED, "InsufficientPrivilege"].contains(&message.key.as_str())
}

fn cannot(what: &str) -> BmcError {
    BmcError::Unsupported { what: what.to_owned() }
}

/// Replaces the words of a BMC that repeats the password, or a part of it.
fn without_password(mut error: BmcError, password: &str) -> BmcError {
    let repeats = |words: &str| {
        let mut parts = password.as_bytes().windows(TELLING_PART);
        parts.any(|part| std::str::from_utf8(part).is_ok_and(|part| words.contains(part)))
    };
    if let BmcError::Refused { answer: words, .. } | BmcError::Busy { reason: words, .. } =
        &mut error
        && repeats(words)
    {
        *words = "its message repeats the password, so it is not shown".to_owned();
    }
    error
}
