//! Sensors, event log and identify light.

use std::collections::VecDeque;

use async_trait::async_trait;
use bmc::{BmcError, IdentifyLight, LogEntry, Reading, ReadingHealth, Sensor, SensorKind, Sensors};
use tracing::debug;

use crate::client::{Client, malformed};
use crate::commands::chassis::ChassisIdentify;
use crate::commands::entity::entity_name;
use crate::commands::event_log::{GetLogEntry, GetLogInfo, LogInfo};
use crate::commands::sensor_record::{RecordHeader, SensorRecord};
use crate::commands::sensors::{GetReading, GetRecord, RawReading, ReserveRepository};
use crate::commands::{Command, CompletionCode};
use crate::inspection::is_too_much;

/// The most records that are read: no BMC has so many, and a broken repository may never end.
const MOST_RECORDS: usize = 4096;
/// How often a reservation is renewed after another client cancelled it.
const RESERVATIONS: usize = 8;
const CHUNK: u8 = 32;
const SMALLEST_CHUNK: u8 = 4;
/// The longest time, in seconds, for a BMC without the option to switch the light on indefinitely.
const LONGEST_LIGHT: u8 = 255;

#[async_trait]
impl Sensors for Client {
    async fn readings(&self) -> Result<Vec<Reading>, BmcError> {
        let mut readings = Vec::new();
        for sensor in self.sensor_records().await? {
            let command = GetReading { sensor: sensor.number, lun: sensor.lun };
            let raw = match self.call(&command).await? {
                Ok(raw) => raw,
                Err(code) => {
                    debug!(sensor.name, "the sensor has no reading: {code}");
                    RawReading { value: None, status: 0 }
                }
            };
            readings.push(reading(sensor, raw));
        }
        Ok(readings)
    }

    async fn monitored(&self) -> Result<Vec<Reading>, BmcError> {
        let mut readings = self.readings().await?;
        readings.retain(|reading| reading.sensor.is_enabled);
        Ok(readings)
    }

    async fn event_log(&self, limit: usize) -> Result<Vec<LogEntry>, BmcError> {
        self.sel(limit).await
    }

    async fn identify(&self, light: IdentifyLight) -> Result<(), BmcError> {
        let command = match light {
            IdentifyLight::Off => ChassisIdentify::Off,
            IdentifyLight::On => ChassisIdentify::Indefinitely,
        };
        match self.call(&command).await? {
            Ok(()) => Ok(()),
            Err(
                CompletionCode::LENGTH_INVALID
                | CompletionCode::LENGTH_EXCEEDED
                | CompletionCode::INVALID_FIELD,
            ) if light == IdentifyLight::On => {
                self.run(&ChassisIdentify::ForSeconds(LONGEST_LIGHT)).await
            }
            Err(code) => Err(self.refusal(code, ChassisIdentify::NAME)),
        }
    }
}

impl Client {
    /// Returns the fill level of the system event log.
    pub async fn sel_info(&self) -> Result<LogInfo, BmcError> {
        self.run(&GetLogInfo).await
    }

    /// Returns the newest `limit` entries of the system event log, oldest first.
    pub async fn sel(&self, limit: usize) -> Result<Vec<LogEntry>, BmcError> {
        let info = self.sel_info().await?;
        let (mut newest, mut record) = (VecDeque::new(), GetLogEntry::FIRST);
        for _ in 0..info.entries {
            let (next, entry) = match self.call(&GetLogEntry { record }).await? {
                Ok(answer) => answer,
                // Another client cleared the log in the meantime.
                Err(CompletionCode::NOT_PRESENT) => break,
                Err(code) => return Err(self.refusal(code, GetLogEntry::NAME)),
            };
            newest.push_back(entry);
            if newest.len() > limit {
                newest.pop_front();
            }
            if next == GetLogEntry::LAST || next == record {
                break;
            }
            record = next;
        }
        Ok(newest.into())
    }

    /// Returns the records of all sensors with readings, in the order of the repository.
    async fn sensor_records(&self) -> Result<Vec<SensorRecord>, BmcError> {
        let mut walk = RepositoryCursor { reservation: 0, reservations: 0, chunk: CHUNK };
        self.reserve(&mut walk).await?;
        let (mut sensors, mut record) = (Vec::new(), FIRST_RECORD);
        for _ in 0..MOST_RECORDS {
            let (next, sensor) = self.sensor_record(&mut walk, record).await?;
            sensors.extend(sensor);
            if next == LAST_RECORD || next == record {
                break;
            }
            record = next;
        }
        Ok(sensors)
    }

    /// Reads one record; returns the id of the next record, and the sensor if the record describes one.
    async fn sensor_record(
        &self,
        walk: &mut RepositoryCursor,
        record: u16,
    ) -> Result<(u16, Option<SensorRecord>), BmcError> {
        let unreadable = |reason| malformed(GetRecord::NAME, reason);
        let (next, start) = self.record_bytes(walk, record, 0, RecordHeader::LENGTH).await?;
        if start.is_empty() {
            return Ok((next, None));
        }
        let header = RecordHeader::read(&start).map_err(|reason| unreadable(reason.0))?;
        if !header.is_of_a_sensor() {
            return Ok((next, None));
        }
        let (_, body) =
            self.record_bytes(walk, record, RecordHeader::LENGTH, header.length).await?;
        match SensorRecord::read(header, &body) {
            Ok(sensor) => Ok((next, sensor)),
            Err(reason) => {
                debug!(record, "left out a sensor record: {reason}");
                Ok((next, None))
            }
        }
    }

    /// Reads `length` bytes of a record from `offset` on, in pieces that the BMC accepts.
    async fn record_bytes(
        &self,
        walk: &mut RepositoryCursor,
        record: u16,
        offset: u8,
        length: u8,
    ) -> Result<(u16, Vec<u8>), BmcError> {
        let (mut next, mut bytes) = (LAST_RECORD, Vec::new());
        // An offset has one byte, so bytes beyond 255 cannot be read.
        let length = length.min(u8::MAX - offset);
        while bytes.len() < usize::from(length) {
            let read = bytes.len() as u8;
            let (offset, count) = (offset + read, walk.chunk.min(length - read));
            let command = GetRecord { reservation: walk.reservation, record, offset, count };
            match self.call(&command).await? {
                Ok(part) => {
                    next = part.next;
                    bytes.extend(part.bytes);
                }
                // The repository is empty, or the record was removed in the meantime.
                Err(CompletionCode::NOT_PRESENT) => return Ok((LAST_RECORD, Vec::new())),
                Err(CompletionCode::RESERVATION_CANCELLED) if walk.reservations < RESERVATIONS => {
                    self.reserve(walk).await?;
                }
                Err(code) if is_too_much(code) && walk.chunk > SMALLEST_CHUNK => walk.chunk /= 2,
                Err(code) => return Err(self.refusal(code, GetRecord::NAME)),
            }
        }
        Ok((next, bytes))
    }

    async fn reserve(&self, walk: &mut RepositoryCursor) -> Result<(), BmcError> {
        walk.reservation = self.run(&ReserveRepository).await?;
        walk.reservations += 1;
        Ok(())
    }
}

const FIRST_RECORD: u16 = 0x0000;
/// The `next` of the last record.
const LAST_RECORD: u16 = 0xffff;

/// The state of reading the repository.
struct RepositoryCursor {
    reservation: u16,
    reservations: usize,
    /// The number of bytes that the BMC is known to read at once.
    chunk: u8,
}

/// Makes a reading of a sensor's record and its raw value.
fn reading(sensor: SensorRecord, raw: RawReading) -> Reading {
    let value = raw.value.zip(sensor.conversion).map(|(raw, conversion)| conversion.value(raw));
    let health = match raw.value {
        Some(_) if sensor.has_thresholds => health(raw.status),
        Some(_) | None => ReadingHealth::Unknown,
    };
    let value = value.filter(|value| value.is_finite());
    let [entity, instance] = sensor.entity;
    let source = Sensor {
        // As ipmitool names them, whose words Ironic uses.
        id: format!("{} ({:#x})", sensor.name, sensor.number),
        kind: kind(&sensor.unit),
        place: format!("{entity}.{instance} ({})", entity_name(entity)),
        is_enabled: raw.value.is_some(),
    };
    Reading { name: sensor.name, value, unit: sensor.unit, health, sensor: source }
}

fn kind(unit: &str) -> SensorKind {
    match unit {
        "degrees C" => SensorKind::Temperature,
        "RPM" => SensorKind::Fan,
        "Volts" => SensorKind::Voltage,
        "Amps" => SensorKind::Current,
        "Watts" => SensorKind::Consumption,
        _ => SensorKind::Other,
    }
}

/// Derives the health from the comparison with thresholds (IPMI 2.0 table 35-15): bits 0 to 2 (lower) and 3 to 5 (upper) are non-critical,
/// critical and non-recoverable.
fn health(status: u8) -> ReadingHealth {
    match status {
        status if status & 0b11_0110 != 0 => ReadingHealth::Critical,
        status if status & 0b00_1001 != 0 => ReadingHealth::Warning,
        _ => ReadingHealth::Ok,
    }
}
