//! The `Boot` object of a PATCH.

use serde_json::{Map, Value};
use url::Url;

use crate::boot::{BootOverride, OverrideDuration};
use crate::redfish::RedfishFace;
use crate::redfish::problem::Problem;
use crate::redfish::resource::Resource;

const ENABLED: &str = "BootSourceOverrideEnabled";
const TARGET: &str = "BootSourceOverrideTarget";
const MODE: &str = "BootSourceOverrideMode";
const HTTP_URI: &str = "HttpBootUri";

impl RedfishFace {
    /// The new override: the current one with the properties of `boot` merged in.
    pub(super) fn read_boot(
        &self,
        resource: &Resource,
        boot: &Value,
    ) -> Result<Option<BootOverride>, Problem> {
        // A service with a settings resource takes changes only there.
        if *resource == Resource::System && self.profile.boot.settings.is_some() {
            return Err(Problem::property_not_writable("Boot"));
        }
        let form = boot.as_object().ok_or_else(|| Problem::property_type("Boot", boot))?;
        self.refuse_unknown(form)?;

        let current = self.machine.boot_override();
        let lasting = match text(form, ENABLED)? {
            Some("Disabled") => None,
            Some("Once") => Some(OverrideDuration::Once),
            Some("Continuous") if self.profile.boot.continuous => Some(OverrideDuration::Always),
            Some(other) => return Err(Problem::property_not_in_list(&path(ENABLED), other)),
            None => current.as_ref().map(|boot| boot.lasting),
        };
        let target = match text(form, TARGET)? {
            Some(name) => {
                let known = self.boot_targets().find(|target| target.as_str() == name);
                known.ok_or_else(|| Problem::property_not_in_list(&path(TARGET), name))?.device()
            }
            None => current.as_ref().map(|boot| boot.device),
        };
        let mode = match text(form, MODE)? {
            Some(name) if self.boot_modes().contains(&name) => Some(self.machine.spec().firmware),
            Some(other) => return Err(Problem::property_not_in_list(&path(MODE), other)),
            None => current.as_ref().and_then(|boot| boot.mode),
        };
        let http_uri = match form.get(HTTP_URI) {
            Some(value) => read_uri(value)?,
            None => current.and_then(|boot| boot.http_uri),
        };

        Ok(match (lasting, target) {
            (Some(lasting), Some(device)) => {
                Some(BootOverride { device, lasting, mode, http_uri, lapses_at: None })
            }
            (None, _) | (_, None) => None,
        })
    }

    fn refuse_unknown(&self, form: &Map<String, Value>) -> Result<(), Problem> {
        let rules = &self.profile.boot;
        let known = |name: &str| {
            name == ENABLED
                || name == TARGET
                || (name == MODE && rules.has_mode)
                || (name == HTTP_URI && rules.http_uri)
        };
        match form.keys().find(|name| !known(name)) {
            Some(name) if name.contains('@') => Err(Problem::property_not_writable(&path(name))),
            Some(name) => Err(Problem::property_unknown(&path(name))),
            None => Ok(()),
        }
    }
}

fn path(name: &str) -> String {
    format!("Boot/{name}")
}

fn text<'a>(form: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, Problem> {
    let Some(value) = form.get(name) else { return Ok(None) };
    value.as_str().map(Some).ok_or_else(|| Problem::property_type(&path(name), value))
}

fn read_uri(value: &Value) -> Result<Option<Url>, Problem> {
    if value.is_null() {
        return Ok(None);
    }
    let raw = value.as_str().ok_or_else(|| Problem::property_type(&path(HTTP_URI), value))?;
    if raw.is_empty() {
        return Ok(None);
    }
    let url = Url::parse(raw).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    url.map(Some).ok_or_else(|| Problem::property_format(&path(HTTP_URI), raw))
}
