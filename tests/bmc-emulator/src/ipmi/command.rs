//! The commands of this BMC, the privileges they need, and the format of their answers.

mod app;
mod boot;
mod chassis;
mod fru;
mod lan;
mod sdr;
mod sel;
mod sensor;
mod serial;

use crate::ipmi::face::IpmiFace;
use crate::ipmi::message::LanMessage;
use crate::ipmi::session::Privilege;
use crate::log::{Outcome, Protocol, Request};

/// A completion code other than success (table 5-2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CompletionCode(pub(crate) u8);

impl CompletionCode {
    pub(crate) const INVALID_COMMAND: CompletionCode = CompletionCode(0xC1);
    pub(crate) const RESERVATION_CANCELLED: CompletionCode = CompletionCode(0xC5);
    pub(crate) const DATA_LENGTH: CompletionCode = CompletionCode(0xC7);
    pub(crate) const OUT_OF_RANGE: CompletionCode = CompletionCode(0xC9);
    pub(crate) const NOT_PRESENT: CompletionCode = CompletionCode(0xCB);
    pub(crate) const INVALID_DATA: CompletionCode = CompletionCode(0xCC);
    pub(crate) const PRIVILEGE: CompletionCode = CompletionCode(0xD4);
    pub(crate) const NOT_IN_THIS_STATE: CompletionCode = CompletionCode(0xD5);
}

/// The data of a response, or an error completion code.
pub(crate) type Answer = Result<Vec<u8>, CompletionCode>;

/// The data of one request, and its session.
pub(crate) struct Call<'a> {
    data: &'a [u8],
    /// The session of the request. `None` outside of any session.
    session: Option<u32>,
}

/// One row of the command table.
struct Command {
    net_fn: u8,
    code: u8,
    name: &'static str,
    needs: RequiredPrivilege,
    run: fn(&mut IpmiFace, &Call<'_>) -> Answer,
}

/// The privilege that a command needs (appendix G), and whether the command changes the machine.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RequiredPrivilege {
    /// The command needs no session.
    Nothing,
    /// The command reads and needs a session of this privilege.
    ToRead(Privilege),
    /// The command changes something and needs a session of this privilege. Refusals are logged.
    ToChange(Privilege),
}

/// §5.1: network functions.
mod net_fn {
    pub(super) const CHASSIS: u8 = 0x00;
    pub(super) const SENSOR: u8 = 0x04;
    pub(super) const APP: u8 = 0x06;
    pub(super) const STORAGE: u8 = 0x0A;
    pub(super) const TRANSPORT: u8 = 0x0C;
}

use Privilege::{Administrator, Callback, Operator, User};
use RequiredPrivilege::{Nothing, ToChange, ToRead};
use net_fn::{APP, CHASSIS, SENSOR, STORAGE, TRANSPORT};

/// All commands of this BMC (appendix G).
#[rustfmt::skip]
const COMMANDS: &[Command] = &[
    Command { net_fn: CHASSIS, code: 0x00, name: "Get Chassis Capabilities", needs: ToRead(User), run: IpmiFace::get_chassis_capabilities },
    Command { net_fn: CHASSIS, code: 0x01, name: "Get Chassis Status", needs: ToRead(User), run: IpmiFace::get_chassis_status },
    Command { net_fn: CHASSIS, code: 0x02, name: "Chassis Control", needs: ToChange(Operator), run: IpmiFace::chassis_control },
    Command { net_fn: CHASSIS, code: 0x04, name: "Chassis Identify", needs: ToChange(Operator), run: IpmiFace::chassis_identify },
    Command { net_fn: CHASSIS, code: 0x06, name: "Set Power Restore Policy", needs: ToChange(Operator), run: IpmiFace::set_power_restore_policy },
    Command { net_fn: CHASSIS, code: 0x07, name: "Get System Restart Cause", needs: ToRead(User), run: IpmiFace::get_system_restart_cause },
    Command { net_fn: CHASSIS, code: 0x08, name: "Set System Boot Options", needs: ToChange(Operator), run: IpmiFace::set_system_boot_options },
    Command { net_fn: CHASSIS, code: 0x09, name: "Get System Boot Options", needs: ToRead(Operator), run: IpmiFace::get_system_boot_options },
    Command { net_fn: CHASSIS, code: 0x0F, name: "Get POH Counter", needs: ToRead(User), run: IpmiFace::get_power_on_hours },

    Command { net_fn: SENSOR, code: 0x23, name: "Get Sensor Reading Factors", needs: ToRead(User), run: IpmiFace::get_sensor_reading_factors },
    Command { net_fn: SENSOR, code: 0x25, name: "Get Sensor Hysteresis", needs: ToRead(User), run: IpmiFace::get_sensor_hysteresis },
    Command { net_fn: SENSOR, code: 0x27, name: "Get Sensor Threshold", needs: ToRead(User), run: IpmiFace::get_sensor_thresholds },
    Command { net_fn: SENSOR, code: 0x2D, name: "Get Sensor Reading", needs: ToRead(User), run: IpmiFace::get_sensor_reading },
    Command { net_fn: SENSOR, code: 0x2F, name: "Get Sensor Type", needs: ToRead(User), run: IpmiFace::get_sensor_type },

    Command { net_fn: APP, code: 0x01, name: "Get Device ID", needs: ToRead(User), run: IpmiFace::get_device_id },
    Command { net_fn: APP, code: 0x02, name: "Cold Reset", needs: ToChange(Administrator), run: IpmiFace::reset_bmc },
    Command { net_fn: APP, code: 0x03, name: "Warm Reset", needs: ToChange(Administrator), run: IpmiFace::reset_bmc },
    Command { net_fn: APP, code: 0x04, name: "Get Self Test Results", needs: ToRead(User), run: IpmiFace::get_self_test_results },
    Command { net_fn: APP, code: 0x07, name: "Get ACPI Power State", needs: ToRead(User), run: IpmiFace::get_acpi_power_state },
    Command { net_fn: APP, code: 0x08, name: "Get Device GUID", needs: ToRead(User), run: IpmiFace::get_system_guid },
    Command { net_fn: APP, code: 0x37, name: "Get System GUID", needs: Nothing, run: IpmiFace::get_system_guid },
    Command { net_fn: APP, code: 0x38, name: "Get Channel Authentication Capabilities", needs: Nothing, run: IpmiFace::get_channel_authentication_capabilities },
    Command { net_fn: APP, code: 0x3B, name: "Set Session Privilege Level", needs: ToRead(Callback), run: IpmiFace::set_session_privilege_level },
    Command { net_fn: APP, code: 0x3C, name: "Close Session", needs: ToRead(Callback), run: IpmiFace::close_session },
    Command { net_fn: APP, code: 0x3D, name: "Get Session Info", needs: ToRead(User), run: IpmiFace::get_session_info },
    Command { net_fn: APP, code: 0x41, name: "Get Channel Access", needs: ToRead(User), run: IpmiFace::get_channel_access },
    Command { net_fn: APP, code: 0x42, name: "Get Channel Info", needs: ToRead(User), run: IpmiFace::get_channel_info },
    Command { net_fn: APP, code: 0x44, name: "Get User Access", needs: ToRead(Operator), run: IpmiFace::get_user_access },
    Command { net_fn: APP, code: 0x46, name: "Get User Name", needs: ToRead(Operator), run: IpmiFace::get_user_name },
    Command { net_fn: APP, code: 0x47, name: "Set User Password", needs: ToChange(Administrator), run: IpmiFace::set_user_password },
    Command { net_fn: APP, code: 0x48, name: "Activate Payload", needs: ToRead(Operator), run: IpmiFace::activate_payload },
    Command { net_fn: APP, code: 0x49, name: "Deactivate Payload", needs: ToRead(Operator), run: IpmiFace::deactivate_payload },
    Command { net_fn: APP, code: 0x4A, name: "Get Payload Activation Status", needs: ToRead(User), run: IpmiFace::get_payload_activation_status },
    Command { net_fn: APP, code: 0x4E, name: "Get Channel Payload Support", needs: ToRead(User), run: IpmiFace::get_channel_payload_support },
    Command { net_fn: APP, code: 0x54, name: "Get Channel Cipher Suites", needs: Nothing, run: IpmiFace::get_channel_cipher_suites },

    Command { net_fn: STORAGE, code: 0x10, name: "Get FRU Inventory Area Info", needs: ToRead(User), run: IpmiFace::get_fru_inventory_area_info },
    Command { net_fn: STORAGE, code: 0x11, name: "Read FRU Data", needs: ToRead(User), run: IpmiFace::read_fru_data },
    Command { net_fn: STORAGE, code: 0x20, name: "Get SDR Repository Info", needs: ToRead(User), run: IpmiFace::get_sdr_repository_info },
    Command { net_fn: STORAGE, code: 0x22, name: "Reserve SDR Repository", needs: ToRead(User), run: IpmiFace::reserve_sdr_repository },
    Command { net_fn: STORAGE, code: 0x23, name: "Get SDR", needs: ToRead(User), run: IpmiFace::get_sdr },
    Command { net_fn: STORAGE, code: 0x40, name: "Get SEL Info", needs: ToRead(User), run: IpmiFace::get_sel_info },
    Command { net_fn: STORAGE, code: 0x42, name: "Reserve SEL", needs: ToRead(User), run: IpmiFace::reserve_sel },
    Command { net_fn: STORAGE, code: 0x43, name: "Get SEL Entry", needs: ToRead(User), run: IpmiFace::get_sel_entry },
    Command { net_fn: STORAGE, code: 0x47, name: "Clear SEL", needs: ToChange(Operator), run: IpmiFace::clear_sel },
    Command { net_fn: STORAGE, code: 0x48, name: "Get SEL Time", needs: ToRead(User), run: IpmiFace::get_sel_time },

    Command { net_fn: TRANSPORT, code: 0x02, name: "Get LAN Configuration Parameters", needs: ToRead(Operator), run: IpmiFace::get_lan_configuration_parameters },
    Command { net_fn: TRANSPORT, code: 0x22, name: "Get SOL Configuration Parameters", needs: ToRead(User), run: IpmiFace::get_serial_configuration_parameters },
];

impl Call<'_> {
    /// The byte at `index` of the request's data.
    fn byte(&self, index: usize) -> Result<u8, CompletionCode> {
        self.data.get(index).copied().ok_or(CompletionCode::DATA_LENGTH)
    }

    /// The little-endian word at `index`.
    fn word(&self, index: usize) -> Result<u16, CompletionCode> {
        Ok(u16::from_le_bytes([self.byte(index)?, self.byte(index + 1)?]))
    }
}

impl IpmiFace {
    /// Executes a request and returns the whole response message.
    pub(super) fn execute(&mut self, request: &LanMessage<'_>, session: Option<u32>) -> Vec<u8> {
        let call = Call { data: request.data, session };
        let known = COMMANDS
            .iter()
            .find(|known| (known.net_fn, known.code) == (request.net_fn, request.command));
        let answer = match self.machine.faults().completion_for(request.net_fn, request.command) {
            Some(code) => Err(CompletionCode(code)),
            None => {
                known.map_or(Err(CompletionCode::INVALID_COMMAND), |known| self.run(known, &call))
            }
        };
        match answer {
            Ok(data) => request.reply(0x00, &data),
            Err(CompletionCode(code)) => {
                if let Some(known) = known.filter(|known| matches!(known.needs, ToChange(_))) {
                    let asked = Request::Other(known.name.to_owned());
                    let why = format!("completion code {code:02X}h");
                    self.machine.record(Protocol::Ipmi, asked, Outcome::Refused(why));
                }
                request.reply(code, &[])
            }
        }
    }

    fn run(&mut self, command: &Command, call: &Call<'_>) -> Answer {
        let active = call
            .session
            .and_then(|id| self.sessions.find(id))
            .and_then(|session| session.active.as_ref());
        let allowed = match command.needs {
            Nothing => true,
            ToRead(least) | ToChange(least) => {
                active.is_some_and(|active| active.privilege >= least)
            }
        };
        if allowed { (command.run)(self, call) } else { Err(CompletionCode::PRIVILEGE) }
    }

    /// Logs a change that has no request type of its own.
    fn record_other(&self, what: String) {
        self.machine.record(Protocol::Ipmi, Request::Other(what), Outcome::Accepted);
    }
}
