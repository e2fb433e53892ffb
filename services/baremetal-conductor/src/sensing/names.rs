//! The names under which ironic-prometheus-exporter shows sensors: `parsers/redfish.py` and `parsers/ipmi.py`.

use baremetal_core::Driver;
use bmc::{Reading, ReadingHealth, Sensor, SensorKind};
use metrics::SensorSample;

/// The longest name of a metric.
const LONGEST: usize = 100;

/// Returns the samples of the readings of one machine.
pub(super) fn samples(driver: Driver, readings: &[Reading]) -> Vec<SensorSample> {
    match driver {
        Driver::Ipmi => readings.iter().filter_map(ipmi_sample).collect(),
        Driver::Redfish | Driver::Idrac | Driver::FakeHardware | Driver::ManualManagement => {
            readings.iter().flat_map(redfish_samples).collect()
        }
    }
}

/// A temperature has its value and its health, other sensors have their health alone. A sensor without a place is no temperature.
fn redfish_samples(reading: &Reading) -> Vec<SensorSample> {
    let Sensor { id, kind, place, .. } = &reading.sensor;
    let sample = |family: String, value: f64| SensorSample {
        family,
        sensor: id.clone(),
        place: ("physical_context", place.clone()),
        status: None,
        value,
    };
    let health = match reading.health {
        ReadingHealth::Ok => Some(0.0),
        ReadingHealth::Warning => Some(1.0),
        ReadingHealth::Critical => Some(2.0),
        ReadingHealth::Unknown => None,
    };
    let with_health = |family: &str| health.map(|health| sample(family.to_owned(), health));
    match kind {
        SensorKind::Temperature => {
            let Some(value) = reading.value.filter(|_| !place.is_empty()) else {
                return Vec::new();
            };
            let family = tidy(&format!("baremetal_temp_{}_celsius", place.to_lowercase()));
            let status = with_health("baremetal_temperature_status");
            [Some(sample(family, value)), status].into_iter().flatten().collect()
        }
        SensorKind::Fan => with_health("baremetal_fan_status").into_iter().collect(),
        SensorKind::PowerSupply => with_health("baremetal_power_status").into_iter().collect(),
        SensorKind::Drive => with_health("baremetal_drive_status").into_iter().collect(),
        SensorKind::Voltage | SensorKind::Current | SensorKind::Consumption | SensorKind::Other => {
            Vec::new()
        }
    }
}

/// The value of a sensor, under a name that is made of the sensor's name.
fn ipmi_sample(reading: &Reading) -> Option<SensorSample> {
    let Sensor { id, kind, place, .. } = &reading.sensor;
    let text = id.to_lowercase();
    let family = match kind {
        SensorKind::Temperature => format!("baremetal_{}_celsius", without_numbers(&text)),
        SensorKind::Fan => format!("baremetal_{}_rpm", fan(&text)),
        SensorKind::Voltage => format!("baremetal_voltage_{}_volts", voltage(&text)),
        SensorKind::Current | SensorKind::Consumption => {
            format!("baremetal_{}", without_numbers(&text))
        }
        SensorKind::PowerSupply | SensorKind::Drive | SensorKind::Other => return None,
    };
    let status = match reading.health {
        ReadingHealth::Ok => Some("ok"),
        ReadingHealth::Warning => Some("nc"),
        ReadingHealth::Critical => Some("cr"),
        ReadingHealth::Unknown => None,
    };
    Some(SensorSample {
        family: tidy(&family),
        sensor: id.clone(),
        place: ("entity_id", place.clone()),
        status,
        value: reading.value?,
    })
}

/// Removes numbers and the last word, which is the number of the sensor: `cpu1 temp (0x2)` becomes `cpu_temp`.
fn without_numbers(text: &str) -> String {
    let letters: String = text.chars().filter(|c| !c.is_ascii_digit()).collect();
    let words: Vec<&str> = letters.split_whitespace().collect();
    words.split_last().map_or_else(String::new, |(_, words)| words.join("_"))
}

/// Removes what follows `fan` in its word, and the number of the sensor: `fan4b (0x43)` becomes `fan`.
fn fan(text: &str) -> String {
    let name = text.split('(').next().unwrap_or_default();
    let mut parts = name.split("fan");
    let mut short = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let part = part.trim_start_matches(|c: char| c.is_ascii_digit());
        short.push_str("fan");
        short.push_str(part.trim_start_matches(|c: char| c.is_ascii_lowercase()));
    }
    short.split_whitespace().collect::<Vec<_>>().join("_")
}

/// Removes voltages and numbers: `3.3v b pg (0x15)` becomes `b_pg`, and `voltage 1 (0x6d)` and `12v (0x5)` become nothing.
fn voltage(text: &str) -> String {
    let label = without_numbers(&without_voltages(text));
    if "baremetal_voltage_".contains(&label) { String::new() } else { label }
}

/// Removes texts such as `5v` and `3.3v`: a digit or a plus sign before a `v`, with two characters between them at most.
fn without_voltages(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let (mut left, mut at) = (String::new(), 0);
    while let Some(first) = chars.get(at) {
        let begins = first.is_ascii_digit() || *first == '+';
        at += match &chars[at..] {
            [_, 'v', ..] if begins => 2,
            [_, _, last, 'v', ..] if begins && (last.is_ascii_digit() || *last == '*') => 4,
            _ => {
                left.push(*first);
                1
            }
        };
    }
    left
}

/// Makes a name of a metric: letters, digits and single underscores.
fn tidy(name: &str) -> String {
    let mut tidy = String::with_capacity(name.len());
    for c in name.chars() {
        let c = if c.is_ascii_alphanumeric() { c } else { '_' };
        if c != '_' || !tidy.ends_with('_') {
            tidy.push(c);
        }
    }
    tidy.truncate(LONGEST);
    tidy
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(id: &str, kind: SensorKind, place: &str) -> Reading {
        Reading {
            name: String::new(),
            value: Some(21.5),
            unit: String::new(),
            health: ReadingHealth::Warning,
            sensor: Sensor { id: id.to_owned(), kind, place: place.to_owned(), is_enabled: true },
        }
    }

    #[track_caller]
    fn check(driver: Driver, reading: Reading, want: &[(&str, f64)]) {
        let samples = samples(driver, &[reading]);
        let shown: Vec<_> = samples.iter().map(|it| (it.family.as_str(), it.value)).collect();
        assert_eq!(shown, want);
    }

    #[test]
    fn sensors_of_ipmi_have_the_names_of_the_exporter() {
        use SensorKind::{Consumption, Current, Fan, Temperature, Voltage};
        // The names of the exporter's own tests, and of the emulator.
        for (id, kind, family) in [
            ("Inlet Temp (0x5)", Temperature, "baremetal_inlet_temp_celsius"),
            ("Temp (0x1)", Temperature, "baremetal_temp_celsius"),
            ("CPU1 Temp (0x2)", Temperature, "baremetal_cpu_temp_celsius"),
            ("Fan4B (0x43)", Fan, "baremetal_fan_rpm"),
            ("System Fan 1 (0x3)", Fan, "baremetal_system_fan_1_rpm"),
            ("Voltage 1 (0x6d)", Voltage, "baremetal_voltage_volts"),
            ("12V (0x5)", Voltage, "baremetal_voltage_volts"),
            ("3.3V B PG (0x15)", Voltage, "baremetal_voltage_b_pg_volts"),
            ("CMOS Battery (0x6)", Voltage, "baremetal_voltage_cmos_battery_volts"),
            ("Current 1 (0x6a)", Current, "baremetal_current"),
            ("Pwr Consumption (0x77)", Consumption, "baremetal_pwr_consumption"),
            ("a-b {\"c\"} (0x1)", Temperature, "baremetal_a_b_c_celsius"),
        ] {
            check(Driver::Ipmi, reading(id, kind, "7.1 (System Board)"), &[(family, 21.5)]);
        }
        check(Driver::Ipmi, reading("Energy (0x9)", SensorKind::Other, ""), &[]);
        let sample =
            samples(Driver::Ipmi, &[reading("Temp (0x1)", Temperature, "3.1 (Processor)")]);
        let place = ("entity_id", "3.1 (Processor)".to_owned());
        assert_eq!((&sample[0].place, sample[0].status), (&place, Some("nc")));
    }

    #[test]
    fn sensors_of_redfish_have_the_names_of_the_exporter() {
        let intake =
            [("baremetal_temp_intake_celsius", 21.5), ("baremetal_temperature_status", 1.0)];
        check(Driver::Redfish, reading("0@1", SensorKind::Temperature, "Intake"), &intake);
        check(Driver::Redfish, reading("0@1", SensorKind::Temperature, ""), &[]);
        for (kind, family) in [
            (SensorKind::Fan, "baremetal_fan_status"),
            (SensorKind::PowerSupply, "baremetal_power_status"),
            (SensorKind::Drive, "baremetal_drive_status"),
        ] {
            check(Driver::Idrac, reading("0@1", kind, ""), &[(family, 1.0)]);
            let silent = Reading { health: ReadingHealth::Unknown, ..reading("0@1", kind, "") };
            check(Driver::Idrac, silent, &[]);
        }
        check(Driver::Redfish, reading("0@1", SensorKind::Voltage, "CPU"), &[]);
    }
}
