//! The implementation of each command.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

use agent_protocol::{CommandError, Disk, step};
use hardware::BootMode;
use serde_json::{Map, Value, json};
use tracing::info;

use crate::disk::device::Device;
use crate::disk::{config_drive, erase};
use crate::error::{chain, failure};
use crate::image::{self, ImageError, Job};
use crate::inventory::{self, MANAGER, MANAGER_VERSION};
use crate::machine::{Ending, Machine};
use crate::meter::ProgressMeter;
use crate::task::{CleanStep, StepRequest, Task, WriteImage};
use crate::{efi, hints, rescue};

/// The result of a command that did not fail.
pub enum Outcome {
    /// The command has run and returned this value.
    Done(Value),
    /// Not run: the conductor listed the steps of another agent version.
    VersionMismatch,
}

/// Runs a command.
pub async fn run(
    machine: &Arc<Machine>,
    task: Task,
    progress: Arc<ProgressMeter>,
) -> Result<Outcome, CommandError> {
    let done = match task {
        Task::CleanSteps => steps("clean_steps", clean_steps()),
        Task::DeploySteps => steps("deploy_steps", deploy_steps()),
        Task::ServiceSteps => steps("service_steps", json!([])),
        Task::Clean(request, _) | Task::WriteImage(request, _) if outdated(&request) => {
            return Ok(Outcome::VersionMismatch);
        }
        Task::Clean(request, what) => {
            let erased = blocking(machine, move |machine| erase(machine, what, &progress)).await?;
            json!({"clean_result": erased, "clean_step": request.step})
        }
        Task::WriteImage(request, arguments) => {
            let disk = write_image(machine, &request.node, *arguments, progress).await?;
            json!({"deploy_result": {"disk": disk}, "deploy_step": request.step})
        }
        // A whole-disk image has its own partitions, so no partition id is needed to boot.
        Task::PartitionUuids => json!({}),
        Task::InstallBootloader => blocking(machine, install_bootloader).await?,
        Task::Sync => {
            blocking(machine, |_| {
                rustix::fs::sync();
                Ok(())
            })
            .await?;
            Value::Null
        }
        // The API ends with the agent, so that nobody on the network can use it during the rescue.
        Task::FinalizeRescue(password) => {
            rescue::allow_login(&machine.root, &password)?;
            machine.ending.send_replace(Some(Ending::Rescue));
            Value::Null
        }
        Task::PowerOff => {
            machine.ending.send_replace(Some(Ending::PowerOff));
            Value::Null
        }
        Task::RunImage => {
            machine.ending.send_replace(Some(Ending::Reboot));
            Value::Null
        }
        Task::CollectLogs => {
            let logs = machine.logs.collect().map_err(|error| {
                failure("LogError", "cannot collect the logs", &error.to_string())
            })?;
            json!({"system_logs": logs})
        }
    };
    Ok(Outcome::Done(done))
}

fn steps(kind: &str, list: Value) -> Value {
    json!({kind: {"GenericHardwareManager": list}, "hardware_manager_version": versions()})
}

fn versions() -> Value {
    json!({MANAGER: MANAGER_VERSION})
}

fn clean_steps() -> Value {
    json!([
        {"step": step::ERASE_DEVICES_METADATA, "priority": 99, "interface": "deploy",
         "reboot_requested": false, "abortable": true, "argsinfo": null},
        // Takes hours on large disks, so the step runs only on request.
        {"step": step::ERASE_DEVICES, "priority": 0, "interface": "deploy",
         "reboot_requested": false, "abortable": true, "argsinfo": null},
    ])
}

fn deploy_steps() -> Value {
    let arguments = json!({
        "image_info": {"description": "the image and its source", "required": true},
        "configdrive": {"description": "base64 of gzip of a file system", "required": false},
    });
    json!([{"step": step::WRITE_IMAGE, "priority": 0, "interface": "deploy",
            "reboot_requested": false, "argsinfo": arguments}])
}

fn outdated(request: &StepRequest) -> bool {
    request.clean_version.as_ref().is_some_and(|seen| {
        seen.get(MANAGER).is_some_and(|version| version.as_str() != Some(MANAGER_VERSION))
    })
}

/// Erases every disk; the first error fails the step.
fn erase(
    machine: &Machine,
    what: CleanStep,
    progress: &ProgressMeter,
) -> Result<Vec<Value>, CommandError> {
    let disks = inventory::disks(&machine.root);
    if what == CleanStep::EraseEverything {
        progress.expect(disks.iter().map(|disk| disk.size).sum());
    }
    let mut record = Vec::new();
    for disk in disks {
        let device = open(machine, &disk).map_err(|error| {
            let text = format!("Cannot open {}: {error}. Nothing was erased on it.", disk.name);
            failure("EraseError", "cannot erase the disks", &text)
        })?;
        let erased = match what {
            CleanStep::EraseMetadata => {
                erase::metadata(&device, &inventory::partitions_of(&machine.root, &disk.name))
            }
            CleanStep::EraseEverything => erase::everything(&device, progress),
        };
        let erased = erased.map_err(|error| {
            let text = format!(
                "{}. The disk may hold data of its last owner: replace it, or erase it by hand.",
                chain(&error)
            );
            failure("EraseError", "cannot erase the disks", &text)
        })?;
        info!(disk.name = %disk.name, "erased {}: {} bytes, {} read back blank", erased.method, erased.zeroed_bytes, erased.read_back_bytes);
        record.push(json!({
            "name": disk.name, "serial": disk.serial, "model": disk.model, "method": erased.method,
            "zeroed_bytes": erased.zeroed_bytes, "read_back_bytes": erased.read_back_bytes,
        }));
    }
    Ok(record)
}

fn open(machine: &Machine, disk: &Disk) -> std::io::Result<Device> {
    let path: PathBuf = machine.root.path(&disk.name);
    Device::open(&path, disk.size, disk.logical_sectors.unwrap_or(512))
}

/// Writes the image to the root disk and returns the disk's name.
async fn write_image(
    machine: &Arc<Machine>,
    node: &Map<String, Value>,
    arguments: WriteImage,
    progress: Arc<ProgressMeter>,
) -> Result<String, CommandError> {
    let WriteImage { image_info, configdrive } = arguments;
    if image_info.image_type == "partition" {
        let text = "Only whole-disk images are written; set image_type to whole-disk.";
        return Err(failure("ImageFormatError", "cannot write the image", text));
    }
    let config_drive = configdrive.filter(|text| !text.is_empty());
    let config_drive = config_drive.as_deref().map(config_drive::decode).transpose();
    let config_drive = config_drive.map_err(ImageError::from)?;

    let disk = root_disk(machine, node)?;
    let device = open(machine, &disk).map_err(|source| {
        CommandError::from(ImageError::Disk { disk: disk.name.clone(), source })
    })?;
    info!(disk.name = %disk.name, image.id = %image_info.id, "writing image {} to {}", image_info.id, disk.name);
    let job = Job {
        image: image_info,
        config_drive,
        disk_name: disk.name.clone(),
        device,
        anchors: machine.anchors.clone(),
        patience: machine.patience,
    };
    image::write(job, progress).await?;
    *machine.written.lock().unwrap_or_else(PoisonError::into_inner) = Some(disk.name.clone());
    Ok(disk.name)
}

fn root_disk(machine: &Machine, node: &Map<String, Value>) -> Result<Disk, CommandError> {
    let disks = inventory::disks(&machine.root);
    let chosen = hints::choose(&disks, &machine.hints(node), machine.least_mib());
    chosen.cloned().map_err(|error| {
        let text = format!("{error}. Set the node's property root_device to match one of them.");
        failure("DeviceNotFound", "cannot choose the disk to write to", &text)
    })
}

/// Makes UEFI firmware start the written disk. A BIOS needs no entry.
fn install_bootloader(machine: &Machine) -> Result<Value, CommandError> {
    if inventory::boot_mode(&machine.root) == BootMode::Bios {
        return Ok(Value::Null);
    }
    let failed = |text: String| failure("BootloaderError", "cannot set the next boot", &text);
    let written = machine.written.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let disks = inventory::disks(&machine.root);
    let disk = match written.and_then(|name| disks.into_iter().find(|disk| disk.name == name)) {
        Some(disk) => disk,
        None => root_disk(machine, &Map::new())?,
    };
    let device = open(machine, &disk)
        .map_err(|error| failed(format!("Cannot open {}: {error}.", disk.name)))?;
    let entry = efi::boot_from(&machine.root, &device, &disk.name)
        .map_err(|error| failed(format!("{}.", chain(&error))))?;
    info!(disk.name = %disk.name, "the firmware starts {} by {entry}", disk.name);
    Ok(json!({"boot_entry": entry}))
}

/// Runs work that waits for disks on a blocking thread.
async fn blocking<T: Send + 'static>(
    machine: &Arc<Machine>,
    work: impl FnOnce(&Machine) -> Result<T, CommandError> + Send + 'static,
) -> Result<T, CommandError> {
    let machine = machine.clone();
    match tokio::task::spawn_blocking(move || work(&machine)).await {
        Ok(done) => done,
        Err(gone) => std::panic::resume_unwind(gone.into_panic()),
    }
}
