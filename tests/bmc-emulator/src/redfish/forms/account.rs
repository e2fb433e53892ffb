//! The password in a PATCH of the account (DSP0268 `ManagerAccount`).

use serde_json::{Map, Value};

use crate::log::Protocol;
use crate::redfish::face::RedfishFace;
use crate::redfish::problem::{Message, Problem};

const PASSWORD: &str = "Password";

/// Stands for the password in a message.
const MASK: &str = "******";

impl RedfishFace {
    pub(super) fn patch_account(
        &self,
        document: &Value,
        form: &Map<String, Value>,
    ) -> Result<(), Problem> {
        if let Some(name) = form.keys().find(|name| *name != PASSWORD) {
            let is_shown = document.get(name).is_some();
            let message =
                if is_shown { Message::PROPERTY_NOT_WRITABLE } else { Message::PROPERTY_UNKNOWN };
            return Err(Problem::property(message, name));
        }
        let Some(value) = form.get(PASSWORD) else { return Ok(()) };
        let wrong = |message| Problem::value(message, PASSWORD, MASK);
        let password = value.as_str().ok_or_else(|| wrong(Message::PROPERTY_TYPE))?;
        let rules = &self.profile.accounts;
        let changed = self.machine.change_password(Protocol::Redfish, rules, password);
        changed.map_err(|_| wrong(Message::PROPERTY_FORMAT))
    }
}
