//! Commands about the BMC: its identity, logins, its channel and its users (IPMI 2.0 chapters 20 and 22).

use crate::ipmi::command::{Answer, Call, CompletionCode};
use crate::ipmi::face::IpmiFace;
use crate::ipmi::session::Privilege;
use crate::log::Protocol;

/// The number of the LAN channel.
const CHANNEL: u8 = 0x01;
/// The channel number for the channel of the request.
const THIS_CHANNEL: u8 = 0x0E;
/// The id of the one user. Id 1 is the user without a name (§22.28).
const USER: u8 = 0x02;

impl IpmiFace {
    /// Get Device ID (§20.1).
    pub(super) fn get_device_id(&mut self, _: &Call<'_>) -> Answer {
        let rules = &self.profile.ipmi;
        let (major, minor) = rules.firmware;
        let [m0, m1, m2, _] = rules.manufacturer_id.to_le_bytes();
        let [p0, p1] = rules.product_id.to_le_bytes();
        let minor = ((minor / 10 % 10) << 4) | (minor % 10);
        // Device 20h, revision 1 with SDRs, IPMI 2.0. The BMC supports chassis, FRU, SEL, SDR and sensor commands.
        Ok(vec![0x20, 0x81, major & 0x7F, minor, 0x02, 0x8F, m0, m1, m2, p0, p1, 0, 0, 0, 0])
    }

    /// Cold and Warm Reset (§20.2 and §20.3): a BMC that restarts forgets its sessions.
    pub(super) fn reset_bmc(&mut self, _: &Call<'_>) -> Answer {
        self.record_other("BMC reset".to_owned());
        self.machine.faults().forget_sessions();
        Ok(vec![])
    }

    /// Get Self Test Results (§20.4): no error.
    pub(super) fn get_self_test_results(&mut self, _: &Call<'_>) -> Answer {
        Ok(vec![0x55, 0x00])
    }

    /// Get ACPI Power State (§20.7): S0/G0 or S5/G2. The BMC itself is in D0.
    pub(super) fn get_acpi_power_state(&mut self, _: &Call<'_>) -> Answer {
        Ok(vec![if self.machine.reported_on() { 0x00 } else { 0x05 }, 0x00])
    }

    /// Get Device GUID and Get System GUID (§20.8 and §22.14).
    pub(super) fn get_system_guid(&mut self, _: &Call<'_>) -> Answer {
        Ok(self.guid().to_vec())
    }

    /// Get Channel Authentication Capabilities (§22.13).
    pub(super) fn get_channel_authentication_capabilities(&mut self, call: &Call<'_>) -> Answer {
        check_channel(call.byte(0)? & 0x0F)?;
        if Privilege::read(call.byte(1)? & 0x0F).is_none() {
            return Err(CompletionCode::INVALID_DATA);
        }
        // No IPMI 1.5 authentication. User names are required, and each message and each user is authenticated.
        let named_users = 0x04;
        match call.byte(0)? & 0x80 {
            0 => Ok(vec![CHANNEL, 0x00, named_users, 0, 0, 0, 0, 0]),
            _ => Ok(vec![CHANNEL, 0x80, named_users, 0x02, 0, 0, 0, 0]),
        }
    }

    /// Get Channel Cipher Suites (§22.15): 16 bytes of the list of suites, or of the list of their algorithms.
    pub(super) fn get_channel_cipher_suites(&mut self, call: &Call<'_>) -> Answer {
        check_channel(call.byte(0)? & 0x0F)?;
        if call.byte(1)? & 0x3F != 0 {
            return Err(CompletionCode::INVALID_DATA);
        }
        let mut list = Vec::new();
        for suite in self.suites() {
            let [authentication, integrity, confidentiality] = suite.algorithms();
            if call.byte(2)? & 0x80 != 0 {
                list.extend([0xC0, suite.id()]);
            }
            for tagged in [authentication, 0x40 | integrity, 0x80 | confidentiality] {
                if call.byte(2)? & 0x80 != 0 || !list.contains(&tagged) {
                    list.push(tagged);
                }
            }
        }
        let chunk = list.chunks(16).nth(usize::from(call.byte(2)? & 0x3F)).unwrap_or_default();
        Ok([&[CHANNEL], chunk].concat())
    }

    /// Set Session Privilege Level (§22.18).
    pub(super) fn set_session_privilege_level(&mut self, call: &Call<'_>) -> Answer {
        let asked = call.byte(0)? & 0x0F;
        let session = call.session.and_then(|id| self.sessions.find(id));
        let active = session
            .and_then(|session| session.active.as_mut())
            .ok_or(CompletionCode::INVALID_DATA)?;
        if asked != 0 {
            let privilege = Privilege::read(asked).ok_or(CompletionCode::INVALID_DATA)?;
            if privilege > active.limit {
                return Err(CompletionCode(0x81));
            }
            active.privilege = privilege;
        }
        Ok(vec![active.privilege as u8])
    }

    /// Close Session (§22.19): the session of the caller, or any session if the caller is an administrator.
    pub(super) fn close_session(&mut self, call: &Call<'_>) -> Answer {
        let id = u32::from_le_bytes([call.byte(0)?, call.byte(1)?, call.byte(2)?, call.byte(3)?]);
        let own = call.session == Some(id);
        let asking = call.session.and_then(|own| self.sessions.find(own));
        let privilege =
            asking.and_then(|session| session.active.as_ref()).map(|active| active.privilege);
        if !own && privilege < Some(Privilege::Administrator) {
            return Err(CompletionCode::PRIVILEGE);
        }
        if self.sessions.close(id) { Ok(vec![]) } else { Err(CompletionCode(0x87)) }
    }

    /// Get Session Info (§22.20), for the session of the caller only.
    pub(super) fn get_session_info(&mut self, call: &Call<'_>) -> Answer {
        if call.byte(0)? != 0 {
            return Err(CompletionCode::NOT_PRESENT);
        }
        let (slots, active) = (self.sessions.slots(), self.sessions.active_count());
        let asking = call.session.and_then(|id| self.sessions.find(id));
        let privilege = asking
            .and_then(|session| session.active.as_ref())
            .map_or(0, |active| active.privilege as u8);
        // The handle, the number of slots and of active sessions. Bit 4 of the channel byte means IPMI 2.0.
        Ok(vec![0x01, slots as u8 & 0x3F, active as u8 & 0x3F, USER, privilege, 0x10 | CHANNEL])
    }

    /// Get Channel Access (§22.23): always available, messages and users authenticated, up to administrator.
    pub(super) fn get_channel_access(&mut self, call: &Call<'_>) -> Answer {
        check_channel(call.byte(0)? & 0x0F)?;
        Ok(vec![0x02, 0x04])
    }

    /// Get Channel Info (§22.24): 802.3 LAN, IPMB protocol 1.0, sessions on several connections.
    pub(super) fn get_channel_info(&mut self, call: &Call<'_>) -> Answer {
        check_channel(call.byte(0)? & 0x0F)?;
        let active = self.sessions.active_count() as u8 & 0x3F;
        Ok(vec![CHANNEL, 0x04, 0x01, 0x80 | active, 0xF2, 0x1B, 0x00, 0x00, 0x00])
    }

    /// Get User Access (§22.27).
    pub(super) fn get_user_access(&mut self, call: &Call<'_>) -> Answer {
        check_channel(call.byte(0)? & 0x0F)?;
        match call.byte(1)? & 0x3F {
            // Two user ids, one of them enabled, none with a fixed name. Link and messaging enabled, administrator.
            USER => Ok(vec![0x02, 0x41, 0x00, 0x34]),
            1 => Ok(vec![0x02, 0x41, 0x00, 0x0F]),
            _ => Err(CompletionCode::INVALID_DATA),
        }
    }

    /// Get User Name (§22.29).
    pub(super) fn get_user_name(&mut self, call: &Call<'_>) -> Answer {
        let mut name = match call.byte(0)? & 0x3F {
            USER => self.machine.spec().bmc.username.clone().into_bytes(),
            1 => vec![],
            _ => return Err(CompletionCode::INVALID_DATA),
        };
        name.resize(16, 0);
        Ok(name)
    }

    /// Set User Password (§22.30): sets or tests the password of the user, in 16 or 20 bytes.
    pub(super) fn set_user_password(&mut self, call: &Call<'_>) -> Answer {
        let (user, operation) = (call.byte(0)?, call.byte(1)? & 0x03);
        if user & 0x3F != USER {
            return Err(CompletionCode::INVALID_DATA);
        }
        let bytes = &call.data[2..];
        let length = if user & 0x80 == 0 { 16 } else { 20 };
        if bytes.len() != length {
            return Err(CompletionCode::DATA_LENGTH);
        }
        let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let invalid = |_| CompletionCode::INVALID_DATA;
        let password = std::str::from_utf8(&bytes[..end]).map_err(invalid)?;
        match operation {
            2 => {
                let rules = &self.profile.accounts;
                let changed = self.machine.change_password(Protocol::Ipmi, rules, password);
                changed.map(|()| vec![]).map_err(|_| CompletionCode::INVALID_DATA)
            }
            3 if self.machine.password() == password => Ok(vec![]),
            3 => Err(CompletionCode(0x80)),
            // The only user cannot be disabled.
            _ => Err(CompletionCode::INVALID_DATA),
        }
    }

    /// Get Channel Payload Support (§24.8): IPMI messages, serial over LAN if the profile has it, and session setup.
    pub(super) fn get_channel_payload_support(&mut self, call: &Call<'_>) -> Answer {
        check_channel(call.byte(0)? & 0x0F)?;
        let standard = if self.profile.ipmi.serial.is_some() { 0x03 } else { 0x01 };
        Ok(vec![standard, 0x00, 0x3F, 0x00, 0x00, 0x00, 0x00, 0x00])
    }
}

pub(super) fn check_channel(channel: u8) -> Result<(), CompletionCode> {
    if channel == CHANNEL || channel == THIS_CHANNEL {
        Ok(())
    } else {
        Err(CompletionCode::INVALID_DATA)
    }
}
