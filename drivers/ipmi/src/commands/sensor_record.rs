//! Full and compact sensor records (IPMI 2.0 §43.1 and §43.2).

use crate::wire::{Malformed, Reader};

use super::sensor_value::{Conversion, unit_name};
use super::text::TypeLength;

const FULL: u8 = 0x01;
const COMPACT: u8 = 0x02;
/// The event/reading type of sensors with thresholds (table 42-1).
const THRESHOLD: u8 = 0x01;
/// The slave address of the BMC. Sensors of other controllers need bridging, which this driver lacks.
const BMC: u8 = 0x20;

/// The fields of a sensor record that the driver uses.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SensorRecord {
    pub(crate) number: u8,
    pub(crate) lun: u8,
    pub(crate) name: String,
    /// The entity and its instance (table 43-13).
    pub(crate) entity: [u8; 2],
    pub(crate) unit: String,
    /// The conversion of raw readings; `None` for a sensor that only has states.
    pub(crate) conversion: Option<Conversion>,
    pub(crate) has_thresholds: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordHeader {
    kind: u8,
    /// The number of bytes after the header.
    pub(crate) length: u8,
}

impl RecordHeader {
    pub(crate) const LENGTH: u8 = 5;

    pub(crate) fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        let [_id, _id_high, _version, kind, length]: [u8; 5] = Reader::new(bytes).array()?;
        Ok(RecordHeader { kind, length })
    }

    /// Whether the record describes a sensor with a reading.
    pub(crate) fn is_of_a_sensor(self) -> bool {
        matches!(self.kind, FULL | COMPACT)
    }
}

impl SensorRecord {
    /// Decodes the sensor from the bytes after the record's header; `None` if the sensor is not the BMC's own. A compact record of several
    /// sensors is read as its first sensor.
    pub(crate) fn read(header: RecordHeader, body: &[u8]) -> Result<Option<Self>, Malformed> {
        let mut reader = Reader::new(body);
        let [owner, lun, number] = reader.array()?;
        let [entity, instance, _initialization, _capabilities]: [u8; 4] = reader.array()?;
        let [_sensor_type, reading_type] = reader.array()?;
        let _masks: [u8; 6] = reader.array()?;
        let units: [u8; 3] = reader.array()?;

        let conversion = match header.kind {
            FULL => {
                let factors: [u8; 7] = reader.array()?;
                let _limits: [u8; 17] = reader.array()?;
                Conversion::read(units[0], factors)
            }
            _ => {
                let _sharing_and_hysteresis: [u8; 8] = reader.array()?;
                None
            }
        };
        let kind = TypeLength(reader.u8()?);
        // Some BMCs send records that end before the name does.
        let text = reader.rest();
        let text = &text[..text.len().min(kind.length())];
        let name = kind.decode(text).unwrap_or_else(|| format!("sensor {number:#04x}"));
        let sensor = SensorRecord {
            number,
            lun: lun & 0b11,
            name,
            // The highest bit tells a part from a group of parts.
            entity: [entity, instance & 0x7f],
            unit: if conversion.is_some() { unit_name(units) } else { String::new() },
            conversion,
            has_thresholds: reading_type == THRESHOLD,
        };
        Ok((owner == BMC).then_some(sensor))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A temperature sensor from OpenIPMI's examples: M = 1, no offset, degrees C.
    const TEMPERATURE: &str = "200001 07017f68 0101 ffff ffff ffff 800100 00 0100 0000 00 00 \
        07 00 00 00 7f 80 00 00 00 00 00 00 00 00 00 00 00 c6 4d4254656d70";

    fn read(kind: u8, hexadecimal: &str) -> Result<Option<SensorRecord>, Malformed> {
        let body = hex::decode(hexadecimal.replace(' ', "")).unwrap();
        SensorRecord::read(RecordHeader { kind, length: body.len() as u8 }, &body)
    }

    #[test]
    fn a_full_record_is_read() {
        let sensor = read(FULL, TEMPERATURE).unwrap().unwrap();
        assert_eq!((sensor.number, sensor.lun, sensor.name.as_str()), (1, 0, "MBTemp"));
        assert_eq!((sensor.entity, sensor.unit.as_str()), ([7, 1], "degrees C"));
        assert!(sensor.has_thresholds);
        let conversion = sensor.conversion.unwrap();
        assert_eq!((conversion.value(25), conversion.value(0xf6)), (25.0, -10.0));
    }

    #[test]
    fn a_compact_record_has_states_only() {
        let record = "200102 07017f68 086f ffff ffff ffff c00000 0000 00000000000000 c3505331";
        let record = record.replace("0000 00000000000000", "0000000000000000");
        let sensor = read(COMPACT, &record).unwrap().unwrap();
        assert_eq!((sensor.number, sensor.lun, sensor.name.as_str()), (2, 1, "PS1"));
        assert_eq!((sensor.conversion, sensor.has_thresholds), (None, false));
    }

    #[test]
    fn sensors_of_other_controllers_are_left_out() {
        assert_eq!(read(FULL, &TEMPERATURE.replacen("20", "c0", 1)), Ok(None));
    }

    #[test]
    fn a_short_record_is_refused() {
        assert!(read(FULL, &TEMPERATURE[..50]).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_panic(kind in 0u8..4, body: Vec<u8>) {
            let _ = RecordHeader::read(&body);
            let header = RecordHeader { kind, length: body.len() as u8 };
            if let Ok(Some(SensorRecord { conversion: Some(conversion), .. })) =
                SensorRecord::read(header, &body)
            {
                for raw in 0..=255 {
                    let _ = conversion.value(raw);
                }
            }
        }
    }
}
