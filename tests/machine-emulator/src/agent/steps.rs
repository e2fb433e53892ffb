//! The effect of each command on the machine.

use serde_json::{Map, Value, json};

use super::commands::{CommandRequest, Commands};
use super::outcome::{Done, Ending, Failure};
use super::{raid, write};
use crate::disk::Content;
use crate::event::Event;
use crate::machine::Machine;
use crate::rack_context::RackContext;

pub(super) async fn run(
    machine: &Machine,
    world: &RackContext,
    asked: &CommandRequest,
    commands: &Commands,
) -> Result<Done, Failure> {
    let step = asked.params.get("step").and_then(|step| step.get("step")).and_then(Value::as_str);
    let doing = step.unwrap_or(asked.name.rsplit('.').next().unwrap_or_default()).to_owned();
    machine.tell(Event::Begins(doing.clone()));
    misbehave(machine, &doing).await?;
    if asked.name.contains(".execute_") {
        tokio::time::sleep(world.pace.step()).await;
    }
    let done = match (&*asked.name, &*doing) {
        ("clean.get_clean_steps", _) => {
            let steps = CLEAN_STEPS.iter().map(OfferedStep::described).collect::<Vec<_>>();
            Ok(json!({"clean_steps": {"EmulatedManager": steps}, "hardware_manager_version": {}}))
        }
        ("deploy.get_deploy_steps", _) => {
            let steps = DEPLOY_STEPS.iter().map(OfferedStep::described).collect::<Vec<_>>();
            Ok(json!({"deploy_steps": {"EmulatedManager": steps}, "hardware_manager_version": {}}))
        }
        ("service.get_service_steps", _) => {
            let steps = SERVICE_STEPS.iter().map(OfferedStep::described).collect::<Vec<_>>();
            Ok(json!({"service_steps": {"EmulatedManager": steps}, "hardware_manager_version": {}}))
        }
        ("clean.execute_clean_step", "erase_devices_metadata" | "erase_devices") => {
            Ok(json!({"clean_result": erase(machine), "clean_step": asked.params.get("step")}))
        }
        ("clean.execute_clean_step", other) if is_raid(asked) && offers(&CLEAN_STEPS, other) => {
            let made = run_raid(machine, other, asked);
            made.map(|made| json!({"clean_result": made, "clean_step": asked.params.get("step")}))
        }
        ("deploy.execute_deploy_step", other) if is_raid(asked) && offers(&DEPLOY_STEPS, other) => {
            let made = run_raid(machine, other, asked);
            made.map(|made| json!({"deploy_result": made, "deploy_step": asked.params.get("step")}))
        }
        ("clean.execute_clean_step", other) if offers(&CLEAN_STEPS, other) => {
            Ok(json!({"clean_result": null, "clean_step": asked.params.get("step")}))
        }
        ("service.execute_service_step", other) if offers(&SERVICE_STEPS, other) => {
            Ok(json!({"service_result": null, "service_step": asked.params.get("step")}))
        }
        ("deploy.execute_deploy_step", "install_live") => {
            install_live(machine, asked);
            Ok(json!({"deploy_result": null, "deploy_step": asked.params.get("step")}))
        }
        ("deploy.execute_deploy_step", "execute_bootc_install") => {
            let written = write::container(machine, asked.params.get("step"));
            written
                .map(|text| json!({"deploy_result": text, "deploy_step": asked.params.get("step")}))
        }
        ("deploy.execute_deploy_step", other)
            if other != "write_image" && offers(&DEPLOY_STEPS, other) =>
        {
            Ok(json!({"deploy_result": null, "deploy_step": asked.params.get("step")}))
        }
        ("deploy.execute_deploy_step", "write_image") => {
            let empty = Map::new();
            let of = |value: Option<&Value>| value.and_then(Value::as_object).cloned();
            let arguments = of(asked.params.get("step").and_then(|step| step.get("args")));
            let properties = of(asked.params.get("node").and_then(|node| node.get("properties")));
            let instance = of(asked.params.get("node").and_then(|node| node.get("instance_info")));
            let hint = |all: &Option<Map<String, Value>>| {
                of(all.as_ref().and_then(|all| all.get("root_device")))
            };
            let hints = hint(&instance).or_else(|| hint(&properties));
            let arguments = arguments.unwrap_or_else(|| empty.clone());
            let report = |progress| commands.progress(&asked.id, progress);
            let written =
                write::image(machine, world, &arguments, &hints.unwrap_or(empty), report).await;
            written.map(|disk| {
                json!({"deploy_result": {"disk": disk}, "deploy_step": asked.params.get("step")})
            })
        }
        ("image.install_bootloader", _) => {
            // Without the id, ironic-python-agent takes the image for one of a whole disk.
            if let Some(root) = asked.params.get("root_uuid").and_then(Value::as_str) {
                machine.install_boot_loader(root);
            }
            Ok(Value::Null)
        }
        ("standby.sync", _) => Ok(Value::Null),
        ("standby.get_partition_uuids", _) => Ok(match machine.root_id() {
            Some(root) => json!({
                "partitions": {"root": "/dev/vda2"}, "root uuid": root, "efi system partition uuid": null,
            }),
            None => json!({"root uuid": "0x00000000"}),
        }),
        ("standby.power_off" | "standby.run_image", _) => Ok(Value::Null),
        ("rescue.finalize_rescue", _) if rescue_hash(asked).is_none() => {
            Err(Failure::new("RescueError", "This emulated agent takes hashed passwords only."))
        }
        ("rescue.finalize_rescue", _) => Ok(Value::Null),
        ("log.collect_system_logs", _) => Ok(json!({"system_logs": ""})),
        _ => Err(Failure::new("CommandNotFound", format!("There is no command {}.", asked.name))),
    };
    let ending = match &*asked.name {
        "standby.power_off" => Some(Ending::PowerOff),
        "standby.run_image" => Some(Ending::Reboot),
        "rescue.finalize_rescue" => rescue_hash(asked).map(Ending::Rescue),
        _ => None,
    };
    match &done {
        Ok(_) => machine.tell(Event::Did(doing)),
        Err(failure) => machine.tell(Event::Failed(doing, failure.details.clone())),
    }
    done.map(|result| Done { result, ending })
}

/// Whether the command is a step of the RAID interface.
fn is_raid(asked: &CommandRequest) -> bool {
    asked.params.get("step").and_then(|step| step.get("interface")) == Some(&json!("raid"))
}

fn run_raid(machine: &Machine, step: &str, asked: &CommandRequest) -> Result<Value, Failure> {
    let args = asked.params.get("step").and_then(|step| step.get("args"));
    let made = raid::run(machine, step, asked.params.get("node"), args);
    made.unwrap_or_else(|| {
        Err(Failure::new("CommandNotFound", format!("There is no step {step}.")))
    })
}

/// Installs a system without an image, with the config drive of the node, like an agent with an installer of its own.
fn install_live(machine: &Machine, asked: &CommandRequest) {
    let node = asked.params.get("node");
    let drive = node.and_then(|node| node.pointer("/instance_info/configdrive"));
    let drive = drive.and_then(Value::as_str).map(str::to_owned);
    let system = Content::Image {
        name: "the step install_live".to_owned(),
        bytes: 1 << 20,
        checksum: String::new(),
        bootable: true,
        config_drive: drive.is_some(),
    };
    machine.install(0, system, drive);
}

fn rescue_hash(asked: &CommandRequest) -> Option<String> {
    let is_hashed = asked.params.get("hashed") == Some(&Value::Bool(true));
    let hash = asked.params.get("rescue_password").and_then(Value::as_str);
    hash.filter(|hash| is_hashed && hash.starts_with('$')).map(str::to_owned)
}

/// Applies the machine's faults for this step.
async fn misbehave(machine: &Machine, doing: &str) -> Result<(), Failure> {
    let mut reboots = false;
    machine.misbehave(|faults| {
        reboots = faults.reboot_in_step.as_deref() == Some(doing);
        if reboots {
            faults.reboot_in_step = None;
        }
    });
    if reboots {
        machine.chassis().guest_reboot();
        return std::future::pending().await;
    }
    if machine.faults().fail_step.as_deref() == Some(doing) {
        let failure =
            Failure::new("EmulatedError", format!("The emulator was told to fail {doing}."));
        machine.tell(Event::Failed(doing.to_owned(), failure.details.clone()));
        return Err(failure);
    }
    Ok(())
}

struct OfferedStep {
    interface: &'static str,
    name: &'static str,
    priority: u32,
    reboots: bool,
    /// The name and the description of the required argument.
    argument: Option<(&'static str, &'static str)>,
}

const PLAIN: OfferedStep =
    OfferedStep { interface: "deploy", name: "", priority: 0, reboots: false, argument: None };

/// The steps erase the disks, or take their time and do nothing.
const CLEAN_STEPS: [OfferedStep; 6] = [
    OfferedStep { name: "erase_devices_metadata", priority: 99, ..PLAIN },
    OfferedStep { name: "erase_devices", ..PLAIN },
    OfferedStep { name: "burnin_cpu", ..PLAIN },
    OfferedStep { interface: "raid", name: "delete_configuration", ..PLAIN },
    OfferedStep { interface: "raid", name: "create_configuration", ..PLAIN },
    OfferedStep {
        interface: "firmware",
        name: "update",
        reboots: true,
        argument: Some(("url", "where the firmware is")),
        ..PLAIN
    },
];

const DEPLOY_STEPS: [OfferedStep; 6] = [
    OfferedStep { name: "write_image", ..PLAIN },
    OfferedStep { name: "install_live", ..PLAIN },
    OfferedStep { name: "execute_bootc_install", ..PLAIN },
    OfferedStep { name: "inject_files", argument: Some(("files", "what to write")), ..PLAIN },
    OfferedStep { interface: "bios", name: "tune", argument: Some(("profile", "how")), ..PLAIN },
    OfferedStep {
        interface: "raid",
        name: "apply_configuration",
        argument: Some(("raid_config", "what to make")),
        ..PLAIN
    },
];

/// The service steps of the emulated agent.
const SERVICE_STEPS: [OfferedStep; 2] = [
    OfferedStep { interface: "bios", name: "tune", argument: Some(("profile", "how")), ..PLAIN },
    OfferedStep { interface: "firmware", name: "update", reboots: true, ..PLAIN },
];

impl OfferedStep {
    fn described(&self) -> Value {
        let info = |(name, description): (&str, &str)| {
            let mut info = json!({name: {"description": description, "required": true}});
            if self.name == "apply_configuration" {
                info["delete_existing"] =
                    json!({"description": "true or false", "required": false});
            }
            info
        };
        json!({
            "step": self.name, "priority": self.priority, "interface": self.interface,
            "reboot_requested": self.reboots, "abortable": true, "argsinfo": self.argument.map(info),
        })
    }
}

fn offers(steps: &[OfferedStep], name: &str) -> bool {
    steps.iter().any(|step| step.name == name)
}

/// Erases every disk; returns the record of the erasure.
fn erase(machine: &Machine) -> Vec<Value> {
    let erase = |disk: &mut crate::disk::Disk| {
        disk.set(Content::Blank);
        json!({"name": format!("/dev/{}", disk.spec.name), "serial": disk.spec.serial, "method": "emulated"})
    };
    let erased = machine.lock_disks().iter_mut().map(erase).collect();
    machine.keep();
    erased
}
