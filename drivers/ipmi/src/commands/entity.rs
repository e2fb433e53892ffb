//! The parts of a machine (IPMI 2.0 table 43-13).

/// Returns the name of an entity id.
pub(crate) fn entity_name(entity: u8) -> &'static str {
    match entity {
        0x37 | 0x40 => "Air Inlet",
        0x41 => "Processor",
        0x42 => "Baseboard",
        other => NAMES.get(usize::from(other)).copied().unwrap_or("Unknown"),
    }
}

#[rustfmt::skip]
const NAMES: [&str; 49] = [
    "Unspecified", "Other", "Unknown", "Processor", "Disk or Disk Bay", "Peripheral Bay", "System Management Module", "System Board",
    "Memory Module", "Processor Module", "Power Supply", "Add-in Card", "Front Panel Board", "Back Panel Board", "Power System Board",
    "Drive Backplane", "System Internal Expansion Board", "Other System Board", "Processor Board", "Power Unit", "Power Module",
    "Power Management", "Chassis Back Panel Board", "System Chassis", "Sub-Chassis", "Other Chassis Board", "Disk Drive Bay",
    "Peripheral Bay", "Device Bay", "Fan Device", "Cooling Unit", "Cable/Interconnect", "Memory Device", "System Management Software",
    "BIOS", "Operating System", "System Bus", "Group", "Remote Management Device", "External Environment", "Battery",
    "Processing Blade", "Connectivity Switch", "Processor/Memory Module", "I/O Module", "Processor/IO Module",
    "Management Controller Firmware", "IPMI Channel", "PCI Bus",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entities_have_the_names_of_the_table() {
        let known = [
            (0x00, "Unspecified"),
            (0x03, "Processor"),
            (0x07, "System Board"),
            (0x0a, "Power Supply"),
            (0x1d, "Fan Device"),
            (0x28, "Battery"),
            (0x30, "PCI Bus"),
            (0x37, "Air Inlet"),
            (0xff, "Unknown"),
        ];
        for (entity, name) in known {
            assert_eq!(entity_name(entity), name, "{entity:#x}");
        }
    }
}
