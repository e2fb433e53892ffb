//! The LAN channel's settings (IPMI 2.0 chapter 23).

use std::net::IpAddr;

use crate::ipmi::command::app::check_channel;
use crate::ipmi::command::{Answer, Call, CompletionCode};
use crate::ipmi::face::IpmiFace;

/// The revision of the parameters: 1, compatible back to 1.
const REVISION: u8 = 0x11;

impl IpmiFace {
    /// Get LAN Configuration Parameters (§23.2): the parameters of table 23-4 about the address and the cipher suites.
    pub(super) fn get_lan_configuration_parameters(&mut self, call: &Call<'_>) -> Answer {
        check_channel(call.byte(0)? & 0x0F)?;
        let address = self.machine.spec().bmc.also_ipmi.unwrap_or(self.machine.spec().bmc.address);
        let suites: Vec<u8> = self.suites().map(|suite| suite.id()).collect();
        let data = match call.byte(1)? {
            // Set complete. No IPMI 1.5 authentication is supported or enabled.
            0 => vec![0x00],
            1 => vec![0x00],
            2 => vec![0x00; 5],
            3 => match address.ip() {
                IpAddr::V4(address) => address.octets().to_vec(),
                IpAddr::V6(_) => vec![0; 4],
            },
            // A static address.
            4 => vec![0x01],
            5 => self.mac().to_vec(),
            6 => vec![255, 0, 0, 0],
            12 => vec![0; 4],
            20 => vec![0x00, 0x00],
            22 => vec![suites.len() as u8],
            23 => {
                let mut entries = vec![0x00];
                entries.extend(suites);
                entries.resize(17, 0x00);
                entries
            }
            // Every suite is allowed up to administrator.
            24 => [&[0x00], [0x44; 8].as_slice()].concat(),
            _ => return Err(CompletionCode(0x80)),
        };
        Ok([&[REVISION], data.as_slice()].concat())
    }

    /// A locally administered address made from the UUID.
    fn mac(&self) -> [u8; 6] {
        let uuid = self.machine.spec().uuid.into_bytes();
        [0x02, uuid[11], uuid[12], uuid[13], uuid[14], uuid[15]]
    }
}
