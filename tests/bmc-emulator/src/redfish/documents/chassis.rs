//! The chassis and its sensors, in the older and the newer form.

use serde_json::{Value, json};

use crate::machine::Identify;
use crate::profile::Part;
use crate::redfish::RedfishFace;
use crate::redfish::resource::Resource;
use crate::sensors::{SENSORS, Sensor, Unit};

impl RedfishFace {
    pub(super) fn chassis(&self) -> Value {
        let spec = self.machine.spec();
        let mut chassis = json!({
            "@odata.type": "#Chassis.v1_16_0.Chassis",
            "Id": self.profile.ids.chassis,
            "Name": "Chassis",
            "ChassisType": "RackMount",
            "Manufacturer": spec.manufacturer,
            "Model": spec.model,
            "SerialNumber": spec.serial,
            "PowerState": if self.machine.reported_on() { "On" } else { "Off" },
            "Status": super::healthy_status(),
        });
        if self.profile.has(Part::IndicatorLed) {
            let lit = self.machine.identify() != Identify::Off;
            chassis["IndicatorLED"] = json!(if lit { "Blinking" } else { "Off" });
        }
        self.add_links(
            &mut chassis,
            &[
                ("Thermal", Resource::Thermal),
                ("Power", Resource::Power),
                ("Sensors", Resource::Sensors),
            ],
        );
        self.add_relations(
            &mut chassis,
            &[("ComputerSystems", Resource::System), ("ManagedBy", Resource::Manager)],
        );
        chassis
    }

    pub(super) fn thermal(&self) -> Value {
        let base = Resource::Thermal.path(self.profile);
        let temperatures = self.legacy(Unit::Celsius, &base, "Temperatures", "ReadingCelsius");
        let fans = self.legacy(Unit::Rpm, &base, "Fans", "Reading");
        json!({
            "@odata.type": "#Thermal.v1_7_0.Thermal",
            "Id": "Thermal",
            "Name": "Thermal",
            "Status": super::healthy_status(),
            "Temperatures": temperatures,
            "Fans": fans,
        })
    }

    pub(super) fn power(&self) -> Value {
        let base = Resource::Power.path(self.profile);
        let on = self.machine.reported_on();
        let watts = SENSORS
            .iter()
            .find(|sensor| sensor.unit == Unit::Watts)
            .and_then(|sensor| sensor.reading(on));
        json!({
            "@odata.type": "#Power.v1_7_1.Power",
            "Id": "Power",
            "Name": "Power",
            "PowerControl": [{
                "@odata.id": format!("{base}#/PowerControl/0"),
                "MemberId": "0",
                "Name": "System Power Control",
                "PowerConsumedWatts": watts,
                "PowerCapacityWatts": 800,
                "Status": super::healthy_status(),
            }],
            "Voltages": self.legacy(Unit::Volts, &base, "Voltages", "ReadingVolts"),
        })
    }

    pub(super) fn sensor(&self, index: usize) -> Option<Value> {
        let sensor = SENSORS.get(index)?;
        let reading = sensor.reading(self.machine.reported_on());
        let (kind, unit) = match sensor.unit {
            Unit::Celsius => ("Temperature", "Cel"),
            Unit::Rpm => ("Rotational", "RPM"),
            Unit::Volts => ("Voltage", "V"),
            Unit::Watts => ("Power", "W"),
        };
        Some(json!({
            "@odata.type": "#Sensor.v1_3_0.Sensor",
            "Id": sensor.id(),
            "Name": sensor.name,
            "ReadingType": kind,
            "ReadingUnits": unit,
            "Reading": reading,
            "Thresholds": {
                "LowerCritical": {"Reading": sensor.lower_critical},
                "UpperCaution": {"Reading": sensor.upper_warning},
                "UpperCritical": {"Reading": sensor.upper_critical},
            },
            "Status": status(reading),
        }))
    }

    /// The readings of one unit as members of an array of `Thermal` or `Power`.
    fn legacy(&self, unit: Unit, base: &str, array: &str, reading_name: &str) -> Vec<Value> {
        let on = self.machine.reported_on();
        let of_unit = SENSORS.iter().filter(|sensor| sensor.unit == unit).enumerate();
        let describe = |(position, sensor): (usize, &Sensor)| {
            let reading = sensor.reading(on);
            let mut member = json!({
                "@odata.id": format!("{base}#/{array}/{position}"),
                "MemberId": position.to_string(),
                "Name": sensor.name,
                "LowerThresholdCritical": sensor.lower_critical,
                "UpperThresholdNonCritical": sensor.upper_warning,
                "UpperThresholdCritical": sensor.upper_critical,
                "Status": status(reading),
            });
            member[reading_name] = json!(reading);
            if unit == Unit::Rpm {
                member["ReadingUnits"] = json!("RPM");
            }
            member
        };
        of_unit.map(describe).collect()
    }
}

/// The status of a sensor. A sensor without a reading is absent, not faulty.
fn status(reading: Option<f64>) -> Value {
    match reading {
        Some(_) => super::healthy_status(),
        None => json!({"State": "StandbyOffline"}),
    }
}
