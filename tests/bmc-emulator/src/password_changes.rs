//! The password of the account, as requests change it.

use crate::account::{AccountRules, PasswordRefused};
use crate::log::{Outcome, Protocol, Request};
use crate::machine::Machine;

impl Machine {
    /// The password of the account.
    pub fn password(&self) -> String {
        let changed = self.chassis().password.clone();
        changed.unwrap_or_else(|| self.spec().bmc.password.clone())
    }

    /// Changes the password of the account. The caller logs a refusal in the words of its protocol.
    pub(crate) fn change_password(
        &self,
        face: Protocol,
        rules: &AccountRules,
        password: &str,
    ) -> Result<(), PasswordRefused> {
        let (refuses, ignores) =
            self.faults().with(|faults| (faults.refuse_passwords, faults.ignore_passwords));
        if refuses || !rules.admit(password) {
            return Err(PasswordRefused);
        }
        if !ignores {
            self.chassis().password = Some(password.to_owned());
        }
        if rules.ends_sessions && !ignores {
            self.faults().forget_sessions();
        }
        self.record(face, Request::ChangePassword, Outcome::Accepted);
        Ok(())
    }
}
