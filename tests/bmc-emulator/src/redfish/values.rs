//! The values of the placeholders in documents: the state of one machine.

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::boot::OverrideDuration;
use crate::machine::Identify;
use crate::profile::{MediaDrive, Row, ShownPending};
use crate::redfish::face::RedfishFace;
use crate::redfish::schema::{BOOT_TARGETS, VOLUME_TYPES, mode_name};
use crate::redfish::task::{Task, TaskKind};
use crate::sensors::{SENSORS, Sensor, Unit};
use crate::setup::registry_entries;
use crate::spec::{DiskSpec, Firmware, MachineSpec, NicSpec};
use crate::subscriptions::Subscription;
use crate::template::{Item, Source, fill};
use crate::updates::UpdateState;
use crate::volumes::Volume;

/// The most logical processors in one socket.
const LARGEST_SOCKET: u32 = 64;

/// The size of the largest memory module.
const LARGEST_DIMM_MIB: u64 = 64 * 1024;

const MOST_DIMMS: u64 = 32;

/// The largest image of firmware that can be pushed, in bytes.
pub(crate) const LARGEST_IMAGE: usize = 32 * 1024 * 1024;

/// The value of a placeholder that does not depend on an item.
pub(crate) fn value(face: &RedfishFace, name: &str) -> Option<Value> {
    let (machine, spec) = (&face.machine, face.machine.spec());
    let is_lit = || machine.identify() != Identify::Off;
    let boot = || machine.boot_override();
    Some(match name {
        "manufacturer" => json!(spec.manufacturer),
        "model" => json!(spec.model),
        "serial" => json!(spec.serial),
        "uuid" => json!(spec.uuid),
        "username" => json!(spec.bmc.username),
        "bmc_address" => json!(spec.bmc.address.ip()),
        "cpus" => json!(spec.cpus),
        "processors" => json!(processor_count(spec)),
        "memory_gib" => gibibytes(spec.memory_mib),
        "power_state" => json!(if machine.reported_on() { "On" } else { "Off" }),
        "system_health" => {
            let reported = machine.faults().with(|faults| faults.reported_health.clone());
            json!(reported.as_deref().unwrap_or("OK"))
        }
        "lit" => json!(is_lit()),
        "led" => json!(if is_lit() { "Blinking" } else { "Off" }),
        "now" => json!(machine.chassis().setup.clock.shown()),
        "clock_offset" => json!(machine.chassis().setup.clock.shown_offset()),
        "shortest_password" => json!(face.profile.accounts.shortest),
        "longest_password" => json!(face.profile.accounts.longest),
        "session_timeout" => json!(face.sessions().timeout.as_secs()),
        "reset_types" => json!(face.profile.reset.types),
        "boot_enabled" => json!(match boot().map(|boot| boot.lasting) {
            None => "Disabled",
            Some(OverrideDuration::Once) => "Once",
            Some(OverrideDuration::Always) => "Continuous",
        }),
        "boot_target" => {
            let device = boot().map(|boot| boot.device);
            json!(BOOT_TARGETS.iter().find(|(_, target)| *target == device).map(|(name, _)| name))
        }
        "boot_targets" => json!(boot_targets(face).collect::<Vec<_>>()),
        "boot_mode" => json!(mode_name(machine.boot_mode())),
        "boot_modes" => json!(boot_modes(face).map(mode_name).collect::<Vec<_>>()),
        "secure_boot" => json!(machine.secure_boot()),
        "secure_boot_now" => json!(match machine.chassis().setup.secure_boot_now {
            true => "Enabled",
            false => "Disabled",
        }),
        // DSP0268 `SecureBoot`: without keys, the firmware is in the mode in which keys are enrolled.
        "secure_boot_mode" => json!(match machine.has_secure_boot_keys() {
            true => "UserMode",
            false => "SetupMode",
        }),
        "bios_attributes" => machine.bios().into(),
        "bios_pending" => pending_bios(face),
        "bios_applied_at" => json!(machine.chassis().setup.applied_at.map(|at| at.to_string())),
        "bios_messages" => bios_messages(face),
        "bios_version" => json!(firmware_version(face, "bios")),
        "bmc_version" => json!(firmware_version(face, "bmc")),
        "raid_types" => json!(face.profile.raid.levels),
        "volume_apply_times" => json!(face.profile.raid.apply_times),
        "event_types" => json!(face.profile.events.types),
        "largest_image" => json!(LARGEST_IMAGE),
        "registry_entries" => registry_entries(),
        "http_boot_uri" => json!(boot().and_then(|boot| boot.http_uri)),
        _ => return None,
    })
}

/// The items of a list. Each also has `n`, its number from 1, and `index`, from 0.
pub(crate) fn items(face: &RedfishFace, list: &str) -> Option<Vec<Item>> {
    let spec = face.machine.spec();
    let of_unit = |unit| sensors(face, |sensor| sensor.unit == unit);
    let values: Vec<Value> = match list {
        "processors" => {
            let count = processor_count(spec);
            vec![json!({"threads": spec.cpus / count}); count as usize]
        }
        "dimms" => {
            let count = dimm_count(spec);
            vec![json!({"capacity_mib": spec.memory_mib / count}); count as usize]
        }
        "disks" => spec.disks.iter().map(disk).collect(),
        "volumes" => volumes(face),
        "nics" => {
            let nics = spec.nics.iter();
            nics.map(|nic| nic_values(face, nic)).collect()
        }
        "media" => {
            let rules = face.profile.media.as_ref();
            let drives = rules.map(|rules| rules.drives.as_slice()).unwrap_or_default();
            drives.iter().map(|drive| media(face, drive)).collect()
        }
        "sensors" => sensors(face, |_| true),
        "temperatures" => of_unit(Unit::Celsius),
        "fans" => of_unit(Unit::Rpm),
        "voltages" => of_unit(Unit::Volts),
        "watts" => of_unit(Unit::Watts),
        "sessions" => face.sessions().ids().map(|id| json!({"id": id.to_string()})).collect(),
        "tasks" => tasks(face),
        "subscriptions" => subscriptions(face),
        "events" => {
            let chassis = face.machine.chassis();
            let event = |event: &crate::events::Event| {
                let at = event.at.to_string();
                json!({"id": event.id.to_string(), "at": at, "sentence": event.kind.sentence()})
            };
            chassis.events.all().map(event).collect()
        }
        _ => return None,
    };
    let numbered = values.into_iter().enumerate().map(|(index, value)| {
        let number = [("n", index + 1), ("index", index)];
        let number = number.map(|(name, number)| (name.to_owned(), json!(number.to_string())));
        value
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.clone(), value.clone()))
            .chain(number)
            .collect()
    });
    Some(numbered.collect())
}

/// The targets of a boot override on this machine. Only UEFI has HTTP boot.
pub(crate) fn boot_targets(face: &RedfishFace) -> impl Iterator<Item = &str> {
    let is_uefi = face.machine.boot_mode() == Firmware::Uefi;
    let targets = face.profile.boot.targets.iter().map(String::as_str);
    targets.filter(move |target| is_uefi || *target != "UefiHttp")
}

/// The boot modes that this machine can be set to.
pub(crate) fn boot_modes(face: &RedfishFace) -> impl Iterator<Item = Firmware> + use<> {
    let (now, is_fixed) = (face.machine.boot_mode(), face.profile.boot.mode_changes.is_none());
    let modes = [Firmware::Bios, Firmware::Uefi].into_iter();
    modes.filter(move |mode| !is_fixed || *mode == now)
}

/// The attributes in the settings resource.
fn pending_bios(face: &RedfishFace) -> Value {
    let pending = face.machine.chassis().setup.pending().clone();
    match face.profile.bios.pending {
        ShownPending::Changed => pending.into(),
        ShownPending::All => {
            let mut all = face.machine.bios();
            all.extend(pending);
            all.into()
        }
    }
}

/// The results of the last start with pending values: one message for each attribute that the firmware did not take. Null before.
fn bios_messages(face: &RedfishFace) -> Value {
    let chassis = face.machine.chassis();
    let message = |name: &String| {
        json!({
            "MessageId": "Base.1.13.PropertyValueError",
            "Message": format!("The firmware did not take the value of {name}."),
            "MessageSeverity": "Warning",
            "RelatedProperties": [format!("#/Attributes/{name}")],
        })
    };
    match chassis.setup.applied_at {
        Some(_) => chassis.setup.ignored.iter().map(message).collect(),
        None => Value::Null,
    }
}

pub(crate) fn processor_count(spec: &MachineSpec) -> u32 {
    if spec.cpus > LARGEST_SOCKET && spec.cpus.is_multiple_of(2) { 2 } else { 1 }
}

/// The number of memory modules: as few equal ones as possible.
pub(crate) fn dimm_count(spec: &MachineSpec) -> u64 {
    let memory = spec.memory_mib;
    let fits = |count: &u64| memory.is_multiple_of(*count) && memory / count <= LARGEST_DIMM_MIB;
    (1..=MOST_DIMMS).find(fits).unwrap_or(1)
}

fn disk(disk: &DiskSpec) -> Value {
    json!({
        "model": disk.model,
        "serial": disk.serial,
        "size_bytes": disk.size_bytes,
        "media_type": if disk.rotational { "HDD" } else { "SSD" },
        "protocol": if disk.name.starts_with("nvme") { "NVMe" } else { "SATA" },
        "rotation": disk.rotational.then_some(7200),
    })
}

fn volumes(face: &RedfishFace) -> Vec<Value> {
    let volumes = face.machine.volumes();
    let is_drive = |row: &&Row| row.each.as_deref() == Some("disks") && !row.document.is_empty();
    let drive = face.profile.tree.iter().find(is_drive);
    let source = Source { value: &|name| value(face, name), items: &|list| items(face, list) };
    let path = |row: &Row, disk: &Item| fill(&json!(row.path), disk, &source);
    let disks = items(face, "disks").unwrap_or_default();
    let drives: Vec<Value> =
        drive.map(|row| disks.iter().map(|disk| path(row, disk)).collect()).unwrap_or_default();
    let describe = |volume: &Volume| {
        let kind = VOLUME_TYPES.iter().find(|(level, _)| *level == volume.level);
        let paths = volume.drives.iter().filter_map(|at| drives.get(*at));
        json!({
            "volume": volume.id,
            "volume_name": volume.name,
            "raid_type": volume.level,
            "volume_type": kind.map(|(_, volume_type)| volume_type),
            "volume_size": volume.size_bytes,
            "volume_drives": paths.map(|it| json!({"@odata.id": it})).collect::<Vec<_>>(),
        })
    };
    volumes.iter().map(describe).collect()
}

fn nic_values(face: &RedfishFace, nic: &NicSpec) -> Value {
    json!({
        "mac": String::from(nic.mac).to_uppercase(),
        "speed_mbps": nic.speed_mbps,
        "nic_serial": adapter_serial(nic),
        "version": firmware_version(face, &adapter_component(nic)),
    })
}

/// The serial number of a network adapter.
fn adapter_serial(nic: &NicSpec) -> String {
    String::from(nic.mac).replace(':', "").to_uppercase()
}

/// The name of a network adapter's firmware.
pub(crate) fn adapter_component(nic: &NicSpec) -> String {
    format!("nic:{}", adapter_serial(nic))
}

fn firmware_version(face: &RedfishFace, component: &str) -> String {
    let first = &face.profile.firmware;
    let first = match component {
        "bios" => &first.bios,
        "bmc" => &first.bmc,
        _ => &first.nic,
    };
    face.machine.updated_firmware(component).unwrap_or_else(|| first.clone())
}

fn media(face: &RedfishFace, drive: &MediaDrive) -> Value {
    let image = face.machine.media_in(drive);
    let name =
        image.as_ref().and_then(|url| url.path_segments()).and_then(|mut path| path.next_back());
    json!({
        "id": drive.id,
        "types": drive.types,
        "image": image,
        "image_name": name,
        "inserted": image.is_some(),
        "connected_via": if image.is_some() { "URI" } else { "NotConnected" },
    })
}

/// The sensors that `wanted` selects. A sensor without a reading is absent, not faulty.
fn sensors(face: &RedfishFace, wanted: impl Fn(&Sensor) -> bool) -> Vec<Value> {
    let on = face.machine.reported_on();
    let describe = |sensor: &Sensor| {
        let reading = sensor.reading(on);
        let (reading_type, units) = match sensor.unit {
            Unit::Celsius => ("Temperature", "Cel"),
            Unit::Rpm => ("Rotational", "RPM"),
            Unit::Volts => ("Voltage", "V"),
            Unit::Watts => ("Power", "W"),
        };
        json!({
            "id": sensor.id(),
            "name": sensor.name,
            "reading_type": reading_type,
            "physical_context": physical_context(sensor),
            "units": units,
            "reading": reading,
            "lower_critical": sensor.lower_critical,
            "upper_warning": sensor.upper_warning,
            "upper_critical": sensor.upper_critical,
            "state": if reading.is_some() { "Enabled" } else { "StandbyOffline" },
            "health": reading.map(|_| "OK"),
        })
    };
    SENSORS.iter().filter(|sensor| wanted(sensor)).map(describe).collect()
}

/// The place of a sensor in the words of Redfish (DSP0268 `PhysicalContext`). The entities are those of IPMI.
fn physical_context(sensor: &Sensor) -> Option<&'static str> {
    match sensor.entity {
        0x03 => Some("CPU"),
        0x07 => Some("SystemBoard"),
        0x1D => Some("Chassis"),
        0x37 => Some("Intake"),
        _ => None,
    }
}

fn subscriptions(face: &RedfishFace) -> Vec<Value> {
    let describe = |one: Subscription| {
        json!({
            "id": one.id.to_string(),
            "destination": one.destination,
            "context": one.context,
            "subscribed_types": one.event_types,
        })
    };
    face.machine.subscriptions().into_iter().map(describe).collect()
}

fn tasks(face: &RedfishFace) -> Vec<Value> {
    let tasks = face.tasks();
    tasks.all().map(|task| task_values(face, task)).collect()
}

fn task_values(face: &RedfishFace, task: &Task) -> Value {
    let (name, method, target, state) = match &task.kind {
        TaskKind::Reset { ends_at } => ("Reset", "POST", None, state_until(*ends_at)),
        TaskKind::Import { ends_at } => ("Import", "POST", None, state_until(*ends_at)),
        TaskKind::Update { id, target } => {
            let chassis = face.machine.chassis();
            let state = chassis.updates.find(*id).map(|update| update.state.clone());
            ("Firmware Update", "POST", Some(target), state.unwrap_or(UpdateState::Completed))
        }
        TaskKind::Volume { id, target, method } => {
            let state = face.machine.chassis().volumes.state(*id);
            ("Volume Change", *method, Some(target), state.unwrap_or(UpdateState::Completed))
        }
    };
    let message = match &state {
        UpdateState::Failed(why) => Some(json!({
            "@odata.type": "#Message.v1_1_1.Message",
            "MessageId": "Update.1.0.ApplyFailed",
            "Message": why,
            "MessageSeverity": "Critical",
        })),
        UpdateState::Running | UpdateState::Starting | UpdateState::Completed => None,
    };
    json!({
        "id": task.id.to_string(),
        "name": name,
        "started_at": task.started_at.to_string(),
        "state": state.word(),
        "status": if message.is_some() { "Critical" } else { "OK" },
        "percent": if matches!(state, UpdateState::Completed) { 100 } else { 0 },
        "payload": target.map(|target| json!({"HttpOperation": method, "TargetUri": target})),
        "messages": message.into_iter().collect::<Vec<_>>(),
    })
}

/// The state of a task that ends at a known time.
fn state_until(ends_at: Instant) -> UpdateState {
    if ends_at <= Instant::now() { UpdateState::Completed } else { UpdateState::Running }
}

/// Whole gibibytes as an integer, anything else as a fraction.
fn gibibytes(mib: u64) -> Value {
    match mib % 1024 {
        0 => json!(mib / 1024),
        _ => json!(mib as f64 / 1024.0),
    }
}
