//! The bodies of POST and PATCH requests, and their effects.

mod account;
mod bios;
mod boot;
mod clock;
mod configuration;
mod media;
mod multipart;
mod subscription;
mod update;
mod volume;

use std::time::Duration;

use http::request::Parts;
use http::{StatusCode, header};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::log::Protocol;
use crate::machine::Identify;
use crate::profile::{IfMatch, Patch, Post, ResetAnswer};
use crate::redfish::answer::Answer;
use crate::redfish::face::RedfishFace;
use crate::redfish::problem::{Message, Problem};
use crate::redfish::resource::{Resource, tag_of};
use crate::redfish::schema::RESET_TYPES;
use crate::redfish::task::TaskKind;

const RESET: &str = "ComputerSystem.Reset";

impl RedfishFace {
    pub(super) fn post(
        &self,
        resource: &Resource,
        action: Post,
        parts: &Parts,
        body: &[u8],
    ) -> Result<Answer, Problem> {
        let form = match action == Post::PushUpdate {
            true => Map::new(),
            false => read_form(parts, body)?,
        };
        match action {
            Post::OpenSession => return self.open_session(resource, &form),
            Post::Reset => return self.reset(&form),
            Post::SimpleUpdate => return self.simple_update(resource, &form),
            Post::PushUpdate => return self.push_update(resource, parts, body),
            Post::ImportConfiguration => return self.import_configuration(&form),
            Post::Subscribe => return self.subscribe(resource, &form),
            Post::CreateVolume => return self.create_volume(resource, &form),
            Post::ClearLog => self.machine.clear_events(Protocol::Redfish),
            Post::InsertMedia => self.insert_media(resource, &form)?,
            Post::EjectMedia => self.eject_media(resource)?,
            Post::ResetBios => self.machine.reset_bios(Protocol::Redfish),
            Post::ResetKeys => self.reset_keys(&form)?,
        }
        Ok(Answer::empty(StatusCode::NO_CONTENT))
    }

    pub(super) fn patch(
        &self,
        resource: &Resource,
        properties: Patch,
        parts: &Parts,
        body: &[u8],
    ) -> Result<Answer, Problem> {
        let document = resource.document(self).unwrap_or_default();
        self.check_tag(tag_of(&document), parts)?;
        let form = read_form(parts, body)?;
        if form.is_empty() {
            return Err(Problem::of(Message::EMPTY_JSON));
        }
        match properties {
            Patch::Account => self.patch_account(&document, &form)?,
            Patch::System | Patch::Identify => self.patch_system(properties, &document, &form)?,
            Patch::Manager => self.patch_manager(&document, &form)?,
            Patch::SessionService => self.patch_session_service(&form)?,
            Patch::Media => self.patch_media(resource, &form)?,
            Patch::SecureBoot => self.patch_secure_boot(&form)?,
            Patch::Bios => self.patch_bios(&form)?,
        }
        // DSP0266 §7.7: the answer to a change contains the changed resource or nothing.
        let changed = Resource::find(&resource.path, self);
        let document = changed.and_then(|changed| changed.document(self)).unwrap_or_default();
        Ok(Answer::json(StatusCode::OK, document))
    }

    /// DSP0266 §6.5: a change may or must name the entity tag that it is based on.
    fn check_tag(&self, current: Option<&str>, parts: &Parts) -> Result<(), Problem> {
        let sent = parts.headers.get(header::IF_MATCH).map(|value| value.as_bytes());
        match (self.profile.if_match, sent) {
            (IfMatch::Ignored, _) | (IfMatch::Honoured, None) => Ok(()),
            (IfMatch::Required, None) => Err(Problem::of(Message::TAG_REQUIRED)),
            (IfMatch::Honoured | IfMatch::Required, Some(sent)) => {
                let matches = |tag: &[u8]| tag == b"*" || Some(tag) == current.map(str::as_bytes);
                let any = sent.split(|byte| *byte == b',').any(|tag| matches(tag.trim_ascii()));
                if any { Ok(()) } else { Err(Problem::of(Message::TAG_DIFFERS)) }
            }
        }
    }

    /// `ComputerSystem.Reset` (DSP0268, Resource schema).
    fn reset(&self, form: &Map<String, Value>) -> Result<Answer, Problem> {
        if let Some(name) = form.keys().find(|name| *name != "ResetType") {
            return Err(Problem::parameter(Message::PARAMETER_UNKNOWN, RESET, name));
        }
        let missing = || Problem::parameter(Message::PARAMETER_MISSING, RESET, "ResetType");
        let value = form.get("ResetType").ok_or_else(missing)?;
        let wrong = |message| Problem::argument(message, RESET, "ResetType", value);
        let asked = value.as_str().ok_or_else(|| wrong(Message::PARAMETER_TYPE))?;
        let (_, request, power) = RESET_TYPES
            .into_iter()
            .find(|(name, ..)| {
                *name == asked && self.profile.reset.types.iter().any(|one| one == name)
            })
            .ok_or_else(|| {
                Problem::argument(Message::PARAMETER_NOT_IN_LIST, RESET, "ResetType", asked)
            })?;

        if let Some(refusal) = &self.profile.reset.already_so
            && power == Some(self.machine.power_now().on)
        {
            return Err(Problem::vendor(refusal));
        }
        let lasting = self
            .machine
            .request_power(Protocol::Redfish, request)
            .map_err(|_| Problem::of(Message::WHILE_OFF))?;
        Ok(match self.profile.reset.answer {
            ResetAnswer::NoContent => Answer::empty(StatusCode::NO_CONTENT),
            ResetAnswer::Message => Answer::json(StatusCode::OK, success()),
            ResetAnswer::Task => {
                self.start_task(TaskKind::Reset { ends_at: Instant::now() + lasting })
            }
        })
    }

    /// Starts a task. The answer is 202 with the task and the address of its monitor.
    fn start_task(&self, kind: TaskKind) -> Answer {
        let id = self.tasks().start(kind);
        let task = Resource::find(&format!("/redfish/v1/TaskService/Tasks/{id}"), self);
        let body = task.and_then(|task| task.document(self)).unwrap_or_default();
        let monitor = body["TaskMonitor"].as_str().unwrap_or_default().to_owned();
        Answer::json(StatusCode::ACCEPTED, body)
            .with("location", monitor)
            .with("retry-after", "1".to_owned())
    }

    fn patch_system(
        &self,
        properties: Patch,
        document: &Value,
        form: &Map<String, Value>,
    ) -> Result<(), Problem> {
        let is_boot = |name: &str| properties == Patch::System && name == "Boot";
        let boot = form.get("Boot").filter(|_| is_boot("Boot"));
        let boot = boot.map(|boot| self.read_boot(&document["Boot"], boot)).transpose()?;
        let mut identify = None;
        for (name, value) in form.iter().filter(|(name, _)| !is_boot(name)) {
            identify = Some(read_identify(document, name, value)?);
        }
        if let Some(mode) = boot.as_ref().and_then(|boot| boot.mode)
            && let Some(time) = self.profile.boot.mode_changes
        {
            self.machine.change_boot_mode(Protocol::Redfish, mode, time);
        }
        if let Some(boot) = boot.and_then(|boot| boot.boot_override) {
            self.machine.set_boot(Protocol::Redfish, boot);
        }
        if let Some(identify) = identify {
            self.machine.set_identify(Protocol::Redfish, identify);
        }
        Ok(())
    }

    fn patch_session_service(&self, form: &Map<String, Value>) -> Result<(), Problem> {
        if let Some(name) = form.keys().find(|name| *name != "SessionTimeout") {
            return Err(Problem::property(Message::PROPERTY_NOT_WRITABLE, name));
        }
        let Some(value) = form.get("SessionTimeout") else { return Ok(()) };
        let wrong = |message| Problem::value(message, "SessionTimeout", value);
        let seconds = value.as_u64().ok_or_else(|| wrong(Message::PROPERTY_TYPE))?;
        // The limits of the SessionService schema.
        if !(30..=86_400).contains(&seconds) {
            return Err(wrong(Message::PROPERTY_NOT_IN_LIST));
        }
        self.sessions().timeout = Duration::from_secs(seconds);
        Ok(())
    }
}

/// The identify light: `IndicatorLED`, or since 2020.3 `LocationIndicatorActive`.
fn read_identify(document: &Value, name: &str, value: &Value) -> Result<Identify, Problem> {
    let wrong = || Problem::value(Message::PROPERTY_TYPE, name, value);
    let lit = match (name, document.get(name)) {
        ("IndicatorLED", Some(_)) => match value.as_str().ok_or_else(wrong)? {
            "Lit" | "Blinking" => true,
            "Off" => false,
            other => return Err(Problem::value(Message::PROPERTY_NOT_IN_LIST, name, other)),
        },
        ("LocationIndicatorActive", Some(_)) => value.as_bool().ok_or_else(wrong)?,
        (_, Some(_)) => return Err(Problem::property(Message::PROPERTY_NOT_WRITABLE, name)),
        (_, None) => return Err(Problem::property(Message::PROPERTY_UNKNOWN, name)),
    };
    Ok(if lit { Identify::On } else { Identify::Off })
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
        return Err(Problem::of(Message::NOT_JSON));
    }
    let value: Value =
        serde_json::from_slice(body).map_err(|_| Problem::of(Message::MALFORMED_JSON))?;
    match value {
        Value::Object(form) => Ok(form),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(Problem::of(Message::NOT_AN_OBJECT))
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
