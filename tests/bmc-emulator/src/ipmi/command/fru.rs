//! Field replaceable unit 0, the machine itself (IPMI 2.0 chapter 34; FRU Information Storage Definition 1.0).

use crate::ipmi::command::{Answer, Call, CompletionCode};
use crate::ipmi::face::IpmiFace;
use crate::ipmi::message::checksum;
use crate::spec::MachineSpec;

/// The most bytes in one read.
const LARGEST_READ: usize = 128;
/// §3 of the FRU definition: fields are 8-bit text (type 11b) of at most 63 bytes.
const TEXT: u8 = 0xC0;
const LONGEST_TEXT: usize = 63;
/// The end of the fields. A text of length one would look the same.
const END: u8 = 0xC1;
const ENGLISH: u8 = 25;
const RACK_MOUNT: u8 = 0x17;

impl IpmiFace {
    /// Get FRU Inventory Area Info (§34.1).
    pub(super) fn get_fru_inventory_area_info(&mut self, call: &Call<'_>) -> Answer {
        let [low, high] = (self.fru(call)?.len() as u16).to_le_bytes();
        // Offsets count bytes.
        Ok(vec![low, high, 0x00])
    }

    /// Read FRU Data (§34.2).
    pub(super) fn read_fru_data(&mut self, call: &Call<'_>) -> Answer {
        let fru = self.fru(call)?;
        let (offset, count) = (usize::from(call.word(1)?), usize::from(call.byte(3)?));
        let rest = fru
            .get(offset..)
            .filter(|rest| !rest.is_empty())
            .ok_or(CompletionCode::OUT_OF_RANGE)?;
        let read = &rest[..rest.len().min(count).min(LARGEST_READ)];
        Ok([&[read.len() as u8], read].concat())
    }

    fn fru(&self, call: &Call<'_>) -> Result<Vec<u8>, CompletionCode> {
        match call.byte(0)? {
            0 => Ok(inventory(self.machine.spec())),
            _ => Err(CompletionCode::NOT_PRESENT),
        }
    }
}

/// The whole inventory: common header, chassis area, board area and product area.
fn inventory(spec: &MachineSpec) -> Vec<u8> {
    let chassis = area(&[RACK_MOUNT], &["", &spec.serial]);
    // Zeros mean an unspecified date of manufacture.
    let board = area(&[ENGLISH, 0, 0, 0], &[&spec.manufacturer, &spec.model, &spec.serial, "", ""]);
    let product = area(
        &[ENGLISH],
        &[&spec.manufacturer, &spec.model, "", "1.0", &spec.serial, &spec.name, ""],
    );

    let chassis_at = 1;
    let board_at = chassis_at + chassis.len() / 8;
    let product_at = board_at + board.len() / 8;
    let mut fru = vec![0x01, 0x00, chassis_at as u8, board_at as u8, product_at as u8, 0x00, 0x00];
    fru.push(checksum(&fru));
    for area in [chassis, board, product] {
        fru.extend(area);
    }
    fru
}

/// One area: version, length in units of 8 bytes, fixed bytes, fields, end mark, padding and checksum.
fn area(fixed: &[u8], fields: &[&str]) -> Vec<u8> {
    let mut area = vec![0x01, 0x00];
    area.extend(fixed);
    for field in fields {
        let mut text: Vec<u8> = field.bytes().take(LONGEST_TEXT).collect();
        if text.len() == 1 {
            text.push(b' ');
        }
        area.push(TEXT | text.len() as u8);
        area.extend(text);
    }
    area.push(END);
    area.resize(area.len().next_multiple_of(8) + if area.len() % 8 == 0 { 8 } else { 0 }, 0x00);
    area[1] = (area.len() / 8) as u8;
    let last = area.len() - 1;
    area[last] = checksum(&area[..last]);
    area
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_area_has_a_multiple_of_8_bytes_and_sums_to_zero() {
        for length in 0..70 {
            let field = "x".repeat(length);
            let area = area(&[ENGLISH], &[&field, &field]);
            assert_eq!(area.len(), usize::from(area[1]) * 8);
            assert_eq!(checksum(&area), 0);
            assert!(area.contains(&END));
        }
    }
}
