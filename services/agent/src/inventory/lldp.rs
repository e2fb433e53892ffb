//! The switch port that each interface is connected to, from the switch's LLDP frames (IEEE 802.1AB).

use std::collections::BTreeMap;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use agent_protocol::Interface;
use nix::sys::socket::{
    AddressFamily, LinkAddr, SockFlag, SockProtocol, SockType, recvfrom, setsockopt, socket,
    sockopt,
};
use nix::sys::time::TimeVal;
use tracing::{info, warn};

use crate::root::Root;

/// Type and hexadecimal value, in the form that the original posts.
pub type Values = Vec<(u8, String)>;

const ETHERTYPE: [u8; 2] = [0x88, 0xcc];
/// More values than any neighbour sends.
const MOST_VALUES: usize = 64;

/// Listens on all interfaces until each interface with a link has received a frame, or until `patience` has passed.
pub fn listen(root: &Root, interfaces: &mut [Interface], patience: Duration) {
    let index = |name: &str| root.number::<usize>(format!("/sys/class/net/{name}/ifindex"));
    let linked = interfaces.iter().filter(|interface| interface.has_carrier);
    let wanted: Vec<usize> = linked.filter_map(|interface| index(&interface.name)).collect();
    if wanted.is_empty() {
        return;
    }
    info!("listening for LLDP neighbours on {} interfaces", wanted.len());
    match hear(&wanted, patience) {
        Ok(heard) => {
            for interface in interfaces {
                interface.lldp = index(&interface.name).and_then(|at| heard.get(&at).cloned());
            }
        }
        Err(error) => warn!("cannot listen for LLDP neighbours: {error}"),
    }
}

fn hear(wanted: &[usize], patience: Duration) -> nix::Result<BTreeMap<usize, Values>> {
    let link =
        socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::EthAll)?;
    setsockopt(&link, sockopt::ReceiveTimeout, &TimeVal::new(1, 0))?;
    let end = Instant::now() + patience;
    let mut heard = BTreeMap::new();
    let mut frame = [0; 1518];
    while Instant::now() < end && wanted.iter().any(|index| !heard.contains_key(index)) {
        let Ok((length, from)) = recvfrom::<LinkAddr>(link.as_raw_fd(), &mut frame) else {
            continue;
        };
        let index = from.map(|address| address.ifindex());
        if let (Some(index), Some(values)) = (index, values(&frame[..length])) {
            heard.insert(index, values);
        }
    }
    Ok(heard)
}

/// Returns the values of a frame; `None` if the frame is not LLDP.
pub fn values(frame: &[u8]) -> Option<Values> {
    let mut rest = frame.get(14..).filter(|_| frame[12..14] == ETHERTYPE)?;
    let mut found = Values::new();
    while let [first, second, after @ ..] = rest {
        let length = usize::from(first & 1) << 8 | usize::from(*second);
        let (value, after) = after.split_at_checked(length)?;
        if first >> 1 == 0 || found.len() == MOST_VALUES {
            break;
        }
        found.push((first >> 1, hex::encode(value)));
        rest = after;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_switch_is_understood() {
        let mut frame = vec![0x01, 0x80, 0xc2, 0, 0, 0x0e, 2, 0, 0, 0, 0, 1, 0x88, 0xcc];
        frame.extend([2, 7, 4, 2, 0, 0, 0, 0, 1]);
        frame.extend(*b"\x04\x05\x05eth7");
        frame.extend([6, 2, 0, 120, 0, 0, 9, 9]);
        let want = [(1, "04020000000001"), (2, "0565746837"), (3, "0078")];
        let found = values(&frame).unwrap();
        assert_eq!(found, want.map(|(kind, value)| (kind, value.to_owned())));
        frame[13] = 0;
        assert_eq!(values(&frame), None);
    }

    proptest! {
        #[test]
        fn no_frame_panics(tail: Vec<u8>) {
            let mut frame = vec![0; 12];
            frame.extend(ETHERTYPE);
            frame.extend(&tail);
            values(&frame);
            values(&tail);
        }
    }
}
