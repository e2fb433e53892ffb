//! Inserts images into virtual drives and ejects them.

use serde_json::{Map, Value};
use url::Url;

use crate::log::Protocol;
use crate::profile::{MediaDrive, MediaRules};
use crate::redfish::face::RedfishFace;
use crate::redfish::problem::{Message, Problem};
use crate::redfish::resource::Resource;

const INSERT: &str = "VirtualMedia.InsertMedia";

/// The parameters of InsertMedia (VirtualMedia schema, DSP8010). All except the image are optional.
const PARAMETERS: [&str; 7] = [
    "Image",
    "Inserted",
    "WriteProtected",
    "TransferMethod",
    "TransferProtocolType",
    "UserName",
    "Password",
];

impl RedfishFace {
    /// `InsertMedia` into the drive of `action`.
    pub(super) fn insert_media(
        &self,
        action: &Resource,
        form: &Map<String, Value>,
    ) -> Result<(), Problem> {
        if let Some(name) = form.keys().find(|name| !PARAMETERS.contains(&name.as_str())) {
            return Err(Problem::parameter(Message::PARAMETER_UNKNOWN, INSERT, name));
        }
        for name in ["Inserted", "WriteProtected"] {
            if let Some(value) = form.get(name).filter(|value| !value.is_boolean()) {
                return Err(Problem::argument(Message::PARAMETER_TYPE, INSERT, name, value));
            }
        }
        let missing = || Problem::parameter(Message::PARAMETER_MISSING, INSERT, "Image");
        let value = form.get("Image").ok_or_else(missing)?;
        let wrong = || Problem::argument(Message::PARAMETER_TYPE, INSERT, "Image", value);
        let raw = value.as_str().ok_or_else(wrong)?;
        let malformed = || Problem::argument(Message::PARAMETER_FORMAT, INSERT, "Image", raw);
        self.put(action, read_image(raw).ok_or_else(malformed)?)
    }

    /// A PATCH of a drive without actions: `Image` is the new contents.
    pub(super) fn patch_media(
        &self,
        drive: &Resource,
        form: &Map<String, Value>,
    ) -> Result<(), Problem> {
        if let Some(name) = form.keys().find(|name| !PARAMETERS.contains(&name.as_str())) {
            return Err(Problem::property(Message::PROPERTY_UNKNOWN, name));
        }
        let inserted = form.get("Inserted").is_none_or(|value| value != &Value::Bool(false));
        let Some(value) = form.get("Image") else {
            return if inserted { Ok(()) } else { self.eject_media(drive) };
        };
        if value.is_null() || !inserted {
            return self.eject_media(drive);
        }
        let wrong = || Problem::value(Message::PROPERTY_TYPE, "Image", value);
        let raw = value.as_str().ok_or_else(wrong)?;
        let malformed = || Problem::value(Message::PROPERTY_FORMAT, "Image", raw);
        self.put(drive, read_image(raw).ok_or_else(malformed)?)
    }

    /// Empties the drive of `resource`, which is the drive or its action.
    pub(super) fn eject_media(&self, resource: &Resource) -> Result<(), Problem> {
        let (rules, drive) = self.drive_of(resource)?;
        if let (Some(refusal), None) = (&rules.empty, self.machine.media_in(drive)) {
            return Err(Problem::vendor(refusal));
        }
        self.machine.eject_media(Protocol::Redfish, drive);
        Ok(())
    }

    fn put(&self, resource: &Resource, image: Url) -> Result<(), Problem> {
        let (rules, drive) = self.drive_of(resource)?;
        if let (Some(refusal), Some(_)) = (&rules.full, self.machine.media_in(drive)) {
            return Err(Problem::vendor(refusal));
        }
        self.machine.insert_media(Protocol::Redfish, drive, image);
        Ok(())
    }

    fn drive_of(
        &self,
        resource: &Resource,
    ) -> Result<(&'static MediaRules, &'static MediaDrive), Problem> {
        let rules = self.profile.media.as_ref();
        let found = rules.and_then(|rules| Some((rules, rules.drives.get(resource.index)?)));
        found.ok_or_else(|| Problem::no_such_resource(&resource.path))
    }
}

/// The URL of an image. `None` for a protocol that a BMC cannot read from (`TransferProtocolType`, DSP8010).
fn read_image(raw: &str) -> Option<Url> {
    let url = Url::parse(raw).ok()?;
    matches!(url.scheme(), "http" | "https" | "nfs" | "cifs" | "smb").then_some(url)
}
