//! The address of the machine's own BMC, read through `/dev/ipmi0` (IPMI 2.0 §23.2, Get LAN Configuration Parameters).

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use ipmi_rs::File;
use ipmi_rs::connection::{
    IpmiConnection, LogicalUnit, Message, NetFn, Request, RequestTargetAddress,
};
use tracing::warn;

use crate::root::Root;

/// How long the BMC may take for one answer: 5 s is the limit of a KCS interface (IPMI 2.0 §9).
const PATIENCE: Duration = Duration::from_secs(5);
/// The total limit: a broken BMC must not delay the inspection.
const LIMIT: Duration = Duration::from_secs(10);
const GET_LAN_CONFIGURATION: u8 = 0x02;
const IP_ADDRESS: u8 = 3;
const IPV6_STATIC_ADDRESSES: u8 = 56;
const IPV6_DYNAMIC_ADDRESSES: u8 = 59;
/// Higher channels are reserved, or are the machine's own interface to the BMC (table 6-1).
const LAST_CHANNEL: u8 = 11;

/// The LAN addresses of the BMC.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Addresses {
    pub(super) v4: Option<Ipv4Addr>,
    pub(super) v6: Option<Ipv6Addr>,
}

/// Asks every channel until one has a LAN address. Returns nothing if the machine has no BMC.
pub(super) fn addresses(root: &Root) -> Addresses {
    let device = root.path("/dev/ipmi0");
    if !device.exists() {
        return Addresses::default();
    }
    match File::new(&device, PATIENCE) {
        Ok(mut bmc) => ask(&mut bmc, LIMIT),
        Err(error) => {
            warn!("cannot ask the BMC for its address: {error}");
            Addresses::default()
        }
    }
}

/// Asks the channels until `limit` has passed or the BMC does not answer.
fn ask(bmc: &mut impl IpmiConnection<Error = io::Error>, limit: Duration) -> Addresses {
    let end = Instant::now() + limit;
    let mut found = Addresses::default();
    for channel in 1..=LAST_CHANNEL {
        if let Err(error) = ask_channel(bmc, channel, &mut found) {
            warn!("cannot read the address of the BMC's channel {channel}: {error}");
            break;
        }
        if found.v4.is_some() {
            break;
        }
        if Instant::now() >= end {
            warn!("the BMC is slow: after {limit:?} no channel after {channel} was asked");
            break;
        }
    }
    found
}

fn ask_channel(
    bmc: &mut impl IpmiConnection<Error = io::Error>,
    channel: u8,
    found: &mut Addresses,
) -> io::Result<()> {
    found.v4 = parameter(bmc, channel, IP_ADDRESS)?.as_deref().and_then(v4);
    for set in [IPV6_STATIC_ADDRESSES, IPV6_DYNAMIC_ADDRESSES] {
        if found.v6.is_none() {
            found.v6 = parameter(bmc, channel, set)?.as_deref().and_then(v6);
        }
    }
    Ok(())
}

/// Returns a parameter's data without completion code and revision; `None` if the channel lacks the parameter.
fn parameter(
    bmc: &mut impl IpmiConnection<Error = io::Error>,
    channel: u8,
    selector: u8,
) -> io::Result<Option<Vec<u8>>> {
    let data = vec![channel, selector, 0, 0];
    let message = Message::new_request(NetFn::Transport, GET_LAN_CONFIGURATION, data);
    let target = RequestTargetAddress::Bmc(LogicalUnit::Zero);
    let answer = bmc.send_recv(&mut Request::new(message, target))?;
    Ok(answer.data().get(1..).filter(|_| answer.cc() == 0).map(<[u8]>::to_vec))
}

fn v4(data: &[u8]) -> Option<Ipv4Addr> {
    let octets: [u8; 4] = data.get(..4)?.try_into().ok()?;
    Some(Ipv4Addr::from(octets)).filter(|address| !address.is_unspecified())
}

/// Set selector, source, address, prefix, status (IPMI 2.0 table 23-4).
fn v6(data: &[u8]) -> Option<Ipv6Addr> {
    let octets: [u8; 16] = data.get(2..18)?.try_into().ok()?;
    Some(Ipv6Addr::from(octets)).filter(|address| !address.is_unspecified())
}

#[cfg(test)]
mod tests {
    use ipmi_rs::connection::Response;

    use super::*;

    /// A BMC that counts requests and either refuses them or does not answer.
    struct Unhelpful {
        answers: bool,
        asked: usize,
    }

    impl IpmiConnection for Unhelpful {
        type SendError = io::Error;
        type RecvError = io::Error;
        type Error = io::Error;

        fn send(&mut self, _: &mut Request) -> io::Result<()> {
            self.asked += 1;
            Ok(())
        }

        fn recv(&mut self) -> io::Result<Response> {
            const PARAMETER_NOT_SUPPORTED: u8 = 0x80;
            let answer = vec![PARAMETER_NOT_SUPPORTED];
            let message = Message::new_response(NetFn::Transport, GET_LAN_CONFIGURATION, answer);
            let response = Response::new(message, 0).filter(|_| self.answers);
            response.ok_or_else(|| io::ErrorKind::WouldBlock.into())
        }

        fn send_recv(&mut self, request: &mut Request) -> io::Result<Response> {
            self.send(request)?;
            self.recv()
        }
    }

    fn questions(answers: bool, limit: Duration) -> usize {
        let mut bmc = Unhelpful { answers, asked: 0 };
        assert_eq!(ask(&mut bmc, limit), Addresses::default());
        bmc.asked
    }

    #[test]
    fn a_silent_bmc_is_asked_once() {
        assert_eq!(questions(false, LIMIT), 1);
    }

    #[test]
    fn all_channels_are_asked_within_the_limit() {
        assert_eq!(questions(true, LIMIT), 3 * usize::from(LAST_CHANNEL));
        assert_eq!(questions(true, Duration::ZERO), 3);
    }

    #[test]
    fn addresses_are_read_and_empty_ones_are_none() {
        assert_eq!(v4(&[10, 78, 1, 11]), Some(Ipv4Addr::new(10, 78, 1, 11)));
        assert_eq!(v4(&[0, 0, 0, 0]), None);
        assert_eq!(v4(&[10]), None);
        let mut data = vec![0, 0x80];
        data.extend("fd00::2".parse::<Ipv6Addr>().unwrap().octets());
        data.extend([64, 0]);
        assert_eq!(v6(&data), "fd00::2".parse().ok());
        assert_eq!(v6(&[0; 20]), None);
    }
}
