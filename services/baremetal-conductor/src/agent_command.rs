//! The parameters of the commands that agents get. A step is named before its arguments, because agents log the beginning of a long command.
//! A config drive contains secrets, so these types have no `Debug`.

use agent_protocol::{DiskLayout, ImageInfo, ImageType};
use serde::Serialize;
use serde_json::{Map, Value};

#[derive(Default, Serialize)]
pub(crate) struct CommandParams {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) step: Option<StepParams>,
    /// The description of the machine, and everything else.
    #[serde(flatten)]
    pub(crate) more: Map<String, Value>,
}

/// The step that an agent runs.
#[derive(Serialize)]
pub(crate) struct StepParams {
    pub(crate) interface: &'static str,
    pub(crate) step: String,
    pub(crate) args: StepArgs,
}

#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum StepArgs {
    WriteImage(Box<WriteImage>),
    Requested(Map<String, Value>),
}

/// The arguments of the step `write_image`.
#[derive(Serialize)]
pub(crate) struct WriteImage {
    pub(crate) image_info: ImageInfo,
    /// The config drive in base64.
    pub(crate) configdrive: Option<String>,
}

impl CommandParams {
    /// Parameters of a command that runs no step.
    pub(crate) fn of(more: Map<String, Value>) -> CommandParams {
        CommandParams { step: None, more }
    }
}

/// Returns the type of an image that needs these partitions.
pub(crate) fn image_type(layout: Option<&DiskLayout>) -> ImageType {
    match layout {
        Some(_) => ImageType::Partition,
        None => ImageType::WholeDisk,
    }
}
