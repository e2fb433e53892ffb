//! IPMI commands: encoding of requests and decoding of answers. Pure.

pub(crate) mod boot_options;
pub(crate) mod chassis;
pub(crate) mod completion;
pub(crate) mod device;
pub(crate) mod entity;
pub(crate) mod event_log;
pub(crate) mod event_text;
pub(crate) mod fru;
pub(crate) mod fru_areas;
pub(crate) mod payload;
pub(crate) mod sensor_record;
pub(crate) mod sensor_value;
pub(crate) mod sensors;
pub(crate) mod text;
pub(crate) mod users;

pub(crate) use completion::CompletionCode;

use crate::wire::{Malformed, Reader};

/// Network functions (IPMI 2.0 table 5-1).
pub(crate) const CHASSIS: u8 = 0x00;
pub(crate) const SENSOR: u8 = 0x04;
pub(crate) const APPLICATION: u8 = 0x06;
pub(crate) const STORAGE: u8 = 0x0a;

/// A command, with its encoding and the decoding of its answer.
pub(crate) trait Command {
    /// The specification's name of the command.
    const NAME: &'static str;
    /// Network function and command code (IPMI 2.0 appendix G).
    const CODE: (u8, u8);
    type Answer;

    /// The logical unit: the BMC itself, except for some sensors.
    fn lun(&self) -> u8 {
        0
    }

    /// Encodes the request data.
    fn data(&self) -> Vec<u8>;

    /// Decodes the answer after the completion code, which was success.
    fn read(&self, answer: &mut Reader<'_>) -> Result<Self::Answer, Malformed>;
}
