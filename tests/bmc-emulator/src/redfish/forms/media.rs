//! Inserts images into virtual drives and ejects them.

use http::StatusCode;
use serde_json::{Map, Value};
use url::Url;

use crate::log::Protocol;
use crate::profile::{MediaDrive, MediaRules};
use crate::redfish::RedfishFace;
use crate::redfish::answer::Answer;
use crate::redfish::problem::Problem;

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
    /// `InsertMedia`. `None` if there is no such drive.
    pub(super) fn insert_media(
        &self,
        index: usize,
        form: &Map<String, Value>,
    ) -> Option<Result<Answer, Problem>> {
        let (rules, drive) = self.drive_at(index)?;
        Some(self.insert(rules, drive, form))
    }

    fn insert(
        &self,
        rules: &MediaRules,
        drive: &'static MediaDrive,
        form: &Map<String, Value>,
    ) -> Result<Answer, Problem> {
        if let Some(name) = form.keys().find(|name| !PARAMETERS.contains(&name.as_str())) {
            return Err(Problem::parameter_unknown(INSERT, name));
        }
        for name in ["Inserted", "WriteProtected"] {
            if let Some(value) = form.get(name).filter(|value| !value.is_boolean()) {
                return Err(Problem::parameter_type(INSERT, name, value));
            }
        }
        let value = form.get("Image").ok_or_else(|| Problem::parameter_missing(INSERT, "Image"))?;
        let raw = value.as_str().ok_or_else(|| Problem::parameter_type(INSERT, "Image", value))?;
        let image =
            read_image(raw).ok_or_else(|| Problem::parameter_format(INSERT, "Image", raw))?;
        self.put(rules, drive, image)?;
        Ok(Answer::empty(StatusCode::NO_CONTENT))
    }

    /// `EjectMedia`. `None` if there is no such drive.
    pub(super) fn eject_media(&self, index: usize) -> Option<Result<Answer, Problem>> {
        let (rules, drive) = self.drive_at(index)?;
        Some(self.empty(rules, drive).map(|()| Answer::empty(StatusCode::NO_CONTENT)))
    }

    /// A PATCH of a drive without actions: `Image` is the new contents.
    pub(super) fn patch_media(
        &self,
        index: usize,
        form: &Map<String, Value>,
    ) -> Option<Result<(), Problem>> {
        let (rules, drive) = self.drive_at(index)?;
        Some(self.patch_drive(rules, drive, form))
    }

    fn patch_drive(
        &self,
        rules: &MediaRules,
        drive: &'static MediaDrive,
        form: &Map<String, Value>,
    ) -> Result<(), Problem> {
        if let Some(name) = form.keys().find(|name| !PARAMETERS.contains(&name.as_str())) {
            return Err(Problem::property_unknown(name));
        }
        let inserted = form.get("Inserted").is_none_or(|value| value != &Value::Bool(false));
        let Some(value) = form.get("Image") else {
            return if inserted { Ok(()) } else { self.empty(rules, drive) };
        };
        if value.is_null() || !inserted {
            return self.empty(rules, drive);
        }
        let raw = value.as_str().ok_or_else(|| Problem::property_type("Image", value))?;
        let image = read_image(raw).ok_or_else(|| Problem::property_format("Image", raw))?;
        self.put(rules, drive, image)
    }

    fn put(
        &self,
        rules: &MediaRules,
        drive: &'static MediaDrive,
        image: Url,
    ) -> Result<(), Problem> {
        if let (Some(refusal), Some(_)) = (&rules.full, self.machine.media_in(drive)) {
            return Err(Problem::vendor(refusal));
        }
        self.machine.insert_media(Protocol::Redfish, drive, image);
        Ok(())
    }

    fn empty(&self, rules: &MediaRules, drive: &MediaDrive) -> Result<(), Problem> {
        if let (Some(refusal), None) = (&rules.empty, self.machine.media_in(drive)) {
            return Err(Problem::vendor(refusal));
        }
        self.machine.eject_media(Protocol::Redfish, drive);
        Ok(())
    }

    fn drive_at(&self, index: usize) -> Option<(&'static MediaRules, &'static MediaDrive)> {
        let rules = self.profile.media.as_ref()?;
        Some((rules, rules.drives.get(index)?))
    }
}

/// The URL of an image. `None` for a protocol that a BMC cannot read from (`TransferProtocolType`, DSP8010).
fn read_image(raw: &str) -> Option<Url> {
    let url = Url::parse(raw).ok()?;
    matches!(url.scheme(), "http" | "https" | "nfs" | "cifs" | "smb").then_some(url)
}
