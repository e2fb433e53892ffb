//! Chassis commands: power and the identify light (IPMI 2.0 §28).

use hardware::PowerState;

use crate::wire::{Malformed, Reader};

use super::{CHASSIS, Command};

/// Get Chassis Status (IPMI 2.0 §28.2): whether the power is on.
pub(crate) struct GetChassisStatus;

impl Command for GetChassisStatus {
    const NAME: &'static str = "Get Chassis Status";
    const CODE: (u8, u8) = (CHASSIS, 0x01);
    type Answer = PowerState;

    fn data(&self) -> Vec<u8> {
        Vec::new()
    }

    fn read(&self, answer: &mut Reader<'_>) -> Result<PowerState, Malformed> {
        let [power, _last_event, _misc]: [u8; 3] = answer.array()?;
        Ok(if power & 1 == 1 { PowerState::On } else { PowerState::Off })
    }
}

/// Chassis Control (IPMI 2.0 §28.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChassisControl {
    PowerDown = 0,
    PowerUp = 1,
    HardReset = 3,
    /// Usually a non-maskable interrupt. Optional, as are all controls but power down and power up.
    DiagnosticInterrupt = 4,
    /// Emulates a fatal over-temperature, to which the operating system reacts by ACPI.
    SoftShutdown = 5,
}

impl Command for ChassisControl {
    const NAME: &'static str = "Chassis Control";
    const CODE: (u8, u8) = (CHASSIS, 0x02);
    type Answer = ();

    fn data(&self) -> Vec<u8> {
        vec![*self as u8]
    }

    fn read(&self, _answer: &mut Reader<'_>) -> Result<(), Malformed> {
        Ok(())
    }
}

/// Chassis Identify (IPMI 2.0 §28.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChassisIdentify {
    Off,
    /// For up to 255 seconds: the interval has one byte.
    ForSeconds(u8),
    /// Until the light is switched off; not every BMC supports this.
    Indefinitely,
}

impl Command for ChassisIdentify {
    const NAME: &'static str = "Chassis Identify";
    const CODE: (u8, u8) = (CHASSIS, 0x04);
    type Answer = ();

    fn data(&self) -> Vec<u8> {
        match self {
            ChassisIdentify::Off => vec![0],
            ChassisIdentify::ForSeconds(seconds) => vec![*seconds],
            ChassisIdentify::Indefinitely => vec![0, 1],
        }
    }

    fn read(&self, _answer: &mut Reader<'_>) -> Result<(), Malformed> {
        Ok(())
    }
}
