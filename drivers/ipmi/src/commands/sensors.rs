//! Sensor records and readings (IPMI 2.0 §33 and §35).

use crate::wire::{Malformed, Reader};

use super::{Command, SENSOR, STORAGE};

/// Reserve SDR Repository (§33.11), which is needed to read records in parts.
pub(crate) struct ReserveRepository;

impl Command for ReserveRepository {
    const NAME: &'static str = "Reserve SDR Repository";
    const CODE: (u8, u8) = (STORAGE, 0x22);
    type Answer = u16;

    fn data(&self) -> Vec<u8> {
        Vec::new()
    }

    fn read(&self, answer: &mut Reader<'_>) -> Result<u16, Malformed> {
        answer.u16()
    }
}

/// Get SDR (§33.12), for a part of a record.
pub(crate) struct GetRecord {
    pub(crate) reservation: u16,
    pub(crate) record: u16,
    pub(crate) offset: u8,
    pub(crate) count: u8,
}

/// A part of a record, and the id of the next record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RecordPart {
    pub(crate) next: u16,
    pub(crate) bytes: Vec<u8>,
}

impl Command for GetRecord {
    const NAME: &'static str = "Get SDR";
    const CODE: (u8, u8) = (STORAGE, 0x23);
    type Answer = RecordPart;

    fn data(&self) -> Vec<u8> {
        let ([a, b], [c, d]) = (self.reservation.to_le_bytes(), self.record.to_le_bytes());
        vec![a, b, c, d, self.offset, self.count]
    }

    fn read(&self, answer: &mut Reader<'_>) -> Result<RecordPart, Malformed> {
        let next = answer.u16()?;
        let bytes = answer.rest();
        if bytes.is_empty() || bytes.len() > usize::from(self.count) {
            return Err(Malformed("it has another length than was asked for"));
        }
        Ok(RecordPart { next, bytes: bytes.to_vec() })
    }
}

/// Get Sensor Reading (§35.14).
pub(crate) struct GetReading {
    pub(crate) sensor: u8,
    pub(crate) lun: u8,
}

/// The current state of a sensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawReading {
    /// `None` if the sensor has no reading now.
    pub(crate) value: Option<u8>,
    /// The exceeded thresholds, or the current states.
    pub(crate) status: u8,
}

impl Command for GetReading {
    const NAME: &'static str = "Get Sensor Reading";
    const CODE: (u8, u8) = (SENSOR, 0x2d);
    type Answer = RawReading;

    fn lun(&self) -> u8 {
        self.lun
    }

    fn data(&self) -> Vec<u8> {
        vec![self.sensor]
    }

    fn read(&self, answer: &mut Reader<'_>) -> Result<RawReading, Malformed> {
        let [value, flags] = answer.array()?;
        let (is_unavailable, is_scanned) = (flags & 0x20 != 0, flags & 0x40 != 0);
        // A sensor without states omits the last byte.
        let status = answer.u8().unwrap_or(0);
        Ok(RawReading { value: (is_scanned && !is_unavailable).then_some(value), status })
    }
}
