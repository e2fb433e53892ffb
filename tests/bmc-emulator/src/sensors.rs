//! The sensors of every machine, read by Redfish and IPMI.

/// One analog sensor. Thresholds and readings are in the sensor's unit.
#[derive(Debug)]
pub(crate) struct Sensor {
    pub(crate) name: &'static str,
    pub(crate) unit: Unit,
    /// The id of the part that the sensor is on (IPMI 2.0 table 43-13).
    pub(crate) entity: u8,
    pub(crate) entity_instance: u8,
    /// One count of an IPMI reading, in thousandths of the unit.
    pub(crate) step_thousandths: u32,
    pub(crate) running: f64,
    /// The reading while the machine is off. `None` if the sensor works only while the machine is on.
    pub(crate) standby: Option<f64>,
    pub(crate) lower_critical: Option<f64>,
    pub(crate) upper_warning: Option<f64>,
    pub(crate) upper_critical: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Celsius,
    Rpm,
    Volts,
    Watts,
}

/// All sensors, in the order of their IPMI numbers, which count from 1.
#[rustfmt::skip]
pub(crate) const SENSORS: [Sensor; 7] = [
    Sensor { name: "Inlet Temp", unit: Unit::Celsius, entity: 0x37, entity_instance: 1, step_thousandths: 1000, running: 24.0, standby: Some(22.0), lower_critical: Some(3.0), upper_warning: Some(42.0), upper_critical: Some(47.0) },
    Sensor { name: "CPU1 Temp", unit: Unit::Celsius, entity: 0x03, entity_instance: 1, step_thousandths: 1000, running: 51.0, standby: None, lower_critical: None, upper_warning: Some(88.0), upper_critical: Some(95.0) },
    Sensor { name: "Fan1", unit: Unit::Rpm, entity: 0x1D, entity_instance: 1, step_thousandths: 100_000, running: 5400.0, standby: None, lower_critical: Some(600.0), upper_warning: None, upper_critical: None },
    Sensor { name: "Fan2", unit: Unit::Rpm, entity: 0x1D, entity_instance: 2, step_thousandths: 100_000, running: 5500.0, standby: None, lower_critical: Some(600.0), upper_warning: None, upper_critical: None },
    Sensor { name: "12V", unit: Unit::Volts, entity: 0x07, entity_instance: 1, step_thousandths: 60, running: 12.06, standby: None, lower_critical: Some(10.8), upper_warning: None, upper_critical: Some(13.2) },
    Sensor { name: "CMOS Battery", unit: Unit::Volts, entity: 0x28, entity_instance: 1, step_thousandths: 20, running: 3.06, standby: Some(3.06), lower_critical: Some(2.5), upper_warning: None, upper_critical: Some(3.5) },
    Sensor { name: "Power Usage", unit: Unit::Watts, entity: 0x15, entity_instance: 1, step_thousandths: 4000, running: 212.0, standby: Some(12.0), lower_critical: None, upper_warning: Some(720.0), upper_critical: Some(800.0) },
];

impl Sensor {
    /// The current reading. `None` if the sensor does not work now.
    pub(crate) fn reading(&self, on: bool) -> Option<f64> {
        if on { Some(self.running) } else { self.standby }
    }

    /// The sensor's id in a Redfish path.
    pub(crate) fn id(&self) -> String {
        self.name.replace(' ', "")
    }
}
