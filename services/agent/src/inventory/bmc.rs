//! The BMC's address, asked of itself through `/dev/ipmi0` (IPMI 2.0 §23.2, Get LAN Configuration Parameters).

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use ipmi_rs::File;
use ipmi_rs::connection::{
    IpmiConnection, LogicalUnit, Message, NetFn, Request, RequestTargetAddress,
};

use crate::root::Root;

/// A BMC that is busy answers late; one that is broken must not hold up the inspection.
const PATIENCE: Duration = Duration::from_secs(3);
const GET_LAN_CONFIGURATION: u8 = 0x02;
const IP_ADDRESS: u8 = 3;
const IPV6_STATIC_ADDRESSES: u8 = 56;
const IPV6_DYNAMIC_ADDRESSES: u8 = 59;
/// Completion codes that mean the channel has no LAN: another may.
const LAST_CHANNEL: u8 = 11;

/// Where the BMC can be reached.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Addresses {
    pub(super) v4: Option<Ipv4Addr>,
    pub(super) v6: Option<Ipv6Addr>,
}

/// Asks every channel until one has a LAN address. Nothing where there is no BMC.
pub(super) fn addresses(root: &Root) -> Addresses {
    let mut found = Addresses::default();
    let device = root.path("/dev/ipmi0");
    if !device.exists() {
        return found;
    }
    let mut bmc = match File::new(&device, PATIENCE) {
        Ok(bmc) => bmc,
        Err(error) => {
            tracing::warn!("cannot ask the BMC for its address: {error}");
            return found;
        }
    };
    for channel in 1..=LAST_CHANNEL {
        found.v4 = found.v4.or_else(|| v4(&parameter(&mut bmc, channel, IP_ADDRESS)?));
        for set in [IPV6_STATIC_ADDRESSES, IPV6_DYNAMIC_ADDRESSES] {
            found.v6 = found.v6.or_else(|| v6(&parameter(&mut bmc, channel, set)?));
        }
        if found.v4.is_some() {
            break;
        }
    }
    found
}

/// A parameter's data without completion code and revision.
fn parameter(bmc: &mut File, channel: u8, selector: u8) -> Option<Vec<u8>> {
    let message = Message::new_request(
        NetFn::Transport,
        GET_LAN_CONFIGURATION,
        vec![channel, selector, 0, 0],
    );
    let target = RequestTargetAddress::Bmc(LogicalUnit::Zero);
    let answer = bmc.send_recv(&mut Request::new(message, target)).ok()?;
    if answer.cc() != 0 {
        return None;
    }
    answer.data().get(1..).map(<[u8]>::to_vec)
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
    use super::*;

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
