//! The commands of the conductor, parsed before anything is done.

use agent_protocol::{CommandRequest, ImageInfo, name, step};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::rescue::RescuePassword;

/// A command with its parsed parameters.
#[derive(Clone, Debug)]
pub enum Task {
    CleanSteps,
    Clean(StepRequest, CleanStep),
    DeploySteps,
    /// `deploy.execute_deploy_step` with `write_image`.
    WriteImage(StepRequest, Box<WriteImage>),
    /// `deploy.execute_deploy_step` with `apply_configuration`.
    ApplyRaid(StepRequest, ApplyRaid),
    /// `service.get_service_steps`. This agent has no service steps.
    ServiceSteps,
    PartitionUuids,
    InstallBootloader,
    Sync,
    FinalizeRescue(RescuePassword),
    PowerOff,
    RunImage,
    CollectLogs,
}

/// The clean steps of this agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CleanStep {
    Erase(Erasure),
    CreateRaid,
    DeleteRaid,
}

/// How much of each disk is erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Erasure {
    Metadata,
    Everything,
}

/// The parameters of a step.
#[derive(Clone, Debug, Deserialize)]
pub struct StepRequest {
    /// The step itself: `{interface, step, args}`.
    pub step: Map<String, Value>,
    /// The node that the step is for.
    #[serde(default)]
    pub node: Map<String, Value>,
    /// Versions of hardware managers when the steps were listed.
    #[serde(default, alias = "deploy_version")]
    pub clean_version: Option<Map<String, Value>>,
}

/// The arguments of `write_image`.
#[derive(Clone, Debug, Deserialize)]
pub struct WriteImage {
    pub image_info: ImageInfo,
    /// The config drive, as base64 of gzip of a file system.
    #[serde(default)]
    pub configdrive: Option<String>,
}

/// The arguments of `apply_configuration`.
#[derive(Clone, Debug, Deserialize)]
pub struct ApplyRaid {
    pub raid_config: Map<String, Value>,
    /// Whether the existing arrays are removed first.
    #[serde(default = "yes")]
    pub delete_existing: bool,
}

fn yes() -> bool {
    true
}

/// The reasons why a command cannot be parsed.
#[derive(Debug, thiserror::Error)]
pub enum BadCommand {
    #[error("unknown command {0:?}")]
    UnknownCommand(String),
    #[error("unknown {kind} step {step:?}")]
    UnknownStep {
        /// `clean`, `deploy` or `service`.
        kind: &'static str,
        step: String,
    },
    #[error(
        "this agent does not install containers, because its ramdisk has no podman; boot a released ironic-python-agent"
    )]
    NoPodman,
    #[error("the parameters of {command} are not understood")]
    Parameters { command: String, source: serde_json::Error },
}

impl Task {
    /// Parses a request.
    pub fn parse(request: CommandRequest) -> Result<Task, BadCommand> {
        let CommandRequest { name: command, params } = request;
        Ok(match command.as_str() {
            name::GET_CLEAN_STEPS => Task::CleanSteps,
            name::EXECUTE_CLEAN_STEP => {
                let request: StepRequest = read(&command, Value::Object(params))?;
                let step = match step_name(&request) {
                    step::ERASE_DEVICES_METADATA => CleanStep::Erase(Erasure::Metadata),
                    step::ERASE_DEVICES => CleanStep::Erase(Erasure::Everything),
                    step::CREATE_CONFIGURATION => CleanStep::CreateRaid,
                    step::DELETE_CONFIGURATION => CleanStep::DeleteRaid,
                    other => return Err(unknown("clean", other)),
                };
                Task::Clean(request, step)
            }
            name::GET_DEPLOY_STEPS => Task::DeploySteps,
            name::EXECUTE_DEPLOY_STEP => {
                let request: StepRequest = read(&command, Value::Object(params))?;
                let arguments = request.step.get("args").cloned().unwrap_or_default();
                match step_name(&request) {
                    step::WRITE_IMAGE => {
                        Task::WriteImage(request, Box::new(read(&command, arguments)?))
                    }
                    step::APPLY_CONFIGURATION => {
                        Task::ApplyRaid(request, read(&command, arguments)?)
                    }
                    step::EXECUTE_BOOTC_INSTALL => return Err(BadCommand::NoPodman),
                    other => return Err(unknown("deploy", other)),
                }
            }
            name::GET_SERVICE_STEPS => Task::ServiceSteps,
            name::EXECUTE_SERVICE_STEP => {
                let request: StepRequest = read(&command, Value::Object(params))?;
                return Err(unknown("service", step_name(&request)));
            }
            name::GET_PARTITION_UUIDS => Task::PartitionUuids,
            name::INSTALL_BOOTLOADER => Task::InstallBootloader,
            name::SYNC => Task::Sync,
            name::FINALIZE_RESCUE => Task::FinalizeRescue(read(&command, Value::Object(params))?),
            name::POWER_OFF => Task::PowerOff,
            name::RUN_IMAGE => Task::RunImage,
            name::COLLECT_SYSTEM_LOGS => Task::CollectLogs,
            other => return Err(BadCommand::UnknownCommand(other.chars().take(100).collect())),
        })
    }

    /// Returns the command's name without its extension.
    pub fn name(&self) -> &'static str {
        let full = match self {
            Task::CleanSteps => name::GET_CLEAN_STEPS,
            Task::Clean(..) => name::EXECUTE_CLEAN_STEP,
            Task::DeploySteps => name::GET_DEPLOY_STEPS,
            Task::ServiceSteps => name::GET_SERVICE_STEPS,
            Task::WriteImage(..) | Task::ApplyRaid(..) => name::EXECUTE_DEPLOY_STEP,
            Task::PartitionUuids => name::GET_PARTITION_UUIDS,
            Task::InstallBootloader => name::INSTALL_BOOTLOADER,
            Task::Sync => name::SYNC,
            Task::FinalizeRescue(_) => name::FINALIZE_RESCUE,
            Task::PowerOff => name::POWER_OFF,
            Task::RunImage => name::RUN_IMAGE,
            Task::CollectLogs => name::COLLECT_SYSTEM_LOGS,
        };
        full.split_once('.').map_or(full, |(_, short)| short)
    }

    /// Whether the agent answers before the command has ended, and sends a heartbeat at its end.
    pub fn is_long(&self) -> bool {
        match self {
            Task::Clean(..)
            | Task::WriteImage(..)
            | Task::ApplyRaid(..)
            | Task::InstallBootloader => true,
            Task::CleanSteps
            | Task::DeploySteps
            | Task::ServiceSteps
            | Task::PartitionUuids
            | Task::Sync
            | Task::FinalizeRescue(_)
            | Task::PowerOff
            | Task::RunImage
            | Task::CollectLogs => false,
        }
    }
}

fn read<T: DeserializeOwned>(command: &str, value: Value) -> Result<T, BadCommand> {
    serde_json::from_value(value)
        .map_err(|source| BadCommand::Parameters { command: command.to_owned(), source })
}

fn step_name(request: &StepRequest) -> &str {
    request.step.get("step").and_then(Value::as_str).unwrap_or_default()
}

fn unknown(kind: &'static str, step: &str) -> BadCommand {
    BadCommand::UnknownStep { kind, step: step.chars().take(100).collect() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn parse(name: &str, params: Value) -> Result<Task, BadCommand> {
        Task::parse(serde_json::from_value(json!({"name": name, "params": params})).unwrap())
    }

    #[test]
    fn a_deploy_step_of_ironic_is_parsed() {
        let image = json!({
            "id": "img", "urls": ["http://10.0.0.1/x"], "disk_format": "raw", "container_format": "bare",
            "stream_raw_images": true, "checksum": null, "os_hash_algo": "sha256",
            "os_hash_value": "00", "node_uuid": "u", "image_type": "whole-disk", "root_gb": null,
        });
        let step = json!({"interface": "deploy", "step": "write_image", "priority": 80,
            "args": {"image_info": image, "configdrive": null}});
        let params = json!({"step": step, "node": {"uuid": "u"}, "ports": [],
            "deploy_version": {"generic_hardware_manager": "1.2"}});
        let task = parse("deploy.execute_deploy_step", params).unwrap();
        assert_eq!(task.name(), "execute_deploy_step");
        assert!(task.is_long());
    }

    #[test]
    fn existing_arrays_are_deleted_unless_the_step_says_otherwise() {
        let apply = |args: Value| {
            let step = json!({"interface": "raid", "step": "apply_configuration", "args": args});
            match parse("deploy.execute_deploy_step", json!({"step": step})) {
                Ok(Task::ApplyRaid(_, apply)) => apply.delete_existing,
                other => panic!("{other:?}"),
            }
        };
        assert!(apply(json!({"raid_config": {}})));
        assert!(!apply(json!({"raid_config": {}, "delete_existing": false})));
    }

    #[test]
    fn an_unknown_command_is_named_in_the_error() {
        let text = |name, params| parse(name, params).unwrap_err().to_string();
        assert_eq!(text("standby.dance", json!({})), "unknown command \"standby.dance\"");
        let step = json!({"step": {"step": "burn"}});
        assert_eq!(text("clean.execute_clean_step", step), "unknown clean step \"burn\"");
        let step = json!({"step": {"step": "execute_bootc_install"}});
        assert!(text("deploy.execute_deploy_step", step).contains("has no podman"));
        assert!(text("deploy.execute_deploy_step", json!({})).contains("are not understood"));
    }

    proptest! {
        #[test]
        fn no_body_panics(body: Vec<u8>, name: String) {
            if let Ok(request) = serde_json::from_slice::<CommandRequest>(&body) {
                let _ = Task::parse(request);
            }
            let _ = parse(&name, json!({}));
        }
    }
}
