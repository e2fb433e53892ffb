//! What the conductor asks of an agent: `POST /v1/commands/?wait=…&agent_token=…`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Names of commands, as `extension.command`.
pub mod name {
    /// Lists the clean steps of this machine.
    pub const GET_CLEAN_STEPS: &str = "clean.get_clean_steps";
    /// Runs one clean step; does not wait.
    pub const EXECUTE_CLEAN_STEP: &str = "clean.execute_clean_step";
    /// Lists the deploy steps of this machine.
    pub const GET_DEPLOY_STEPS: &str = "deploy.get_deploy_steps";
    /// Runs one deploy step; does not wait.
    pub const EXECUTE_DEPLOY_STEP: &str = "deploy.execute_deploy_step";
    /// Makes the written disk the firmware's next boot: in UEFI mode, writes the boot entry.
    pub const INSTALL_BOOTLOADER: &str = "image.install_bootloader";
    /// Asked by the original conductor after `write_image`; a whole-disk image has none to tell.
    pub const GET_PARTITION_UUIDS: &str = "standby.get_partition_uuids";
    /// Flushes all caches to disk.
    pub const SYNC: &str = "standby.sync";
    /// Powers the machine off.
    pub const POWER_OFF: &str = "standby.power_off";
    /// Restarts the machine.
    pub const RUN_IMAGE: &str = "standby.run_image";
    /// Returns the agent's logs, base64 of tar.gz.
    pub const COLLECT_SYSTEM_LOGS: &str = "log.collect_system_logs";
}

/// Names of steps.
pub mod step {
    /// Clean: wipes partition tables, RAID and file system signatures from every disk.
    pub const ERASE_DEVICES_METADATA: &str = "erase_devices_metadata";
    /// Clean: erases every disk wholly, by the drive's own secure erase or by overwriting.
    pub const ERASE_DEVICES: &str = "erase_devices";
    /// Deploy: writes an image, and a config drive if given; args `image_info`, `configdrive`.
    pub const WRITE_IMAGE: &str = "write_image";
}

/// What is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CommandRequest {
    /// `extension.command`.
    pub name: String,
    /// Its arguments.
    #[serde(default)]
    pub params: Map<String, Value>,
}

/// One command an agent has been given since it started, with its outcome.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Command {
    /// The agent's id of it.
    pub id: String,
    /// The name without its extension.
    pub command_name: String,
    /// How far it is.
    pub command_status: CommandStatus,
    /// Why it failed.
    #[serde(default)]
    pub command_error: Option<CommandError>,
    /// What it returned.
    #[serde(default)]
    pub command_result: Option<Value>,
    /// Ours: how far a long command is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_progress: Option<Progress>,
}

/// How far a long command is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Bytes written to disk so far.
    pub done_bytes: u64,
    /// Bytes there will be in the end, where known.
    pub total_bytes: Option<u64>,
}

/// How far a command is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CommandStatus {
    /// Not finished.
    #[serde(rename = "RUNNING")]
    Running,
    /// Finished well.
    #[serde(rename = "SUCCEEDED")]
    Succeeded,
    /// Finished badly; `command_error` says why.
    #[serde(rename = "FAILED")]
    Failed,
    /// Not run: the machine has changed since its steps were listed.
    #[serde(rename = "CLEAN_VERSION_MISMATCH")]
    CleanVersionMismatch,
}

/// Why a command failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandError {
    /// A word for the kind of error: `ImageChecksumError`, `ImageDownloadError`, `DiskFull`, …
    #[serde(rename = "type", default)]
    pub kind: String,
    /// An HTTP status that fits.
    #[serde(default)]
    pub code: u16,
    /// One line.
    #[serde(default)]
    pub message: String,
    /// A sentence an operator can act on.
    #[serde(default)]
    pub details: String,
}

/// The answer to `GET /v1/commands/?agent_token=…`: oldest first. Ours wants the token here too.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CommandList {
    /// Every command since the agent started, oldest first.
    pub commands: Vec<Command>,
}
