//! Updates of firmware: `UpdateService.SimpleUpdate`, and the push of an image to `MultipartHttpPushUri` (DSP0266 §12.6).
//!
//! The emulator fetches no image. The file name of an image is `COMPONENT-VERSION.EXTENSION`: it tells the version that the component runs
//! afterwards, and the component unless the request names targets.

use http::StatusCode;
use http::request::Parts;
use serde_json::{Map, Value};
use url::Url;

use crate::redfish::answer::Answer;
use crate::redfish::face::RedfishFace;
use crate::redfish::forms::multipart::{self, Part};
use crate::redfish::problem::{Message, Problem};
use crate::redfish::resource::Resource;
use crate::redfish::task::TaskKind;
use crate::redfish::values::adapter_component;

const UPDATE: &str = "UpdateService.SimpleUpdate";

/// The parameters of `SimpleUpdate` (UpdateService schema, DSP8010). All except the image are optional.
const PARAMETERS: [&str; 7] = [
    "ImageURI",
    "TransferProtocol",
    "Targets",
    "Username",
    "Password",
    "ForceUpdate",
    "@Redfish.OperationApplyTime",
];

/// The parameters in the part `UpdateParameters` of a push.
const PUSH_PARAMETERS: [&str; 3] = ["Targets", "ForceUpdate", "@Redfish.OperationApplyTime"];

impl RedfishFace {
    /// `UpdateService.SimpleUpdate`.
    pub(super) fn simple_update(
        &self,
        action: &Resource,
        form: &Map<String, Value>,
    ) -> Result<Answer, Problem> {
        if let Some(name) = form.keys().find(|name| !PARAMETERS.contains(&name.as_str())) {
            return Err(Problem::parameter(Message::PARAMETER_UNKNOWN, UPDATE, name));
        }
        let missing = || Problem::parameter(Message::PARAMETER_MISSING, UPDATE, "ImageURI");
        let image = form.get("ImageURI").ok_or_else(missing)?;
        let wrong = |message| Problem::argument(message, UPDATE, "ImageURI", image);
        let image = image.as_str().ok_or_else(|| wrong(Message::PARAMETER_TYPE))?;
        let image = Url::parse(image).map_err(|_| wrong(Message::PARAMETER_FORMAT))?;
        if let Some(protocol) = form.get("TransferProtocol")
            && !["HTTP", "HTTPS"].iter().any(|known| protocol == known)
        {
            let wrong = Message::PARAMETER_NOT_IN_LIST;
            return Err(Problem::argument(wrong, UPDATE, "TransferProtocol", protocol));
        }
        let name = image.path_segments().and_then(|mut path| path.next_back());
        self.begin(action, name.unwrap_or_default(), form.get("Targets"))
    }

    /// A push of an image with its parameters.
    pub(super) fn push_update(
        &self,
        resource: &Resource,
        parts: &Parts,
        body: &[u8],
    ) -> Result<Answer, Problem> {
        let sent =
            multipart::read(parts, body).ok_or_else(|| Problem::of(Message::NOT_MULTIPART))?;
        let part = |name: &str| sent.iter().find(|part| part.name == name);
        let missing = |name| Problem::property(Message::PROPERTY_MISSING, name);
        let parameters = part("UpdateParameters").ok_or_else(|| missing("UpdateParameters"))?;
        let malformed = |_| Problem::of(Message::MALFORMED_JSON);
        let form: Map<String, Value> =
            serde_json::from_slice(parameters.body).map_err(malformed)?;
        if let Some(name) = form.keys().find(|name| !PUSH_PARAMETERS.contains(&name.as_str())) {
            return Err(Problem::property(Message::PROPERTY_UNKNOWN, name));
        }
        let Part { file_name, body, .. } =
            part("UpdateFile").ok_or_else(|| missing("UpdateFile"))?;
        if body.is_empty() {
            return Err(missing("UpdateFile"));
        }
        self.begin(resource, file_name.as_deref().unwrap_or_default(), form.get("Targets"))
    }

    /// Begins the update with the image of this name.
    fn begin(&self, at: &Resource, name: &str, targets: Option<&Value>) -> Result<Answer, Problem> {
        let (full, ends) =
            self.machine.faults().with(|faults| (faults.job_queue_full, faults.updates_never_end));
        if full || (self.machine.chassis().updates.are_running() && !ends) {
            return Err(Problem::busy(Message::JOB_QUEUE_FULL, 1));
        }
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        let (prefix, version) = stem.split_once('-').unwrap_or((stem, stem));
        let component = match targets {
            None => self.component_called(prefix),
            Some(targets) => Some(self.component_of(targets)?),
        };
        let no_fit = || Problem::of(Message::IMAGE_UNFIT);
        let component = component.ok_or_else(no_fit)?;
        let rules = &self.profile.updates;
        let applies = if component == "bios" { rules.applies } else { rules.adapters_apply };
        let id = self.machine.begin_update(&component, version, applies);
        Ok(self.start_task(TaskKind::Update { id, target: at.path.clone() }))
    }

    /// The component that an image is for, by the beginning of its name.
    fn component_called(&self, prefix: &str) -> Option<String> {
        match prefix {
            "bios" | "bmc" => Some(prefix.to_owned()),
            "nic" => self.machine.spec().nics.first().map(adapter_component),
            _ => None,
        }
    }

    fn component_of(&self, targets: &Value) -> Result<String, Problem> {
        let wrong = |message| Problem::argument(message, UPDATE, "Targets", targets);
        let paths = targets.as_array().ok_or_else(|| wrong(Message::PARAMETER_TYPE))?;
        let mut components = Vec::new();
        for path in paths {
            let path = path.as_str().ok_or_else(|| wrong(Message::PARAMETER_TYPE))?;
            let component = self.component_at(path);
            components.push(component.ok_or_else(|| wrong(Message::PARAMETER_NOT_IN_LIST))?);
        }
        components.into_iter().next().ok_or_else(|| wrong(Message::PARAMETER_NOT_IN_LIST))
    }

    /// The component whose device or inventory is at `path`.
    fn component_at(&self, path: &str) -> Option<String> {
        let resource = Resource::find(path, self)?;
        let path = resource.path.trim_end_matches('/');
        let is_listed = path.contains("/FirmwareInventory/");
        if path.contains("/NetworkAdapters/") || (is_listed && resource.row.each.is_some()) {
            return self.machine.spec().nics.get(resource.index).map(adapter_component);
        }
        let is_bios = path.contains("/Systems/") || path.ends_with("/FirmwareInventory/BIOS");
        let is_bmc = path.contains("/Managers/") || path.ends_with("/FirmwareInventory/BMC");
        if is_bios { Some("bios".to_owned()) } else { is_bmc.then(|| "bmc".to_owned()) }
    }

    /// The answer to a task monitor whose task failed.
    pub(in crate::redfish) fn failed_task(task: &Value) -> Answer {
        let body = serde_json::json!({"error": {
            "code": task["Messages"][0]["MessageId"],
            "message": task["Messages"][0]["Message"],
            "@Message.ExtendedInfo": task["Messages"],
        }});
        Answer::json(StatusCode::BAD_REQUEST, body)
    }
}
