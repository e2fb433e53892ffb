//! The BMC's identification (IPMI 2.0 §20.1).

use crate::wire::{Malformed, Reader};

use super::{APPLICATION, Command};

/// The identification and the features that a BMC reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceId {
    /// The vendor's number of this kind of BMC.
    pub device_id: u8,
    pub device_revision: u8,
    /// Major and minor version.
    pub firmware: (u8, u8),
    /// Major and minor version of IPMI that the BMC supports.
    pub ipmi: (u8, u8),
    /// Whether the BMC has a repository of sensor records.
    pub has_sensor_records: bool,
    /// Whether the BMC has a system event log.
    pub has_event_log: bool,
    /// Whether the BMC has an inventory of field-replaceable units.
    pub has_fru_inventory: bool,
    /// The vendor's IANA enterprise number.
    pub manufacturer: u32,
    /// The vendor's number of the product.
    pub product: u16,
}

pub(crate) struct GetDeviceId;

impl Command for GetDeviceId {
    const NAME: &'static str = "Get Device ID";
    const CODE: (u8, u8) = (APPLICATION, 0x01);
    type Answer = DeviceId;

    fn data(&self) -> Vec<u8> {
        Vec::new()
    }

    fn read(&self, answer: &mut Reader<'_>) -> Result<DeviceId, Malformed> {
        let [device_id, revision, major, minor, ipmi, support]: [u8; 6] = answer.array()?;
        let [a, b, c] = answer.array()?;
        Ok(DeviceId {
            device_id,
            device_revision: revision & 0x0f,
            // The minor version consists of two decimal digits.
            firmware: (major & 0x7f, (minor >> 4).min(9) * 10 + (minor & 0x0f).min(9)),
            ipmi: (ipmi & 0x0f, ipmi >> 4),
            has_sensor_records: support & 0x02 != 0,
            has_event_log: support & 0x04 != 0,
            has_fru_inventory: support & 0x08 != 0,
            manufacturer: u32::from_le_bytes([a, b, c & 0x0f, 0]),
            product: answer.u16()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_id_is_read() {
        let bytes = hex::decode("208102420289a2020000010f000000").unwrap();
        let device = GetDeviceId.read(&mut Reader::new(&bytes)).unwrap();
        let want = DeviceId {
            device_id: 0x20,
            device_revision: 1,
            firmware: (2, 42),
            ipmi: (2, 0),
            has_sensor_records: false,
            has_event_log: false,
            has_fru_inventory: true,
            manufacturer: 0x2a2,
            product: 0x100,
        };
        assert_eq!(device, want);
    }

    #[test]
    fn a_short_answer_is_refused() {
        assert!(GetDeviceId.read(&mut Reader::new(&[0x20, 0x81, 2, 0x42])).is_err());
    }
}
