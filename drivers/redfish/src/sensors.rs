//! Sensors: temperatures, fans, voltages and power (DSP0268 `Thermal`, `Power`, `Sensor`).

use async_trait::async_trait;
use bmc::{IdentifyLight, LogEntry, Reading, ReadingHealth, Result, Sensor, SensorKind, Sensors};
use serde_json::Value;

use crate::document::Document;
use crate::inspection::is_present;
use crate::service::Service;

#[async_trait]
impl Sensors for Service {
    async fn readings(&self) -> Result<Vec<Reading>> {
        let system = self.system().await?.body;
        let mut readings = self.chassis_readings(&system).await?;
        readings.retain(|reading| reading.sensor.kind != SensorKind::PowerSupply);
        Ok(readings)
    }

    async fn monitored(&self) -> Result<Vec<Reading>> {
        let system = self.system().await?.body;
        let mut readings = self.chassis_readings(&system).await?;
        readings.extend(self.drive_readings(&system).await?);
        readings.retain(|reading| reading.sensor.is_enabled);
        Ok(readings)
    }

    async fn event_log(&self, limit: usize) -> Result<Vec<LogEntry>> {
        self.read_event_log(limit).await
    }

    async fn identify(&self, light: IdentifyLight) -> Result<()> {
        self.switch_light(light).await
    }
}

impl Service {
    /// Reads the sensors of every chassis of the system, and its power supplies.
    async fn chassis_readings(&self, system: &Value) -> Result<Vec<Reading>> {
        let mut readings = Vec::new();
        for chassis in self.chassis(system).await? {
            let Some(chassis) = self.find(&chassis).await? else { continue };
            readings.extend(self.readings_of(&chassis.body).await?);
        }
        Ok(readings)
    }

    /// Reads `Thermal` and `Power` with two requests if the BMC still has them, and its list of sensors otherwise.
    async fn readings_of(&self, chassis: &Value) -> Result<Vec<Reading>> {
        let mut readings: Vec<Reading> = Vec::new();
        let id = chassis.text("Id").unwrap_or_default();
        for name in ["Thermal", "Power"] {
            let Some(url) = self.link(chassis, name) else { continue };
            let found = self.find(&url).await?;
            readings.extend(found.iter().flat_map(|found| grouped(&found.body, &id)));
        }
        let has_no_sensor =
            readings.iter().all(|reading| reading.sensor.kind == SensorKind::PowerSupply);
        if has_no_sensor && let Some(sensors) = self.link(chassis, "Sensors") {
            let sensors = self.members(&sensors).await?;
            readings.extend(sensors.iter().filter(|s| is_present(s)).map(|s| sensor(s, &id)));
        }
        Ok(readings)
    }

    /// Reads the health of every drive, with a request for each.
    async fn drive_readings(&self, system: &Value) -> Result<Vec<Reading>> {
        let mut readings = Vec::new();
        let system_id = system.text("Id").unwrap_or_default();
        for storage in self.parts(system, "Storage").await? {
            let storage_id = storage.text("Id").unwrap_or_default();
            let drives = self.each(storage.items("Drives")).await?;
            readings.extend(drives.iter().filter(|drive| is_present(drive)).map(|drive| {
                let reading = reading(drive, "Reading", "");
                let id = format!("{}:{storage_id}@{system_id}", reading.name);
                of_kind(reading, SensorKind::Drive, id)
            }));
        }
        Ok(readings)
    }
}

/// Reads the sensors of `Thermal` and `Power`, which group them by kind. Each row names the array, the property with the value, the unit,
/// and the kind.
fn grouped(resource: &Value, chassis: &str) -> Vec<Reading> {
    const KINDS: [(&str, &str, &str, SensorKind); 5] = [
        ("Temperatures", "ReadingCelsius", "degrees C", SensorKind::Temperature),
        ("Fans", "Reading", "RPM", SensorKind::Fan),
        ("Voltages", "ReadingVolts", "Volts", SensorKind::Voltage),
        ("PowerControl", "PowerConsumedWatts", "Watts", SensorKind::Consumption),
        ("PowerSupplies", "LastPowerOutputWatts", "Watts", SensorKind::PowerSupply),
    ];
    let group = resource.text("Id").unwrap_or_default();
    let read = |(array, value, unit, kind): (&str, &str, &str, SensorKind)| -> Vec<Reading> {
        let present = resource.items(array).iter().filter(|sensor| is_present(sensor));
        let describe = |sensor: &Value| {
            let member = sensor.text("MemberId").or_else(|| sensor.text("Name"));
            let member = member.unwrap_or_default();
            // As Ironic names them in `get_sensors_data` of Redfish.
            let id = if kind == SensorKind::PowerSupply {
                format!("{member}:{group}@{chassis}")
            } else {
                format!("{member}@{chassis}")
            };
            of_kind(reading(sensor, value, unit), kind, id)
        };
        present.map(describe).collect()
    };
    KINDS.into_iter().flat_map(read).collect()
}

/// Reads one member of a `Sensors` collection.
fn sensor(sensor: &Value, chassis: &str) -> Reading {
    // DSP0268 `Sensor.ReadingType`.
    let kind = match sensor.word("ReadingType") {
        "Temperature" => SensorKind::Temperature,
        "Rotational" => SensorKind::Fan,
        "Voltage" => SensorKind::Voltage,
        "Current" => SensorKind::Current,
        "Power" => SensorKind::Consumption,
        _ => SensorKind::Other,
    };
    let id = format!("{}@{chassis}", sensor.text("Id").unwrap_or_default());
    of_kind(reading(sensor, "Reading", ""), kind, id)
}

fn of_kind(reading: Reading, kind: SensorKind, id: String) -> Reading {
    Reading { sensor: Sensor { id, kind, ..reading.sensor }, ..reading }
}

fn reading(sensor: &Value, value: &str, unit: &str) -> Reading {
    // Before Thermal 1.1, `Name` was called `FanName`.
    let name = sensor.text("Name").or_else(|| sensor.text("FanName"));
    Reading {
        name: name.or_else(|| sensor.text("MemberId")).unwrap_or_default(),
        value: sensor.number(value),
        unit: match sensor.word("ReadingUnits") {
            "" => unit.to_owned(),
            reported => ipmi_unit(reported)
                .map_or_else(|| crate::document::one_line(reported), str::to_owned),
        },
        health: match sensor.at("Status").word("Health") {
            "OK" => ReadingHealth::Ok,
            "Warning" => ReadingHealth::Warning,
            "Critical" => ReadingHealth::Critical,
            _ => ReadingHealth::Unknown,
        },
        sensor: Sensor {
            place: sensor.text("PhysicalContext").unwrap_or_default(),
            is_enabled: matches!(sensor.at("Status").word("State"), "Enabled" | ""),
            ..Sensor::default()
        },
    }
}

/// Translates a unit from UCUM, which Redfish uses (DSP0268 `Sensor.ReadingUnits`), to IPMI's spelling, which `bmc` uses.
fn ipmi_unit(ucum: &str) -> Option<&'static str> {
    Some(match ucum {
        "Cel" => "degrees C",
        "V" => "Volts",
        "A" => "Amps",
        "W" => "Watts",
        "Hz" => "Hz",
        "%" | "Percent" => "percent",
        "RPM" | "{rev}/min" => "RPM",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(readings: &[Reading], want: Expect) {
        let lines = readings.iter().map(|r| {
            let value = r.value.map_or_else(|| "-".to_owned(), |value| value.to_string());
            format!("{}: {value} {} {:?}", r.name, r.unit, r.health)
        });
        want.assert_eq(&lines.collect::<Vec<_>>().join("\n"));
    }

    #[test]
    fn thermal_and_power_are_read_by_kind() {
        check(
            &grouped(
                &json!({
                    "Temperatures": [
                        {"Name": "CPU", "ReadingCelsius": 41, "Status": {"Health": "OK"}},
                        {"Name": "GPU", "Status": {"State": "Absent"}},
                        {"Name": "Inlet", "ReadingCelsius": null, "Status": {"Health": "Critical"}}],
                    "Fans": [
                        {"FanName": "Fan 1", "Reading": "2100", "ReadingUnits": "RPM"},
                        {"Name": "Fan 2", "Reading": 30, "ReadingUnits": "Percent"}],
                    "PowerControl": [{"MemberId": "0", "PowerConsumedWatts": 344.5}],
                }),
                "1",
            ),
            expect![[r#"
                CPU: 41 degrees C Ok
                Inlet: - degrees C Critical
                Fan 1: 2100 RPM Unknown
                Fan 2: 30 percent Unknown
                0: 344.5 Watts Unknown"#]],
        );
    }

    #[test]
    fn sensors_have_the_ids_of_ironic_and_their_place() {
        let power = grouped(
            &json!({
                "Id": "Power",
                "Temperatures": [{"MemberId": "3", "Name": "Inlet", "PhysicalContext": "Intake",
                    "Status": {"State": "Enabled"}}],
                "PowerSupplies": [{"MemberId": "0", "Name": "PSU 1", "LastPowerOutputWatts": 120,
                    "Status": {"State": "StandbyOffline", "Health": "Warning"}}],
            }),
            "Chassis-1",
        );
        let shown: Vec<_> = power.iter().map(|it| (&it.sensor, it.value, it.health)).collect();
        let inlet = Sensor {
            id: "3@Chassis-1".to_owned(),
            kind: SensorKind::Temperature,
            place: "Intake".to_owned(),
            is_enabled: true,
        };
        let supply = Sensor {
            id: "0:Power@Chassis-1".to_owned(),
            kind: SensorKind::PowerSupply,
            place: String::new(),
            is_enabled: false,
        };
        assert_eq!(
            shown,
            [
                (&inlet, None, ReadingHealth::Unknown),
                (&supply, Some(120.0), ReadingHealth::Warning),
            ]
        );
    }

    #[test]
    fn sensors_have_their_own_units() {
        let all = [
            json!({"Name": "Inlet", "Reading": 21.5, "ReadingUnits": "Cel"}),
            json!({"Name": "Energy", "Reading": 3, "ReadingUnits": "kW.h"}),
            json!({}),
        ];
        check(
            &all.iter().map(|it| sensor(it, "1")).collect::<Vec<_>>(),
            expect![[r#"
                Inlet: 21.5 degrees C Unknown
                Energy: 3 kW.h Unknown
                : -  Unknown"#]],
        );
    }
}
