//! The clock in a PATCH of the manager (DSP0268 `Manager`).

use jiff::Timestamp;
use jiff::fmt::strtime;
use serde_json::{Map, Value};

use crate::log::Protocol;
use crate::redfish::face::RedfishFace;
use crate::redfish::problem::{Message, Problem};

const TIME: &str = "DateTime";
const OFFSET: &str = "DateTimeLocalOffset";

impl RedfishFace {
    pub(super) fn patch_manager(
        &self,
        document: &Value,
        form: &Map<String, Value>,
    ) -> Result<(), Problem> {
        if let Some(name) = form.keys().find(|name| ![TIME, OFFSET].contains(&name.as_str())) {
            let is_shown = document.get(name).is_some();
            let message =
                if is_shown { Message::PROPERTY_NOT_WRITABLE } else { Message::PROPERTY_UNKNOWN };
            return Err(Problem::property(message, name));
        }
        let time = form.get(TIME).map(|value| {
            let text = text(TIME, value)?;
            text.parse::<Timestamp>().map_err(|_| malformed(TIME, text))
        });
        let offset = form.get(OFFSET).map(|value| {
            let text = text(OFFSET, value)?;
            let offset = strtime::parse("%:z", text).ok().and_then(|parsed| parsed.offset());
            offset.ok_or_else(|| malformed(OFFSET, text))
        });
        self.machine.set_clock(Protocol::Redfish, time.transpose()?, offset.transpose()?);
        Ok(())
    }
}

fn text<'a>(name: &str, value: &'a Value) -> Result<&'a str, Problem> {
    value.as_str().ok_or_else(|| Problem::value(Message::PROPERTY_TYPE, name, value))
}

fn malformed(name: &str, value: &str) -> Problem {
    Problem::value(Message::PROPERTY_FORMAT, name, value)
}
