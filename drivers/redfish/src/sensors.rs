//! Sensors: temperatures, fans, voltages and power (DSP0268 `Thermal`, `Power`, `Sensor`).

use async_trait::async_trait;
use bmc::{IdentifyLight, LogEntry, Reading, ReadingHealth, Result, Sensors};
use serde_json::Value;

use crate::document::Document;
use crate::inspection::is_present;
use crate::service::Service;

#[async_trait]
impl Sensors for Service {
    async fn readings(&self) -> Result<Vec<Reading>> {
        let system = self.system().await?.body;
        let mut readings = Vec::new();
        for chassis in self.chassis(&system).await? {
            let Some(chassis) = self.find(&chassis).await? else { continue };
            readings.extend(self.chassis_readings(&chassis.body).await?);
        }
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
    /// Reads `Thermal` and `Power` with two requests if the BMC still has them, and its list of sensors otherwise.
    async fn chassis_readings(&self, chassis: &Value) -> Result<Vec<Reading>> {
        let mut readings = Vec::new();
        for name in ["Thermal", "Power"] {
            let Some(url) = self.link(chassis, name) else { continue };
            let found = self.find(&url).await?;
            readings.extend(found.iter().flat_map(|found| grouped(&found.body)));
        }
        if readings.is_empty()
            && let Some(sensors) = self.link(chassis, "Sensors")
        {
            let sensors = self.members(&sensors).await?;
            readings.extend(sensors.iter().filter(|s| is_present(s)).map(sensor));
        }
        Ok(readings)
    }
}

/// Reads the sensors of `Thermal` and `Power`, which group them by kind. Each row names the array, the property with the value, and the
/// unit.
fn grouped(resource: &Value) -> Vec<Reading> {
    const KINDS: [(&str, &str, &str); 4] = [
        ("Temperatures", "ReadingCelsius", "degrees C"),
        ("Fans", "Reading", "RPM"),
        ("Voltages", "ReadingVolts", "Volts"),
        ("PowerControl", "PowerConsumedWatts", "Watts"),
    ];
    let read = |(array, value, unit): (&str, &str, &str)| -> Vec<Reading> {
        let present = resource.items(array).iter().filter(|sensor| is_present(sensor));
        present.map(|sensor| reading(sensor, value, unit)).collect()
    };
    KINDS.into_iter().flat_map(read).collect()
}

/// Reads one member of a `Sensors` collection.
fn sensor(sensor: &Value) -> Reading {
    reading(sensor, "Reading", "")
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
            &grouped(&json!({
                "Temperatures": [
                    {"Name": "CPU", "ReadingCelsius": 41, "Status": {"Health": "OK"}},
                    {"Name": "GPU", "Status": {"State": "Absent"}},
                    {"Name": "Inlet", "ReadingCelsius": null, "Status": {"Health": "Critical"}}],
                "Fans": [
                    {"FanName": "Fan 1", "Reading": "2100", "ReadingUnits": "RPM"},
                    {"Name": "Fan 2", "Reading": 30, "ReadingUnits": "Percent"}],
                "PowerControl": [{"MemberId": "0", "PowerConsumedWatts": 344.5}],
            })),
            expect![[r#"
                CPU: 41 degrees C Ok
                Inlet: - degrees C Critical
                Fan 1: 2100 RPM Unknown
                Fan 2: 30 percent Unknown
                0: 344.5 Watts Unknown"#]],
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
            &all.iter().map(sensor).collect::<Vec<_>>(),
            expect![[r#"
                Inlet: 21.5 degrees C Unknown
                Energy: 3 kW.h Unknown
                : -  Unknown"#]],
        );
    }
}
