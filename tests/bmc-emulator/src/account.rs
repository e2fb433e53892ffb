//! The rules of a BMC for the password of its account.

use serde::Deserialize;

/// The rules for a new password.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AccountRules {
    /// The number of characters.
    pub(crate) shortest: usize,
    pub(crate) longest: usize,
    /// How many kinds of characters a password needs: lower case, upper case, digits, others.
    kinds: usize,
    /// Whether a new password ends all sessions.
    pub(crate) ends_sessions: bool,
}

/// The password breaks the rules of the BMC.
#[derive(Debug)]
pub(crate) struct PasswordRefused;

impl AccountRules {
    pub(crate) fn admit(&self, password: &str) -> bool {
        let has = |is: fn(char) -> bool| usize::from(password.chars().any(is));
        let kinds = has(|c| c.is_ascii_lowercase())
            + has(|c| c.is_ascii_uppercase())
            + has(|c| c.is_ascii_digit())
            + has(|c| !c.is_ascii_alphanumeric());
        (self.shortest..=self.longest).contains(&password.chars().count()) && kinds >= self.kinds
    }
}
