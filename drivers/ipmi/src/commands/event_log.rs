//! The system event log (IPMI 2.0 §31 and §32).

use bmc::LogEntry;

use crate::wire::{Malformed, Reader};

use super::event_text;
use super::{Command, STORAGE};

/// Smaller timestamps count seconds since the BMC started (IPMI 2.0 §37).
const SINCE_START: u32 = 0x2000_0000;
const UNSPECIFIED: u32 = u32::MAX;

/// The fill level of the system event log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogInfo {
    pub entries: u16,
    /// 0xffff means 65535 or more.
    pub free_bytes: u16,
    /// Whether entries were lost because the log was full.
    pub has_overflowed: bool,
}

/// The command Get SEL Info (§31.2).
pub(crate) struct GetLogInfo;

impl Command for GetLogInfo {
    const NAME: &'static str = "Get SEL Info";
    const CODE: (u8, u8) = (STORAGE, 0x40);
    type Answer = LogInfo;

    fn data(&self) -> Vec<u8> {
        Vec::new()
    }

    fn read(&self, answer: &mut Reader<'_>) -> Result<LogInfo, Malformed> {
        let _version = answer.u8()?;
        let (entries, free_bytes) = (answer.u16()?, answer.u16()?);
        let _last_addition_and_erase: [u8; 8] = answer.array()?;
        Ok(LogInfo { entries, free_bytes, has_overflowed: answer.u8()? & 0x80 != 0 })
    }
}

/// Get SEL Entry (§31.5) for a whole record, which needs no reservation.
pub(crate) struct GetLogEntry {
    pub(crate) record: u16,
}

impl GetLogEntry {
    pub(crate) const FIRST: u16 = 0x0000;
    /// The `next` of the last record.
    pub(crate) const LAST: u16 = 0xffff;
}

impl Command for GetLogEntry {
    const NAME: &'static str = "Get SEL Entry";
    const CODE: (u8, u8) = (STORAGE, 0x43);
    /// The id of the next record, and this record.
    type Answer = (u16, LogEntry);

    fn data(&self) -> Vec<u8> {
        let [low, high] = self.record.to_le_bytes();
        vec![0, 0, low, high, 0, 0xff]
    }

    fn read(&self, answer: &mut Reader<'_>) -> Result<(u16, LogEntry), Malformed> {
        Ok((answer.u16()?, read_entry(answer.array()?)))
    }
}

/// Decodes a record and describes it in a sentence (§32).
fn read_entry(record: [u8; 16]) -> LogEntry {
    let [id_low, id_high, kind, a, b, c, d, event @ ..] = record;
    let stamp = u32::from_le_bytes([a, b, c, d]);
    // OEM records from 0xe0 on have no timestamp.
    let has_clock = kind < 0xe0 && stamp >= SINCE_START && stamp != UNSPECIFIED;
    let message = match kind {
        0x02 => {
            let [
                _generator,
                _generator_high,
                _revision,
                sensor_type,
                sensor,
                event_type,
                data @ ..,
            ] = event;
            event_text::describe(sensor_type, sensor, event_type, data)
        }
        _ => format!("record of type {kind:#04x}: {}", event_text::hexadecimal(&record[3..])),
    };
    LogEntry {
        id: u16::from_le_bytes([id_low, id_high]).to_string(),
        at: has_clock.then_some(i64::from(stamp)),
        message,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(hexadecimal: &str, id: &str, at: Option<i64>, message: &str) {
        let bytes = hex::decode(hexadecimal.replace(' ', "")).unwrap();
        let (_next, entry) = GetLogEntry { record: 0 }.read(&mut Reader::new(&bytes)).unwrap();
        let want = LogEntry { id: id.to_owned(), at, message: message.to_owned() };
        assert_eq!(entry, want);
    }

    #[test]
    fn a_crossed_threshold_is_a_sentence() {
        check(
            "ffff 0100 02 00e1f45f 2000 04 01 30 01 59 5f 5a",
            "1",
            Some(1_609_883_904),
            "Temperature sensor 0x30: upper critical going high asserted, reading 0x5f, threshold 0x5a",
        );
    }

    #[test]
    fn the_end_of_a_state_is_described() {
        check(
            "0300 0200 02 05000000 2000 04 08 71 ef 03 ff ff",
            "2",
            None,
            "Power Supply sensor 0x71: input lost deasserted",
        );
    }

    #[test]
    fn an_unknown_record_is_shown_as_bytes() {
        check(
            "ffff 0300 02 ffffffff 2000 04 c5 01 73 05 06 07",
            "3",
            None,
            "sensor 0x01 of type 0xc5: event of type 0x73 asserted, data 05 06 07",
        );
        check(
            "ffff 0400 e0 0102030405060708090a0b0c0d",
            "4",
            None,
            "record of type 0xe0: 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d",
        );
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            let _ = GetLogEntry { record: 0 }.read(&mut Reader::new(&bytes));
            let _ = GetLogInfo.read(&mut Reader::new(&bytes));
        }
    }
}
