//! The bodies of POST and PATCH requests, and their effects.

mod boot;
mod media;

use std::time::Duration;

use http::request::Parts;
use http::{StatusCode, header};
use serde_json::{Map, Value, json};

use crate::log::Protocol;
use crate::machine::Identify;
use crate::profile::{IfMatch, ResetAnswer};
use crate::redfish::RedfishFace;
use crate::redfish::answer::Answer;
use crate::redfish::problem::Problem;
use crate::redfish::resource::Resource;

const RESET: &str = "ComputerSystem.Reset";

impl RedfishFace {
    pub(super) fn post(
        &self,
        resource: &Resource,
        parts: &Parts,
        body: &[u8],
    ) -> Result<Answer, Problem> {
        let form = read_form(parts, body)?;
        let missing = || Problem::no_such_resource(parts.uri.path());
        if *resource == Resource::Sessions {
            self.open_session(&form)
        } else if *resource == Resource::Reset {
            self.reset(&form)
        } else if *resource == Resource::ClearLog {
            self.machine.clear_events(Protocol::Redfish);
            Ok(Answer::empty(StatusCode::NO_CONTENT))
        } else if let Resource::InsertMedia(index) = *resource {
            self.insert_media(index, &form).unwrap_or_else(|| Err(missing()))
        } else if let Resource::EjectMedia(index) = *resource {
            self.eject_media(index).unwrap_or_else(|| Err(missing()))
        } else {
            Err(missing())
        }
    }

    pub(super) fn patch(
        &self,
        resource: &Resource,
        parts: &Parts,
        body: &[u8],
    ) -> Result<Answer, Problem> {
        self.check_tag(resource, parts)?;
        let form = read_form(parts, body)?;
        if form.is_empty() {
            return Err(Problem::empty_json());
        }
        let missing = || Problem::no_such_resource(parts.uri.path());
        if *resource == Resource::System || *resource == Resource::SystemSettings {
            self.patch_system(resource, &form)?;
        } else if *resource == Resource::SessionService {
            self.patch_session_service(&form)?;
        } else if let Resource::MediaDrive(index) = *resource {
            self.patch_media(index, &form).unwrap_or_else(|| Err(missing()))?;
        }
        // DSP0266 §7.7: the answer to a change contains the changed resource or nothing.
        Ok(Answer::json(StatusCode::OK, self.document(resource).ok_or_else(missing)?))
    }

    /// DSP0266 §6.5: a change may or must name the entity tag that it is based on.
    fn check_tag(&self, resource: &Resource, parts: &Parts) -> Result<(), Problem> {
        let sent = parts.headers.get(header::IF_MATCH).map(|value| value.as_bytes());
        let document = self.document(resource).unwrap_or_default();
        let current = self.entity_tag(resource, &document);
        match (self.profile.if_match, sent) {
            (IfMatch::Ignored, _) | (IfMatch::Honoured, None) => Ok(()),
            (IfMatch::Required, None) => Err(Problem::tag_required()),
            (IfMatch::Honoured | IfMatch::Required, Some(sent)) => {
                let matches =
                    |tag: &[u8]| tag == b"*" || Some(tag) == current.as_deref().map(str::as_bytes);
                let any = sent.split(|byte| *byte == b',').any(|tag| matches(tag.trim_ascii()));
                if any { Ok(()) } else { Err(Problem::tag_differs()) }
            }
        }
    }

    /// `ComputerSystem.Reset` (DSP0268, Resource schema).
    fn reset(&self, form: &Map<String, Value>) -> Result<Answer, Problem> {
        if let Some(name) = form.keys().find(|name| *name != "ResetType") {
            return Err(Problem::parameter_unknown(RESET, name));
        }
        let value =
            form.get("ResetType").ok_or_else(|| Problem::parameter_missing(RESET, "ResetType"))?;
        let asked =
            value.as_str().ok_or_else(|| Problem::parameter_type(RESET, "ResetType", value))?;
        let known = self.profile.reset.types.iter().find(|reset| reset.as_str() == asked);
        let reset =
            known.ok_or_else(|| Problem::parameter_not_in_list(RESET, "ResetType", asked))?;

        if let Some(refusal) = &self.profile.reset.already_so
            && reset.is_already_so(self.machine.power_now())
        {
            return Err(Problem::vendor(refusal));
        }
        let lasting = self
            .machine
            .request_power(Protocol::Redfish, reset.request())
            .map_err(|_| Problem::while_off())?;
        Ok(match self.profile.reset.answer {
            ResetAnswer::NoContent => Answer::empty(StatusCode::NO_CONTENT),
            ResetAnswer::Message => Answer::json(StatusCode::OK, success()),
            ResetAnswer::Task => self.start_task(lasting),
        })
    }

    fn patch_system(&self, resource: &Resource, form: &Map<String, Value>) -> Result<(), Problem> {
        let boot = form.get("Boot").map(|boot| self.read_boot(resource, boot)).transpose()?;
        let mut identify = None;
        for (name, value) in form.iter().filter(|(name, _)| *name != "Boot") {
            identify = Some(self.read_identify(resource, name, value)?);
        }
        if let Some(boot) = boot {
            self.machine.set_boot(Protocol::Redfish, boot);
        }
        if let Some(identify) = identify {
            self.machine.set_identify(Protocol::Redfish, identify);
        }
        Ok(())
    }

    /// The identify light: `IndicatorLED`, or since 2020.3 `LocationIndicatorActive`.
    fn read_identify(
        &self,
        resource: &Resource,
        name: &str,
        value: &Value,
    ) -> Result<Identify, Problem> {
        let document = self.document(resource).unwrap_or_default();
        let lit = match (name, document.get(name)) {
            ("IndicatorLED", Some(_)) => match value.as_str() {
                Some("Lit" | "Blinking") => true,
                Some("Off") => false,
                Some(other) => return Err(Problem::property_not_in_list(name, other)),
                None => return Err(Problem::property_type(name, value)),
            },
            ("LocationIndicatorActive", Some(_)) => {
                value.as_bool().ok_or_else(|| Problem::property_type(name, value))?
            }
            (_, Some(_)) => return Err(Problem::property_not_writable(name)),
            (_, None) => return Err(Problem::property_unknown(name)),
        };
        Ok(if lit { Identify::On } else { Identify::Off })
    }

    fn patch_session_service(&self, form: &Map<String, Value>) -> Result<(), Problem> {
        if let Some(name) = form.keys().find(|name| *name != "SessionTimeout") {
            return Err(Problem::property_not_writable(name));
        }
        let Some(value) = form.get("SessionTimeout") else { return Ok(()) };
        let seconds =
            value.as_u64().ok_or_else(|| Problem::property_type("SessionTimeout", value))?;
        // The limits of the SessionService schema.
        if !(30..=86_400).contains(&seconds) {
            return Err(Problem::property_not_in_list("SessionTimeout", &seconds.to_string()));
        }
        self.sessions().timeout = Duration::from_secs(seconds);
        Ok(())
    }
}

/// Parses a body that must be a JSON object. No body counts as an empty object.
fn read_form(parts: &Parts, body: &[u8]) -> Result<Map<String, Value>, Problem> {
    if body.is_empty() {
        return Ok(Map::new());
    }
    let content_type =
        parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media_type = content_type.and_then(|value| value.split(';').next()).map(str::trim);
    if !media_type.is_some_and(|media_type| media_type.eq_ignore_ascii_case("application/json")) {
        return Err(Problem::not_json());
    }
    let value: Value = serde_json::from_slice(body).map_err(|_| Problem::malformed_json())?;
    match value {
        Value::Object(form) => Ok(form),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(Problem::not_an_object())
        }
    }
}

/// A success message, which some services send as a body.
fn success() -> Value {
    json!({
        "error": {
            "code": "Base.1.13.Success",
            "message": "Done.",
            "@Message.ExtendedInfo": [{"@odata.type": "#Message.v1_1_1.Message", "MessageId": "Base.1.13.Success"}],
        }
    })
}
