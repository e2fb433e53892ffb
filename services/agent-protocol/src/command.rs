//! Commands from the conductor to the agent: `POST /v1/commands/?wait=…&agent_token=…&record_version=…`.
//!
//! `record_version` is Bedplate only: the version of the node's record with which the conductor recorded the intent of the command. Each
//! command has a higher version than the commands before it, whichever conductor gives it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Names of commands, in the form `extension.command`.
pub mod name {
    /// Lists the clean steps of this machine.
    pub const GET_CLEAN_STEPS: &str = "clean.get_clean_steps";
    /// Runs one clean step; the agent answers before the step has ended.
    pub const EXECUTE_CLEAN_STEP: &str = "clean.execute_clean_step";
    /// Lists the deploy steps of this machine.
    pub const GET_DEPLOY_STEPS: &str = "deploy.get_deploy_steps";
    /// Runs one deploy step; the agent answers before the step has ended.
    pub const EXECUTE_DEPLOY_STEP: &str = "deploy.execute_deploy_step";
    /// Lists the service steps of this machine.
    pub const GET_SERVICE_STEPS: &str = "service.get_service_steps";
    /// Runs one service step; the agent answers before the step has ended.
    pub const EXECUTE_SERVICE_STEP: &str = "service.execute_service_step";
    /// Makes the written disk the next boot device; in UEFI mode, the agent writes the boot entry.
    pub const INSTALL_BOOTLOADER: &str = "image.install_bootloader";
    /// Returns the ids of the root partition and of the EFI system partition that `write_image` made for a partition image.
    pub const GET_PARTITION_UUIDS: &str = "standby.get_partition_uuids";
    /// Flushes all caches to disk.
    pub const SYNC: &str = "standby.sync";
    /// Sets the password of the rescue system; the agent answers and ends, and the machine stays on.
    pub const FINALIZE_RESCUE: &str = "rescue.finalize_rescue";
    /// Powers the machine off.
    pub const POWER_OFF: &str = "standby.power_off";
    /// Restarts the machine.
    pub const RUN_IMAGE: &str = "standby.run_image";
    /// Returns the agent's logs, base64 of tar.gz.
    pub const COLLECT_SYSTEM_LOGS: &str = "log.collect_system_logs";
}

/// Names of clean and deploy steps.
pub mod step {
    /// Clean step: wipes partition tables, RAID metadata and file system signatures from every disk.
    pub const ERASE_DEVICES_METADATA: &str = "erase_devices_metadata";
    /// Clean step: erases every disk completely, by the drive's own secure erase or by overwriting.
    pub const ERASE_DEVICES: &str = "erase_devices";
    /// Deploy step: writes an image, and a config drive if one is given; arguments `image_info`, `configdrive`.
    pub const WRITE_IMAGE: &str = "write_image";
    /// Deploy step: runs a container, whose program `bootc` installs it to the disk; arguments `image_source`, `configdrive`,
    /// `oci_pull_secret`. Our agent refuses the step, because its ramdisk has no podman.
    pub const EXECUTE_BOOTC_INSTALL: &str = "execute_bootc_install";
    /// Clean step of the RAID interface: makes the software RAID of the node's `target_raid_config`.
    pub const CREATE_CONFIGURATION: &str = "create_configuration";
    /// Clean step of the RAID interface: removes all software RAID.
    pub const DELETE_CONFIGURATION: &str = "delete_configuration";
    /// Deploy step of the RAID interface: makes the software RAID of its argument `raid_config`; `delete_existing` (default: true) removes
    /// the existing one first.
    pub const APPLY_CONFIGURATION: &str = "apply_configuration";
}

/// The body of `POST /v1/commands`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CommandRequest<P = Map<String, Value>> {
    /// `extension.command`.
    pub name: String,
    #[serde(default)]
    pub params: P,
}

/// A command that the agent has received since it started, and its outcome.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Command {
    /// The agent's id of the command.
    pub id: String,
    /// The name without its extension.
    pub command_name: String,
    pub command_status: CommandStatus,
    #[serde(default)]
    pub command_error: Option<CommandError>,
    #[serde(default)]
    pub command_result: Option<Value>,
    /// Bedplate only: progress of a long command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_progress: Option<Progress>,
}

/// The result of [`name::GET_CLEAN_STEPS`], [`name::GET_DEPLOY_STEPS`] or [`name::GET_SERVICE_STEPS`].
#[derive(Clone, Debug, Deserialize)]
pub struct StepList {
    /// The steps of each hardware manager, by the manager's name.
    #[serde(alias = "clean_steps", alias = "deploy_steps", alias = "service_steps")]
    pub steps: BTreeMap<String, Vec<ListedStep>>,
}

/// A step that the machine can run.
#[derive(Clone, Debug, Deserialize)]
pub struct ListedStep {
    /// An interface of the node: `deploy`, `raid`, …
    pub interface: String,
    pub step: String,
    /// Automated work runs steps with a priority above 0, the highest first.
    #[serde(default)]
    pub priority: u32,
    /// Whether the machine has to restart after the step.
    #[serde(default)]
    pub reboot_requested: bool,
    #[serde(default)]
    pub argsinfo: Option<BTreeMap<String, ArgumentInfo>>,
}

/// The description of an argument of a step.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct ArgumentInfo {
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default)]
    pub required: bool,
}

/// Progress of a command that writes to a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    pub done_bytes: u64,
    /// `None` when the agent does not know the size in advance.
    pub total_bytes: Option<u64>,
}

/// The state of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CommandStatus {
    #[serde(rename = "RUNNING")]
    Running,
    #[serde(rename = "SUCCEEDED")]
    Succeeded,
    /// `command_error` says why.
    #[serde(rename = "FAILED")]
    Failed,
    /// Not run: the machine has changed since the conductor listed its steps.
    #[serde(rename = "CLEAN_VERSION_MISMATCH")]
    CleanVersionMismatch,
}

/// The reason why a command failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandError {
    /// The kind of error: `ImageChecksumError`, `ImageDownloadError`, `DiskFull`, …
    #[serde(rename = "type", default)]
    pub kind: String,
    /// The HTTP status that comes closest.
    #[serde(default)]
    pub code: u16,
    /// Summary in one line of text.
    #[serde(default)]
    pub message: String,
    /// A sentence from which an operator knows what to do.
    #[serde(default)]
    pub details: String,
}

/// The answer to `GET /v1/commands/?agent_token=…`. Our agent requires the token for this route too.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CommandList {
    /// Every command since the agent started, oldest first.
    pub commands: Vec<Command>,
}
