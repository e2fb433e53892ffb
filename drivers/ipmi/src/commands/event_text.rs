//! Describes events of the system event log in words (IPMI 2.0 §29.7, tables 42-1 to 42-3).

/// The event/reading type of crossed thresholds.
const THRESHOLD: u8 = 0x01;
/// The event/reading type of states that the sensor's type defines.
const SENSOR_SPECIFIC: u8 = 0x6f;

/// Describes the event in a sentence.
pub(crate) fn describe(sensor_type: u8, sensor: u8, event_type: u8, data: [u8; 3]) -> String {
    let subject = match SENSOR_TYPES.get(usize::from(sensor_type)) {
        Some(name) if sensor_type != 0 => format!("{name} sensor {sensor:#04x}"),
        _ => format!("sensor {sensor:#04x} of type {sensor_type:#04x}"),
    };
    let direction = if event_type & 0x80 == 0 { "asserted" } else { "deasserted" };
    let (event_type, offset) = (event_type & 0x7f, data[0] & 0x0f);

    let state = match event_type {
        THRESHOLD => THRESHOLDS.get(usize::from(offset)).copied(),
        SENSOR_SPECIFIC => sensor_state(sensor_type, offset),
        _ => None,
    };
    match state {
        Some(state) if event_type == THRESHOLD => {
            format!("{subject}: {state} {direction}{}", crossing(data))
        }
        Some(state) => format!("{subject}: {state} {direction}"),
        None => {
            let data = hexadecimal(&data);
            format!("{subject}: event of type {event_type:#04x} {direction}, data {data}")
        }
    }
}

/// Formats bytes in hexadecimal, separated by spaces.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    let bytes: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    bytes.join(" ")
}

/// Describes reading and threshold, if the event's data contain them (table 29-6).
fn crossing(data: [u8; 3]) -> String {
    let reading = match data[0] >> 6 {
        1 => format!(", reading {:#04x}", data[1]),
        _ => String::new(),
    };
    let threshold = match data[0] >> 4 & 0b11 {
        1 => format!(", threshold {:#04x}", data[2]),
        _ => String::new(),
    };
    reading + &threshold
}

/// Table 42-2, generic event/reading type 0x01.
const THRESHOLDS: [&str; 12] = [
    "lower non-critical going low",
    "lower non-critical going high",
    "lower critical going low",
    "lower critical going high",
    "lower non-recoverable going low",
    "lower non-recoverable going high",
    "upper non-critical going low",
    "upper non-critical going high",
    "upper critical going low",
    "upper critical going high",
    "upper non-recoverable going low",
    "upper non-recoverable going high",
];

/// The states of those sensors that explain why a server is down (table 42-3); other states are shown as bytes.
fn sensor_state(sensor_type: u8, offset: u8) -> Option<&'static str> {
    let states: &[&str] = match sensor_type {
        0x05 => &["general chassis intrusion"],
        0x07 => &["internal error", "thermal trip", "failed its self test", "hung in POST"],
        0x08 => &["present", "failure detected", "predictive failure", "input lost"],
        0x09 => &[
            "power off",
            "power cycle",
            "240 VA power down",
            "interlock power down",
            "AC lost",
            "soft power control failure",
            "failure detected",
            "predictive failure",
        ],
        0x0c => &[
            "correctable ECC error",
            "uncorrectable ECC error",
            "parity error",
            "scrub failed",
            "disabled",
            "correctable ECC logging limit reached",
            "present",
        ],
        0x0d => &["present", "drive fault", "predictive failure"],
        0x0f => &["firmware error", "firmware hang", "firmware progress"],
        0x10 => &[
            "correctable memory error logging disabled",
            "event logging disabled",
            "log cleared",
            "all event logging disabled",
            "log full",
            "log almost full",
        ],
        0x12 => &["reconfigured", "OEM boot event", "undetermined hardware failure"],
        0x13 => &[
            "front panel NMI",
            "bus timeout",
            "I/O channel check NMI",
            "software NMI",
            "PCI PERR",
            "PCI SERR",
            "EISA fail safe timeout",
            "bus correctable error",
            "bus uncorrectable error",
            "fatal NMI",
        ],
        0x14 => &["power button pressed", "sleep button pressed", "reset button pressed"],
        0x1d => &[
            "initiated by power up",
            "initiated by hard reset",
            "initiated by warm reset",
            "user requested PXE boot",
        ],
        0x1e => &[
            "no bootable media",
            "non-bootable diskette left in drive",
            "PXE server not found",
            "invalid boot sector",
        ],
        0x20 => &[
            "critical stop during load",
            "run-time critical stop",
            "graceful stop",
            "graceful shutdown",
        ],
        0x23 => &["timer expired", "hard reset", "power down", "power cycle"],
        0x29 => &["battery low", "battery failed", "battery present"],
        _ => &[],
    };
    states.get(usize::from(offset)).copied()
}

/// Types of sensors (table 42-3).
#[rustfmt::skip]
const SENSOR_TYPES: [&str; 45] = [
    "reserved", "Temperature", "Voltage", "Current", "Fan", "Physical Security", "Platform Security",
    "Processor", "Power Supply", "Power Unit", "Cooling Device", "Other Units", "Memory", "Drive Slot",
    "POST Memory Resize", "System Firmware Progress", "Event Logging Disabled", "Watchdog 1",
    "System Event", "Critical Interrupt", "Button", "Module", "Microcontroller", "Add-in Card",
    "Chassis", "Chip Set", "Other FRU", "Cable", "Terminator", "System Boot Initiated", "Boot Error",
    "OS Boot", "OS Stop", "Slot", "System ACPI Power State", "Watchdog 2", "Platform Alert",
    "Entity Presence", "Monitor ASIC", "LAN", "Management Subsystem Health", "Battery",
    "Session Audit", "Version Change", "FRU State",
];
