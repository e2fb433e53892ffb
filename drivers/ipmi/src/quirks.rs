//! Workarounds for single BMCs.

use std::net::SocketAddr;
use std::time::Duration;

use crate::wire::serial;

/// The waits for the power to go off before it is switched on again.
///
/// Some BMCs refuse a reset, for example virtualbmc when libvirt does; the driver then switches off and on. Machines of virtualbmc are
/// off at once, real ones take some seconds.
pub(crate) fn waits_for_power_off() -> impl Iterator<Item = Duration> {
    [100, 200, 400, 800, 1600, 1600, 1600, 1600].into_iter().map(Duration::from_millis)
}

/// The first packet in a session of a serial port, which has no characters.
///
/// BMCs with OpenIPMI's code remember the last packet number of the previous session, and treat a first packet with the same number as a
/// repetition. This packet has a number that the next packets do not use.
pub(crate) fn first_serial_packet() -> Vec<u8> {
    serial::typed(15, &[])
}

/// Returns the address to which characters are sent, for a BMC that was reached at `reached` and reports port `reported`.
///
/// Some BMCs swap the bytes of the port. A BMC on another port than the standard one is behind a port forwarding, and the port that the BMC
/// reports is not reachable.
pub(crate) fn serial_address(reached: SocketAddr, reported: u16) -> SocketAddr {
    const STANDARD: u16 = 623;
    if reached.port() != STANDARD || reported == 0 || reported == STANDARD.swap_bytes() {
        return reached;
    }
    SocketAddr::new(reached.ip(), reported)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(reached: &str, reported: u16, want: &str) {
        let address = serial_address(reached.parse().unwrap(), reported);
        assert_eq!(address, want.parse().unwrap());
    }

    #[test]
    fn characters_go_to_the_port_that_the_bmc_reports() {
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
