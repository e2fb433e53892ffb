//! The sensor data record repository (IPMI 2.0 chapter 33) with a full record for each sensor (§43.1).

use crate::ipmi::command::sensor::{factors, kind_and_unit, raw, readable_thresholds};
use crate::ipmi::command::{Answer, Call, CompletionCode};
use crate::ipmi::face::IpmiFace;
use crate::ipmi::message::BMC_ADDRESS;
use crate::sensors::{SENSORS, Sensor};

/// The record version of both IPMI 1.5 and 2.0.
const SDR_VERSION: u8 = 0x51;
const FULL_SENSOR: u8 = 0x01;
const THRESHOLD_EVENTS: u8 = 0x01;
const LAST_RECORD: u16 = 0xFFFF;
/// The length of the record header. The length byte does not count the header.
const HEADER: usize = 5;

impl IpmiFace {
    /// Get SDR Repository Info (§33.9): never changed, supports reservations.
    pub(super) fn get_sdr_repository_info(&mut self, _: &Call<'_>) -> Answer {
        let [low, high] = (SENSORS.len() as u16).to_le_bytes();
        Ok(vec![SDR_VERSION, low, high, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02])
    }

    /// Reserve SDR Repository (§33.11).
    pub(super) fn reserve_sdr_repository(&mut self, _: &Call<'_>) -> Answer {
        self.sdr_reservation = self.sdr_reservation.checked_add(1).unwrap_or(1);
        Ok(self.sdr_reservation.to_le_bytes().to_vec())
    }

    /// Get SDR (§33.12): reading a part of a record needs a reservation, reading a whole record does not.
    pub(super) fn get_sdr(&mut self, call: &Call<'_>) -> Answer {
        let (reservation, id) = (call.word(0)?, call.word(2)?);
        let (offset, count) = (usize::from(call.byte(4)?), usize::from(call.byte(5)?));
        if offset != 0 && (reservation == 0 || reservation != self.sdr_reservation) {
            return Err(CompletionCode::RESERVATION_CANCELLED);
        }
        // Records have the numbers of their sensors, from 1. 0 is the first record, FFFFh the last.
        let number = match id {
            0 => 1,
            LAST_RECORD => SENSORS.len(),
            id => usize::from(id),
        };
        let sensor = number
            .checked_sub(1)
            .and_then(|index| SENSORS.get(index))
            .ok_or(CompletionCode::NOT_PRESENT)?;
        let next = if number == SENSORS.len() { LAST_RECORD } else { number as u16 + 1 };

        let record = full_record(number as u8, sensor);
        let rest = record.get(offset..).ok_or(CompletionCode::OUT_OF_RANGE)?;
        let part = &rest[..rest.len().min(count)];
        Ok([next.to_le_bytes().as_slice(), part].concat())
    }
}

/// The full sensor record of table 43-1, type 01h.
fn full_record(number: u8, sensor: &Sensor) -> Vec<u8> {
    let (multiplier, exponent) = factors(sensor);
    let (kind, unit) = kind_and_unit(sensor.unit);
    let readable = readable_thresholds(sensor);
    let threshold = |value: Option<f64>| value.map_or(0, |value| raw(sensor, value));
    let name: Vec<u8> = sensor.name.bytes().take(16).collect();

    let mut record = vec![number, 0, SDR_VERSION, FULL_SENSOR, 0];
    // Key: owner, LUN, number. Body: the entity, initialized and enabled, readable thresholds, no events.
    record.extend([
        BMC_ADDRESS,
        0,
        number,
        sensor.entity,
        sensor.entity_instance,
        0x7F,
        0x47,
        kind,
        THRESHOLD_EVENTS,
    ]);
    // The comparisons that a reading reports, lower ones and upper ones (each in the high byte), and the readable thresholds.
    record.extend([0, (readable & 0x07) << 4, 0, (readable >> 3 & 0x07) << 4, readable, 0]);
    // Unsigned, no rate or modifier, linear: reading = M × raw × 10^R.
    let [m_low, m_high] = multiplier.to_le_bytes();
    record.extend([
        0x00,
        unit,
        0x00,
        0x00,
        m_low,
        m_high << 6,
        0x00,
        0x00,
        0x00,
        (exponent as u8) << 4,
    ]);
    // A nominal reading, no normal range, then the limits of a byte.
    record.extend([0x01, raw(sensor, sensor.running), 0, 0, 0xFF, 0x00]);
    record.extend([0, threshold(sensor.upper_critical), threshold(sensor.upper_warning)]);
    record.extend([0, threshold(sensor.lower_critical), 0]);
    // No hysteresis. Reserved and OEM bytes are zero.
    record.extend([0, 0, 0, 0, 0]);
    record.push(0xC0 | name.len() as u8);
    record.extend(name);
    record[HEADER - 1] = (record.len() - HEADER) as u8;
    record
}
