//! The state of the RMCP+ port of one machine.

use std::net::SocketAddr;

use crate::ipmi::serial_session::SerialSession;
use crate::ipmi::session::Sessions;
use crate::machine::Machine;
use crate::profile::Profile;

/// §13.1.2: the primary RMCP port.
const RMCP_PORT: u16 = 623;

/// The RMCP+ port of one machine.
pub(crate) struct IpmiFace {
    pub(crate) machine: Machine,
    pub(crate) profile: &'static Profile,
    pub(crate) sessions: Sessions,
    pub(crate) boot: BootOptions,
    /// The behaviour of the machine when mains power returns (§28.8).
    pub(crate) restore_policy: u8,
    /// The last reservation of the SDR repository and of the event log. 0 means none.
    pub(crate) sdr_reservation: u16,
    pub(crate) sel_reservation: u16,
    /// The UDP port on which the BMC listens.
    pub(crate) port: u16,
    /// The sender of the datagram that is being answered.
    pub(crate) from: Option<SocketAddr>,
    /// The serial session of the console that has the port. `None` if no console has it.
    pub(crate) link: Option<SerialSession>,
    /// The packet that tells a console that its serial session has ended.
    pub(crate) farewell: Option<(Vec<u8>, SocketAddr)>,
}

/// The boot option parameters (table 28-14) as a client wrote them.
#[derive(Debug, Default)]
pub(crate) struct BootOptions {
    pub(crate) in_progress: u8,
    pub(crate) service_partition: u8,
    pub(crate) service_partition_scan: u8,
    pub(crate) clearing: u8,
    pub(crate) acknowledged: u8,
    /// Parameter 5. The machine knows whether the flags are still valid.
    pub(crate) flags: [u8; 5],
    pub(crate) initiator: [u8; 9],
    /// A bit for each parameter whose lock bit is set.
    pub(crate) invalid: u8,
}

impl IpmiFace {
    pub(crate) fn new(machine: Machine, profile: &'static Profile) -> IpmiFace {
        IpmiFace {
            machine,
            profile,
            sessions: Sessions::new(&profile.ipmi),
            boot: BootOptions::default(),
            restore_policy: 0,
            sdr_reservation: 0,
            sel_reservation: 0,
            port: RMCP_PORT,
            from: None,
            link: None,
            farewell: None,
        }
    }
}
