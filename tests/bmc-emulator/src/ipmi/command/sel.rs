//! The system event log (IPMI 2.0 chapter 31).

use jiff::Timestamp;

use crate::events::{Event, EventKind};
use crate::ipmi::command::{Answer, Call, CompletionCode};
use crate::ipmi::face::IpmiFace;
use crate::ipmi::message::BMC_ADDRESS;
use crate::log::Protocol;

const SEL_VERSION: u8 = 0x51;
const RECORD: usize = 16;
const SYSTEM_EVENT: u8 = 0x02;
/// The format of IPMI 1.5 and 2.0 events.
const EVENT_REVISION: u8 = 0x04;
/// The event type of a sensor-specific assertion.
const SENSOR_SPECIFIC: u8 = 0x6F;
const FIRST: u16 = 0x0000;
const LAST: u16 = 0xFFFF;

impl IpmiFace {
    /// Get SEL Info (§31.2): supports reservations.
    pub(super) fn get_sel_info(&mut self, _: &Call<'_>) -> Answer {
        let chassis = self.machine.chassis();
        let entries = chassis.events.all().count() as u16;
        let free = (chassis.events.free() * RECORD) as u16;
        let added = chassis.events.all().last().map_or(0, |event| seconds(event.at));
        let cleared = chassis.events.cleared_at.map_or(0, seconds);

        let mut info = vec![SEL_VERSION];
        info.extend(entries.to_le_bytes());
        info.extend(free.to_le_bytes());
        info.extend(added.to_le_bytes());
        info.extend(cleared.to_le_bytes());
        info.push(0x02);
        Ok(info)
    }

    /// Reserve SEL (§31.4).
    pub(super) fn reserve_sel(&mut self, _: &Call<'_>) -> Answer {
        self.sel_reservation = self.sel_reservation.checked_add(1).unwrap_or(1);
        Ok(self.sel_reservation.to_le_bytes().to_vec())
    }

    /// Get SEL Entry (§31.5).
    pub(super) fn get_sel_entry(&mut self, call: &Call<'_>) -> Answer {
        let (reservation, id) = (call.word(0)?, call.word(2)?);
        let (offset, count) = (usize::from(call.byte(4)?), usize::from(call.byte(5)?));
        if offset != 0 && (reservation == 0 || reservation != self.sel_reservation) {
            return Err(CompletionCode::RESERVATION_CANCELLED);
        }
        let chassis = self.machine.chassis();
        let mut events = chassis.events.all();
        let event = match id {
            FIRST => events.next(),
            LAST => events.last(),
            id => events.find(|event| event.id == id),
        };
        let event = event.ok_or(CompletionCode::NOT_PRESENT)?;
        let mut after = chassis.events.all().skip_while(|other| other.id != event.id).skip(1);
        let next = after.next().map_or(LAST, |event| event.id);

        let record = record(event);
        let rest = record.get(offset..).ok_or(CompletionCode::OUT_OF_RANGE)?;
        Ok([next.to_le_bytes().as_slice(), &rest[..rest.len().min(count)]].concat())
    }

    /// Clear SEL (§31.9): needs a reservation and the letters CLR. The log is cleared at once.
    pub(super) fn clear_sel(&mut self, call: &Call<'_>) -> Answer {
        if call.word(0)? != self.sel_reservation || self.sel_reservation == 0 {
            return Err(CompletionCode::RESERVATION_CANCELLED);
        }
        if [call.byte(2)?, call.byte(3)?, call.byte(4)?] != *b"CLR" {
            return Err(CompletionCode::INVALID_DATA);
        }
        match call.byte(5)? {
            0xAA => {
                self.machine.clear_events(Protocol::Ipmi);
                self.sel_reservation = 0;
            }
            0x00 => {}
            _ => return Err(CompletionCode::INVALID_DATA),
        }
        Ok(vec![0x01])
    }

    /// Get SEL Time (§31.10).
    pub(super) fn get_sel_time(&mut self, _: &Call<'_>) -> Answer {
        Ok(seconds(Timestamp::now()).to_le_bytes().to_vec())
    }
}

/// The event record of table 32-1, type 02h.
fn record(event: &Event) -> Vec<u8> {
    // Sensor type and event offset of table 42-3.
    let (kind, offset) = match event.kind {
        EventKind::PoweredOn => (0x22, 0x00),
        EventKind::PoweredOff => (0x22, 0x05),
        EventKind::Restarted => (0x1D, 0x01),
        EventKind::Interrupted => (0x13, 0x00),
        EventKind::LogCleared => (0x10, 0x02),
    };
    let mut record = event.id.to_le_bytes().to_vec();
    record.push(SYSTEM_EVENT);
    record.extend(seconds(event.at).to_le_bytes());
    // These events belong to no sensor that can be read.
    record.extend([
        BMC_ADDRESS,
        0x00,
        EVENT_REVISION,
        kind,
        0xFF,
        SENSOR_SPECIFIC,
        offset,
        0xFF,
        0xFF,
    ]);
    record
}

/// §37: seconds since 1970.
fn seconds(at: Timestamp) -> u32 {
    u32::try_from(at.as_second()).unwrap_or(u32::MAX)
}
