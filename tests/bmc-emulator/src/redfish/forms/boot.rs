//! The `Boot` object of a PATCH.

use serde_json::{Map, Value};
use url::Url;

use crate::boot::{BootOverride, OverrideDuration};
use crate::redfish::face::RedfishFace;
use crate::redfish::problem::{Message, Problem};
use crate::redfish::schema::{BOOT_TARGETS, mode_name};
use crate::redfish::values::{boot_modes, boot_targets};
use crate::spec::Firmware;

const ENABLED: &str = "BootSourceOverrideEnabled";
const TARGET: &str = "BootSourceOverrideTarget";
const MODE: &str = "BootSourceOverrideMode";
const HTTP_URI: &str = "HttpBootUri";

pub(super) struct BootChange {
    pub(super) mode: Option<Firmware>,
    /// The new override, if the request names any of its properties.
    pub(super) boot_override: Option<Option<BootOverride>>,
}

impl RedfishFace {
    /// The change that `boot` asks for: the new override is the current one with the properties of `boot` merged in. `shown` is the object
    /// in the document.
    pub(super) fn read_boot(&self, shown: &Value, boot: &Value) -> Result<BootChange, Problem> {
        let wrong = || Problem::value(Message::PROPERTY_TYPE, "Boot", boot);
        let form = boot.as_object().ok_or_else(wrong)?;
        refuse_unknown(shown, form)?;

        let current = self.machine.boot_override();
        let lasting = match text(form, ENABLED)? {
            Some("Disabled") => None,
            Some("Once") => Some(OverrideDuration::Once),
            Some("Continuous") if self.profile.boot.continuous => Some(OverrideDuration::Always),
            Some(other) => return Err(not_in_list(ENABLED, other)),
            None => current.as_ref().map(|boot| boot.lasting),
        };
        let target = match text(form, TARGET)? {
            Some(name) if boot_targets(self).any(|known| known == name) => BOOT_TARGETS
                .iter()
                .find(|(known, _)| *known == name)
                .and_then(|(_, device)| *device),
            Some(other) => return Err(not_in_list(TARGET, other)),
            None => current.as_ref().map(|boot| boot.device),
        };
        let new_mode = match text(form, MODE)? {
            Some(name) => {
                let known = boot_modes(self).find(|known| mode_name(*known) == name);
                Some(known.ok_or_else(|| not_in_list(MODE, name))?)
            }
            None => None,
        };
        let mode = new_mode.or_else(|| current.as_ref().and_then(|boot| boot.mode));
        let http_uri = match form.get(HTTP_URI) {
            Some(value) => read_uri(value)?,
            None => current.and_then(|boot| boot.http_uri),
        };

        let new = match (lasting, target) {
            (Some(lasting), Some(device)) => {
                Some(BootOverride { device, lasting, mode, http_uri, lapses_at: None })
            }
            (None, _) | (_, None) => None,
        };
        let changes_override = form.keys().any(|name| name != MODE);
        let mode = new_mode.filter(|mode| *mode != self.machine.boot_mode());
        Ok(BootChange { mode, boot_override: changes_override.then_some(new) })
    }
}

fn refuse_unknown(shown: &Value, form: &Map<String, Value>) -> Result<(), Problem> {
    let known =
        |name: &str| [ENABLED, TARGET, MODE, HTTP_URI].contains(&name) && shown.get(name).is_some();
    let Some(name) = form.keys().find(|name| !known(name)) else { return Ok(()) };
    let is_annotation = name.contains('@');
    let message =
        if is_annotation { Message::PROPERTY_NOT_WRITABLE } else { Message::PROPERTY_UNKNOWN };
    Err(Problem::property(message, &path(name)))
}

fn not_in_list(name: &str, value: &str) -> Problem {
    Problem::value(Message::PROPERTY_NOT_IN_LIST, &path(name), value)
}

fn path(name: &str) -> String {
    format!("Boot/{name}")
}

fn text<'a>(form: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, Problem> {
    let Some(value) = form.get(name) else { return Ok(None) };
    value
        .as_str()
        .map(Some)
        .ok_or_else(|| Problem::value(Message::PROPERTY_TYPE, &path(name), value))
}

fn read_uri(value: &Value) -> Result<Option<Url>, Problem> {
    if value.is_null() {
        return Ok(None);
    }
    let wrong = |message| {
        Problem::value(
            message,
            &path(HTTP_URI),
            value.as_str().map_or_else(|| value.to_string(), str::to_owned),
        )
    };
    let raw = value.as_str().ok_or_else(|| wrong(Message::PROPERTY_TYPE))?;
    if raw.is_empty() {
        return Ok(None);
    }
    let url = Url::parse(raw).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    url.map(Some).ok_or_else(|| wrong(Message::PROPERTY_FORMAT))
}
