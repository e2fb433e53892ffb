//! Reads the inventory of a field-replaceable unit (FRU) as bytes (IPMI 2.0 §34.1 and §34.2).

use crate::wire::{Malformed, Reader};

use super::{Command, STORAGE};

/// The BMC's own unit, which describes the machine.
const BUILT_IN: u8 = 0;

/// The command Get FRU Inventory Area Info.
pub(crate) struct GetFruAreaInfo;

/// The size of the inventory, and the unit of its addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FruAreaInfo {
    pub(crate) bytes: u16,
    /// Bytes per step of an offset or a count: 1, or 2 if the device counts words.
    pub(crate) step: u16,
}

impl Command for GetFruAreaInfo {
    const NAME: &'static str = "Get FRU Inventory Area Info";
    const CODE: (u8, u8) = (STORAGE, 0x10);
    type Answer = FruAreaInfo;

    fn data(&self) -> Vec<u8> {
        vec![BUILT_IN]
    }

    fn read(&self, answer: &mut Reader<'_>) -> Result<FruAreaInfo, Malformed> {
        Ok(FruAreaInfo { bytes: answer.u16()?, step: u16::from(answer.u8()? & 1) + 1 })
    }
}

pub(crate) struct ReadFruData {
    /// Position of the first byte.
    pub(crate) offset: u16,
    /// Number of bytes to read.
    pub(crate) count: u8,
    /// Bytes per step of an offset or a count.
    pub(crate) step: u16,
}

impl Command for ReadFruData {
    const NAME: &'static str = "Read FRU Data";
    const CODE: (u8, u8) = (STORAGE, 0x11);
    type Answer = Vec<u8>;

    fn data(&self) -> Vec<u8> {
        let [low, high] = (self.offset / self.step).to_le_bytes();
        vec![BUILT_IN, low, high, (u16::from(self.count) / self.step) as u8]
    }

    fn read(&self, answer: &mut Reader<'_>) -> Result<Vec<u8>, Malformed> {
        let count = usize::from(answer.u8()?) * usize::from(self.step);
        let data = answer.take(count)?;
        if data.is_empty() || data.len() > usize::from(self.count) {
            return Err(Malformed("it has another length than was asked for"));
        }
        Ok(data.to_vec())
    }
}
