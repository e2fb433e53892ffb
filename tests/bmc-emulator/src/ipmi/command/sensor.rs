//! Readings and thresholds (IPMI 2.0 chapter 35).

use crate::ipmi::command::{Answer, Call, CompletionCode};
use crate::ipmi::face::IpmiFace;
use crate::sensors::{SENSORS, Sensor, Unit};

/// Events and scanning are enabled.
const WORKING: u8 = 0xC0;
/// The reading is not valid now.
const UNAVAILABLE: u8 = 0x20;
/// The bits of a status byte that are always set.
const RESERVED: u8 = 0xC0;

/// Bits of threshold masks, table 35-9.
const LOWER_CRITICAL: u8 = 0x02;
const UPPER_WARNING: u8 = 0x08;
const UPPER_CRITICAL: u8 = 0x10;

impl IpmiFace {
    /// Get Sensor Reading Factors (§35.5).
    pub(super) fn get_sensor_reading_factors(&mut self, call: &Call<'_>) -> Answer {
        let (multiplier, exponent) = factors(sensor_of(call)?);
        let [m_low, m_high] = multiplier.to_le_bytes();
        Ok(vec![call.byte(1)?, m_low, m_high << 6, 0x00, 0x00, 0x00, (exponent as u8) << 4])
    }

    /// Get Sensor Hysteresis (§35.7): no sensor has any.
    pub(super) fn get_sensor_hysteresis(&mut self, call: &Call<'_>) -> Answer {
        sensor_of(call).map(|_| vec![0x00, 0x00])
    }

    /// Get Sensor Thresholds (§35.9).
    pub(super) fn get_sensor_thresholds(&mut self, call: &Call<'_>) -> Answer {
        let sensor = sensor_of(call)?;
        let threshold = |value: Option<f64>| value.map_or(0, |value| raw(sensor, value));
        Ok(vec![
            readable_thresholds(sensor),
            0,
            threshold(sensor.lower_critical),
            0,
            threshold(sensor.upper_warning),
            threshold(sensor.upper_critical),
            0,
        ])
    }

    /// Get Sensor Reading (§35.14).
    pub(super) fn get_sensor_reading(&mut self, call: &Call<'_>) -> Answer {
        let sensor = sensor_of(call)?;
        Ok(match sensor.reading(self.machine.reported_on()) {
            Some(value) => vec![raw(sensor, value), WORKING, RESERVED | crossed(sensor, value)],
            None => vec![0, WORKING | UNAVAILABLE, RESERVED],
        })
    }

    /// Get Sensor Type (§35.16).
    pub(super) fn get_sensor_type(&mut self, call: &Call<'_>) -> Answer {
        Ok(vec![kind_and_unit(sensor_of(call)?.unit).0, 0x01])
    }
}

/// M and the exponent R (§36.3), chosen so that one count is the sensor's step.
pub(super) fn factors(sensor: &Sensor) -> (u16, i8) {
    match sensor.step_thousandths {
        step if step % 1000 == 0 => ((step / 1000) as u16, 0),
        step => ((step / 10) as u16, -2),
    }
}

/// The sensor type (table 42-3) and the unit (table 43-15).
pub(super) fn kind_and_unit(unit: Unit) -> (u8, u8) {
    match unit {
        Unit::Celsius => (0x01, 1),
        Unit::Rpm => (0x04, 18),
        Unit::Volts => (0x02, 4),
        Unit::Watts => (0x0B, 6),
    }
}

/// A bit for each threshold that the sensor has.
pub(super) fn readable_thresholds(sensor: &Sensor) -> u8 {
    let bit = |threshold: Option<f64>, bit| if threshold.is_some() { bit } else { 0 };
    bit(sensor.lower_critical, LOWER_CRITICAL)
        | bit(sensor.upper_warning, UPPER_WARNING)
        | bit(sensor.upper_critical, UPPER_CRITICAL)
}

/// The value as a raw count, rounded.
pub(super) fn raw(sensor: &Sensor, value: f64) -> u8 {
    (value * 1000.0 / f64::from(sensor.step_thousandths)).round() as u8
}

/// A bit for each threshold that `value` has reached or crossed.
fn crossed(sensor: &Sensor, value: f64) -> u8 {
    let past = |crossed: bool, bit| if crossed { bit } else { 0 };
    past(sensor.lower_critical.is_some_and(|threshold| value <= threshold), LOWER_CRITICAL)
        | past(sensor.upper_warning.is_some_and(|threshold| value >= threshold), UPPER_WARNING)
        | past(sensor.upper_critical.is_some_and(|threshold| value >= threshold), UPPER_CRITICAL)
}

/// The sensor of the request. Sensors are numbered from 1.
fn sensor_of(call: &Call<'_>) -> Result<&'static Sensor, CompletionCode> {
    let index = usize::from(call.byte(0)?).checked_sub(1);
    index.and_then(|index| SENSORS.get(index)).ok_or(CompletionCode::NOT_PRESENT)
}
