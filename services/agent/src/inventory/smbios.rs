//! The firmware's description of the machine (SMBIOS, DSP0134).

use std::fs;

use serde_json::{Map, Value, json};

use crate::root::Root;

const MEMORY_DEVICE: u8 = 17;

/// Returns the total size of all memory modules in MiB (DSP0134 §7.18).
pub(super) fn memory_mib(root: &Root) -> Option<u64> {
    let table = fs::read(root.path("/sys/firmware/dmi/tables/DMI")).ok()?;
    let total = structures(&table)
        .filter(|structure| structure.first() == Some(&MEMORY_DEVICE))
        .map(module_mib)
        .sum();
    (total > 0).then_some(total)
}

fn module_mib(structure: &[u8]) -> u64 {
    let word = |at: usize| Some(u16::from_le_bytes([*structure.get(at)?, *structure.get(at + 1)?]));
    match word(0x0c) {
        None | Some(0 | 0xffff) => 0,
        Some(0x7fff) => match (word(0x1c), word(0x1e)) {
            (Some(low), Some(high)) => u64::from(high & 0x7fff) << 16 | u64::from(low),
            _ => 0,
        },
        Some(kib) if kib & 0x8000 != 0 => u64::from(kib & 0x7fff) / 1024,
        Some(mib) => u64::from(mib),
    }
}

/// Iterates over the structures of a table without their strings (DSP0134 §6.1).
fn structures(table: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = table;
    std::iter::from_fn(move || {
        let length = usize::from(*rest.get(1)?);
        if length < 4 {
            return None;
        }
        let (structure, strings) = rest.split_at_checked(length)?;
        let end = strings.windows(2).position(|pair| pair == [0, 0]);
        rest = end.map_or(&[], |end| &strings[end + 2..]);
        Some(structure)
    })
}

/// Returns the firmware's names of the machine, its board and its chassis.
pub(super) fn identity(root: &Root) -> Value {
    let group = |prefix: &str| -> Map<String, Value> {
        let names = root.names("/sys/class/dmi/id");
        let own = names.iter().filter_map(|name| Some((name, name.strip_prefix(prefix)?)));
        own.filter_map(|(name, short)| {
            let text = root.text(format!("/sys/class/dmi/id/{name}"))?;
            Some((short.to_owned(), Value::String(text)))
        })
        .collect()
    };
    json!({
        "bios": group("bios_"),
        "system": group("product_"),
        "board": group("board_"),
        "chassis": group("chassis_"),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn module(size: u16, extended: u32) -> Vec<u8> {
        let mut raw = vec![0; 0x22];
        raw[0] = MEMORY_DEVICE;
        raw[1] = 0x22;
        raw[0x0c..0x0e].copy_from_slice(&size.to_le_bytes());
        raw[0x1c..0x20].copy_from_slice(&extended.to_le_bytes());
        raw.extend(*b"DIMM 0\0\0");
        raw
    }

    #[test]
    fn modules_of_every_size_add_up() {
        let table =
            [module(16384, 0), module(0, 0), module(0x7fff, 65536), module(0x8000 | 2048, 0)];
        let table = table.concat();
        let sum: u64 = structures(&table).map(module_mib).sum();
        assert_eq!(sum, 16384 + 65536 + 2);
    }

    proptest! {
        #[test]
        fn no_table_panics(table: Vec<u8>) {
            structures(&table).map(module_mib).for_each(drop);
        }
    }
}
