//! What single BMCs need.

use std::net::SocketAddr;
use std::time::Duration;

use crate::wire::serial;

/// How long to wait, and how often, for power to be off before it is switched on again.
///
/// virtualbmc refuses some restarts when libvirt does; its machines are off at once, real ones take
/// some seconds.
pub(crate) fn waits_for_power_off() -> impl Iterator<Item = Duration> {
    [100, 200, 400, 800, 1600, 1600, 1600, 1600].into_iter().map(Duration::from_millis)
}

/// The first packet of a session of a serial port: without characters.
///
/// BMCs of OpenIPMI's code remember the last number of the session before, and take a first packet
/// with the same one for a repetition. This has a number that the next ones have not.
pub(crate) fn first_serial_packet() -> Vec<u8> {
    serial::typed(15, &[])
}

/// Where a BMC that was reached at `reached` takes characters when it says port `told`.
///
/// Some tell the bytes of the port the wrong way round. Behind another port than the standard one
/// somebody forwards, and what the BMC knows of its own port leads nowhere.
pub(crate) fn serial_address(reached: SocketAddr, told: u16) -> SocketAddr {
    const STANDARD: u16 = 623;
    if reached.port() != STANDARD || told == 0 || told == STANDARD.swap_bytes() {
        return reached;
    }
    SocketAddr::new(reached.ip(), told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(reached: &str, told: u16, want: &str) {
        let address = serial_address(reached.parse().unwrap(), told);
        assert_eq!(address, want.parse().unwrap());
    }

    #[test]
    fn characters_go_to_the_port_that_the_bmc_tells() {
        check("192.0.2.7:623", 623, "192.0.2.7:623");
        check("192.0.2.7:623", 664, "192.0.2.7:664");
        check("192.0.2.7:623", 0x6f02, "192.0.2.7:623");
        check("192.0.2.7:623", 0, "192.0.2.7:623");
    }

    #[test]
    fn a_forwarded_port_stays() {
        check("[2001:db8::7]:16234", 623, "[2001:db8::7]:16234");
    }
}
