//! Power and the identify light (IPMI 2.0 chapter 28).

use std::time::Duration;

use tokio::time::Instant;

use crate::ipmi::command::{Answer, Call, CompletionCode};
use crate::ipmi::face::IpmiFace;
use crate::ipmi::message::BMC_ADDRESS;
use crate::log::{PowerRequest, Protocol};
use crate::machine::Identify;

impl IpmiFace {
    /// Get Chassis Capabilities (§28.1): the BMC's address for every function.
    pub(super) fn get_chassis_capabilities(&mut self, _: &Call<'_>) -> Answer {
        Ok(vec![0x00, BMC_ADDRESS, BMC_ADDRESS, BMC_ADDRESS, BMC_ADDRESS, BMC_ADDRESS])
    }

    /// Get Chassis Status (§28.2).
    pub(super) fn get_chassis_status(&mut self, _: &Call<'_>) -> Answer {
        let on = u8::from(self.machine.reported_on());
        let identify = match self.machine.identify() {
            Identify::Off => 0x00,
            Identify::Until(_) => 0x10,
            Identify::On => 0x20,
        };
        // Bit 4 of the second byte: a command caused the last power-on. Bit 6 of the third byte: the identify state is reported.
        let by_command = if self.machine.power_now().generation > 0 { 0x10 } else { 0x00 };
        Ok(vec![on | self.restore_policy << 5, by_command, 0x40 | identify, 0x00])
    }

    /// Chassis Control (§28.3).
    pub(super) fn chassis_control(&mut self, call: &Call<'_>) -> Answer {
        let request = match call.byte(0)? & 0x0F {
            0x00 => PowerRequest::ForceOff,
            0x01 => PowerRequest::On,
            0x02 => PowerRequest::Cycle,
            0x03 => PowerRequest::ForceRestart,
            0x04 => PowerRequest::Interrupt,
            0x05 => PowerRequest::SoftOff,
            _ => return Err(CompletionCode::INVALID_DATA),
        };
        let done = self.machine.request_power(Protocol::Ipmi, request);
        done.map(|_| vec![]).map_err(|_| CompletionCode::NOT_IN_THIS_STATE)
    }

    /// Chassis Identify (§28.5): 15 seconds by default.
    pub(super) fn chassis_identify(&mut self, call: &Call<'_>) -> Answer {
        let seconds = call.byte(0).unwrap_or(15);
        let for_good = call.byte(1).is_ok_and(|force| force & 0x01 != 0);
        let identify = match seconds {
            _ if for_good => Identify::On,
            0 => Identify::Off,
            seconds => Identify::Until(Instant::now() + Duration::from_secs(seconds.into())),
        };
        self.machine.set_identify(Protocol::Ipmi, identify);
        Ok(vec![])
    }

    /// Set Power Restore Policy (§28.8): all three policies are supported.
    pub(super) fn set_power_restore_policy(&mut self, call: &Call<'_>) -> Answer {
        match call.byte(0)? & 0x07 {
            policy @ 0..=2 => {
                self.restore_policy = policy;
                self.record_other(format!("power restore policy {policy}"));
            }
            3 => {}
            _ => return Err(CompletionCode::INVALID_DATA),
        }
        Ok(vec![0x07])
    }

    /// Get System Restart Cause (§28.11): a chassis control command on the LAN channel, or unknown.
    pub(super) fn get_system_restart_cause(&mut self, _: &Call<'_>) -> Answer {
        let cause = if self.machine.power_now().generation > 0 { 0x01 } else { 0x00 };
        Ok(vec![cause, 0x01])
    }

    /// Get POH Counter (§28.14) in counts of an hour: the machine is always new.
    pub(super) fn get_power_on_hours(&mut self, _: &Call<'_>) -> Answer {
        Ok(vec![60, 0, 0, 0, 0])
    }
}
