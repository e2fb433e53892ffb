//! Serial over LAN: which session has the port, and its settings (IPMI 2.0 chapters 24 and 26).

use crate::ipmi::command::app::check_channel;
use crate::ipmi::command::{Answer, Call, CompletionCode};
use crate::ipmi::face::IpmiFace;
use crate::ipmi::packet::PayloadType;
use crate::ipmi::serial_session::SerialSession;
use crate::profile::SerialRules;

/// The payload instance of the only port.
const INSTANCE: u8 = 1;

impl IpmiFace {
    /// Activate Payload (§24.1). A session that has the port already keeps it.
    pub(super) fn activate_payload(&mut self, call: &Call<'_>) -> Answer {
        let rules = self.serial_rules()?;
        check_instance(call)?;
        // All sessions are encrypted, whatever bit 7 says. Without bit 6 packets would have no authentication code.
        if call.byte(2)? & 0xC0 != 0xC0 {
            return Err(CompletionCode(0x84));
        }
        let (session, console) = call.session.zip(self.from).ok_or(CompletionCode::PRIVILEGE)?;
        if self.link.as_ref().is_some_and(|link| link.session != session) {
            return Err(CompletionCode(0x80));
        }
        if self.link.is_none() {
            let end = *self.machine.serial().end().borrow();
            self.machine.serial().has_read(Some(end));
            self.link = Some(SerialSession::new(session, console, rules, end));
        }
        let mut answer = vec![0; 4];
        answer.extend(rules.payload_bytes.to_le_bytes());
        answer.extend(rules.payload_bytes.to_le_bytes());
        answer.extend(self.port.to_le_bytes());
        answer.extend([0xFF, 0xFF]);
        Ok(answer)
    }

    /// Deactivate Payload (§24.2), also for the session of another client.
    pub(super) fn deactivate_payload(&mut self, call: &Call<'_>) -> Answer {
        self.serial_rules()?;
        check_instance(call)?;
        if self.end_serial() { Ok(vec![]) } else { Err(CompletionCode(0x80)) }
    }

    /// Get Payload Activation Status (§24.4).
    pub(super) fn get_payload_activation_status(&mut self, call: &Call<'_>) -> Answer {
        self.serial_rules()?;
        check_serial(call)?;
        Ok(vec![INSTANCE, u8::from(self.link.is_some()), 0x00])
    }

    /// Get SOL Configuration Parameters (§26.3).
    pub(super) fn get_serial_configuration_parameters(&mut self, call: &Call<'_>) -> Answer {
        let rules = self.serial_rules()?;
        check_channel(call.byte(0)? & 0x0F)?;
        let [port_low, port_high] = self.port.to_le_bytes();
        let interval = u8::try_from(rules.retry_millis / 10).unwrap_or(u8::MAX);
        let data = match call.byte(1)? {
            // Set complete; enabled.
            0 => vec![0x00],
            1 => vec![0x01],
            // Encrypted and authenticated, for operators.
            2 => vec![0xC3],
            // Sends after 25 ms or 255 characters.
            3 => vec![0x05, 0xFF],
            4 => vec![rules.retries, interval],
            // 115,200 bits per second.
            5 | 6 => vec![0x0A],
            7 => vec![0x01],
            8 => vec![port_low, port_high],
            _ => return Err(CompletionCode(0x80)),
        };
        Ok([&[0x11], data.as_slice()].concat())
    }

    /// The serial rules of the profile. Without them, serial over LAN is an invalid command.
    fn serial_rules(&self) -> Result<SerialRules, CompletionCode> {
        self.profile.ipmi.serial.ok_or(CompletionCode::INVALID_COMMAND)
    }
}

fn check_serial(call: &Call<'_>) -> Result<(), CompletionCode> {
    let is_serial = call.byte(0)? & 0x3F == PayloadType::Serial as u8;
    if is_serial { Ok(()) } else { Err(CompletionCode::INVALID_DATA) }
}

fn check_instance(call: &Call<'_>) -> Result<(), CompletionCode> {
    check_serial(call)?;
    if call.byte(1)? & 0x0F == INSTANCE { Ok(()) } else { Err(CompletionCode::INVALID_DATA) }
}
