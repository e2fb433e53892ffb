//! The implementation of each command.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

use agent_protocol::{CommandError, Disk, ImageInfo, ImageType, parameter, step};
use hardware::BootMode;
use serde_json::{Map, Value, json};
use tracing::info;

use crate::disk::device::Device;
use crate::disk::{cluster, config_drive, erase};
use crate::error::{chain, failure};
use crate::image::{self, ImageError, Job, PartitionImage};
use crate::inventory::{self, MANAGER, MANAGER_VERSION};
use crate::machine::{Ending, Machine};
use crate::meter::ProgressMeter;
use crate::raid::{self, RaidError, arrays};
use crate::task::{ApplyRaid, CleanStep, Erasure, StepRequest, Task, WriteImage};
use crate::{efi, hints, rescue, skipped};

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
        Task::Clean(request, _) | Task::WriteImage(request, _) | Task::ApplyRaid(request, _)
            if outdated(&request) =>
        {
            return Ok(Outcome::VersionMismatch);
        }
        Task::Clean(request, what) => {
            let node = request.node;
            let work = move |machine: &Machine| clean(machine, what, &node, &progress);
            json!({"clean_result": blocking(machine, work).await?, "clean_step": request.step})
        }
        Task::ApplyRaid(request, arguments) => {
            let node = request.node;
            let work = move |machine: &Machine| apply_raid(machine, &node, arguments);
            let applied = blocking(machine, work).await?;
            json!({"deploy_result": applied, "deploy_step": request.step})
        }
        Task::WriteImage(request, arguments) => {
            let disk = write_image(machine, &request.node, *arguments, progress).await?;
            json!({"deploy_result": {"disk": disk}, "deploy_step": request.step})
        }
        // A whole-disk image has its own partitions, so no partition id is needed to boot.
        Task::PartitionUuids => {
            let ids = machine.partition_ids.lock().unwrap_or_else(PoisonError::into_inner);
            Value::Object(ids.clone())
        }
        Task::InstallBootloader => blocking(machine, install_bootloader).await?,
        Task::Sync => blocking(machine, |_| Ok(flush())).await?,
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
        Task::CollectLogs => json!({"system_logs": collect_logs(machine)?}),
    };
    Ok(Outcome::Done(done))
}

/// Writes everything to the disks.
fn flush() -> Value {
    rustix::fs::sync();
    Value::Null
}

fn collect_logs(machine: &Machine) -> Result<String, CommandError> {
    let collected = machine.logs.collect();
    collected.map_err(|error| failure("LogError", "cannot collect the logs", &error.to_string()))
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
        {"step": step::DELETE_CONFIGURATION, "priority": 0, "interface": "raid",
         "reboot_requested": false, "abortable": true, "argsinfo": null},
        {"step": step::CREATE_CONFIGURATION, "priority": 0, "interface": "raid",
         "reboot_requested": false, "abortable": true, "argsinfo": null},
    ])
}

fn deploy_steps() -> Value {
    let arguments = json!({
        "image_info": {"description": "the image and its source", "required": true},
        "configdrive": {"description": "base64 of gzip of a file system", "required": false},
    });
    let raid = json!({
        "raid_config": {"description": "the RAID configuration to make", "required": true},
        "delete_existing": {
            "description": "whether the existing RAID is removed first (default: true)",
            "required": false,
        },
    });
    json!([
        {"step": step::WRITE_IMAGE, "priority": 0, "interface": "deploy",
         "reboot_requested": false, "argsinfo": arguments},
        {"step": step::APPLY_CONFIGURATION, "priority": 0, "interface": "raid",
         "reboot_requested": false, "argsinfo": raid},
    ])
}

fn outdated(request: &StepRequest) -> bool {
    request.clean_version.as_ref().is_some_and(|seen| {
        seen.get(MANAGER).is_some_and(|version| version.as_str() != Some(MANAGER_VERSION))
    })
}

/// Runs a clean step, and returns its result.
fn clean(
    machine: &Machine,
    what: CleanStep,
    node: &Map<String, Value>,
    progress: &ProgressMeter,
) -> Result<Value, CommandError> {
    let config = |field: &str| node.get(field).and_then(Value::as_object);
    let disks = &skipped::usable(inventory::disks(&machine.root), node)?;
    match what {
        CleanStep::Erase(what) => {
            raid::stop_all(&machine.root).map_err(raid_failure)?;
            guard_clusters(machine, disks)?;
            let erased = erase(machine, disks, what, progress)?;
            // The node keeps its RAID until raid.delete_configuration, and the content of the arrays is gone.
            if let Some(kept) = config("raid_config").filter(|it| raid::is_software(it)) {
                raid::create(&machine.root, disks, kept).map_err(raid_failure)?;
            }
            Ok(erased.into())
        }
        CleanStep::CreateRaid => match config("target_raid_config") {
            Some(wanted) if raid::is_software(wanted) => {
                raid::create(&machine.root, disks, wanted).map_err(raid_failure)?;
                Ok(Value::Object(wanted.clone()))
            }
            Some(_) | None => Ok(json!({})),
        },
        CleanStep::DeleteRaid => {
            raid::delete(&machine.root, disks).map_err(raid_failure)?;
            Ok(Value::Null)
        }
    }
}

fn apply_raid(
    machine: &Machine,
    node: &Map<String, Value>,
    arguments: ApplyRaid,
) -> Result<Value, CommandError> {
    let ApplyRaid { raid_config, delete_existing } = arguments;
    let (root, disks) = (&machine.root, skipped::usable(inventory::disks(&machine.root), node)?);
    raid::validate(root, &disks, &raid_config).map_err(raid_failure)?;
    if delete_existing {
        raid::delete(root, &disks).map_err(raid_failure)?;
    }
    raid::create(root, &disks, &raid_config).map_err(raid_failure)?;
    Ok(Value::Object(raid_config))
}

fn raid_failure(error: RaidError) -> CommandError {
    let text = format!("{}. {}", chain(&error), error.advice());
    failure("SoftwareRAIDError", "the step of the RAID interface failed", &text)
}

/// Fails if one of the disks has a file system that other machines may use now.
fn guard_clusters(machine: &Machine, disks: &[Disk]) -> Result<(), CommandError> {
    if machine.parameters.erases_clusters {
        return Ok(());
    }
    let failed = |kind: &str, text: &str| failure(kind, "cannot erase the disks", text);
    for disk in disks {
        let read = open(machine, disk).and_then(|device| cluster::file_system(&device));
        let found = read.map_err(|error| {
            let text = format!("Cannot read {}: {error}. No disk was erased.", disk.name);
            failed("EraseError", &text)
        })?;
        if let Some(name) = found {
            let text = format!(
                "{} has the file system {name}, which other machines may use now. No disk was erased. Detach the disk, name it in \
                 skip_block_devices of the node's properties, or boot with the kernel parameter {}=0.",
                disk.name,
                parameter::GUARD_SPECIAL_FILE_SYSTEMS,
            );
            return Err(failed("ProtectedDeviceError", &text));
        }
    }
    Ok(())
}

/// Erases each of these disks; the first error fails the step.
fn erase(
    machine: &Machine,
    disks: &[Disk],
    what: Erasure,
    progress: &ProgressMeter,
) -> Result<Vec<Value>, CommandError> {
    if what == Erasure::Everything {
        progress.expect(disks.iter().map(|disk| disk.size).sum());
    }
    let mut record = Vec::new();
    for disk in disks {
        let device = open(machine, disk).map_err(|error| {
            let text = format!("Cannot open {}: {error}. Nothing was erased on it.", disk.name);
            failure("EraseError", "cannot erase the disks", &text)
        })?;
        let erased = match what {
            Erasure::Metadata => {
                erase::metadata(&device, &inventory::partitions_of(&machine.root, &disk.name))
            }
            Erasure::Everything => erase::everything(&device, progress),
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
    let config_drive = configdrive.filter(|text| !text.is_empty());
    let config_drive = config_drive.as_deref().map(config_drive::decode).transpose();
    let config_drive = config_drive.map_err(ImageError::from)?;

    let disk = {
        let node = node.clone();
        blocking(machine, move |machine| root_disk(machine, &node)).await?
    };
    let partitions = partitions_of(machine, &image_info, &disk, config_drive.as_deref())?;
    let device = open(machine, &disk).map_err(|source| {
        CommandError::from(ImageError::Disk { disk: disk.name.clone(), source })
    })?;
    info!(disk.name = %disk.name, image.id = %image_info.id, "writing image {} to {}", image_info.id, disk.name);
    let job = Job {
        image: image_info,
        partitions,
        config_drive,
        disk_name: disk.name.clone(),
        device,
        anchors: machine.anchors.clone(),
        patience: machine.patience,
    };
    let ids = image::write(job, progress).await?;
    *machine.partition_ids.lock().unwrap_or_else(PoisonError::into_inner) = ids;
    *machine.written.lock().unwrap_or_else(PoisonError::into_inner) = Some(disk.name.clone());
    Ok(disk.name)
}

/// Plans the partitions of the disk for a partition image; `None` for the image of a whole disk.
fn partitions_of(
    machine: &Machine,
    image: &ImageInfo,
    disk: &Disk,
    config_drive: Option<&[u8]>,
) -> Result<Option<PartitionImage>, CommandError> {
    if image.image_type == ImageType::WholeDisk {
        return Ok(None);
    }
    let refused = |field, value: &str, reason: &str| ImageError::Description {
        field,
        value: value.to_owned(),
        reason: reason.to_owned(),
    };
    let layout = image.layout.clone().filter(|layout| layout.root_mb > 0);
    let layout =
        layout.ok_or_else(|| refused("root_mb", "", "a partition image needs the size"))?;
    if arrays::running(&machine.root).iter().any(|array| array.name == disk.name) {
        let reason = "only whole-disk images are written to software RAID";
        return Err(refused("image_type", "partition", reason).into());
    }
    let (root, mode) = (machine.root.clone(), inventory::boot_mode(&machine.root));
    let planned = PartitionImage::new(layout, mode, root, config_drive);
    let planned = planned.map_err(ImageError::from)?;
    info!(disk.name = %disk.name, "{} gets a {} partition table", disk.name, planned.label().as_str());
    Ok(Some(planned))
}

/// Chooses the disk for the image, among those that are not skipped. If the node has software RAID, the disks that hold an array cannot be
/// chosen, and without hints an array is chosen.
fn root_disk(machine: &Machine, node: &Map<String, Value>) -> Result<Disk, CommandError> {
    let (root, hints) = (&machine.root, machine.hints(node));
    let all = inventory::disks(root);
    let mut disks = skipped::usable(all.clone(), node)?;
    let config = node.get("raid_config").and_then(Value::as_object);
    if let Some(config) = config.filter(|config| raid::is_software(config)) {
        let mut found = raid::assemble(root).map_err(raid_failure)?;
        let held: Vec<String> =
            found.iter().flat_map(|array| arrays::disks_of(root, array)).collect();
        let left_alone = all.iter().filter(|disk| !disks.contains(disk));
        let left_alone: Vec<&String> = left_alone.map(|disk| &disk.name).collect();
        found.retain(|array| {
            arrays::disks_of(root, array).iter().all(|holder| !left_alone.contains(&holder))
        });
        let chosen = raid::root_volume(root, config, &found).map_err(raid_failure)?;
        let candidates = chosen.map_or(&*found, std::slice::from_ref);
        if candidates.is_empty() && hints.is_empty() {
            return Err(raid_failure(RaidError::NoArray));
        }
        let arrays = candidates.iter().map(arrays::Array::as_disk);
        if hints.is_empty() || chosen.is_some() {
            disks.clear();
        }
        disks.retain(|disk| !held.contains(&disk.name));
        disks.extend(arrays);
        let hints = if chosen.is_some() { Map::new() } else { hints };
        let disk = choose(&disks, &hints, machine.least_mib())?;
        let is_array = candidates.iter().any(|array| array.name == disk.name);
        if is_array && inventory::boot_mode(root) == BootMode::Bios {
            let text = format!(
                "{} is an array, which a BIOS cannot start. Set the boot mode of the machine to UEFI, and make the RAID configuration again.",
                disk.name
            );
            return Err(failure("DeviceNotFound", "cannot boot from the disk to write to", &text));
        }
        return Ok(disk);
    }
    choose(&disks, &hints, machine.least_mib())
}

fn choose(
    disks: &[Disk],
    hints: &Map<String, Value>,
    least_mib: u64,
) -> Result<Disk, CommandError> {
    hints::choose(disks, hints, least_mib).cloned().map_err(|error| {
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
    let root = &machine.root;
    let running = arrays::running(root);
    if let Some(array) = running.iter().find(|array| written.as_ref() == Some(&array.name)) {
        let entries = raid::boot::install(root, array)
            .map_err(|error| failed(format!("{}.", chain(&error))))?;
        info!(disk.name = %array.name, "the firmware starts {} by {}", array.name, entries.join(" and "));
        return Ok(json!({"boot_entry": entries.first()}));
    }
    let disks = inventory::disks(root);
    let disk = match written.and_then(|name| disks.into_iter().find(|disk| disk.name == name)) {
        Some(disk) => disk,
        None => root_disk(machine, &Map::new())?,
    };
    let device = open(machine, &disk)
        .map_err(|error| failed(format!("Cannot open {}: {error}.", disk.name)))?;
    let entry = efi::boot_from(root, &device, &disk.name)
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
