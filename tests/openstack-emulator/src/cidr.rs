//! Address ranges in CIDR notation.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

/// Parses `10.0.0.0/24`. Bits below the prefix are dropped.
pub(crate) fn parse(text: &str) -> Option<IpNet> {
    // The parser of `IpNet` also reads 010.0.0.0, which Neutron refuses.
    let (address, prefix) = text.split_once('/')?;
    Some(IpNet::new(address.parse().ok()?, prefix.parse().ok()?).ok()?.trunc())
}

/// The address at this offset from the first.
pub(crate) fn at(range: IpNet, offset: u128) -> IpAddr {
    address(number(range.network()) + offset, is_v6(range))
}

/// The last address that a host can have: in IPv4, the one before the broadcast address.
pub(crate) fn last_host(range: IpNet) -> IpAddr {
    match range {
        IpNet::V4(range) if range.prefix_len() < 31 => {
            Ipv4Addr::from_bits(range.broadcast().to_bits() - 1).into()
        }
        IpNet::V4(_) | IpNet::V6(_) => range.broadcast(),
    }
}

pub(crate) fn is_v6(range: IpNet) -> bool {
    range.addr().is_ipv6()
}

pub(crate) fn overlap(one: IpNet, other: IpNet) -> bool {
    one.contains(&other) || other.contains(&one)
}

pub(crate) fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u32::from(v4).into(),
        IpAddr::V6(v6) => v6.into(),
    }
}

pub(crate) fn address(number: u128, v6: bool) -> IpAddr {
    if v6 {
        return IpAddr::V6(Ipv6Addr::from(number));
    }
    IpAddr::V4(Ipv4Addr::from(u32::try_from(number).unwrap_or(u32::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_knows_its_hosts_and_its_neighbours() {
        let cidr = parse("10.0.1.7/24").unwrap();
        assert_eq!(cidr.to_string(), "10.0.1.0/24");
        assert_eq!(at(cidr, 1).to_string(), "10.0.1.1");
        assert_eq!(last_host(cidr).to_string(), "10.0.1.254");
        assert!(cidr.contains(&"10.0.1.255".parse::<IpAddr>().unwrap()));
        assert!(!cidr.contains(&"10.0.2.0".parse::<IpAddr>().unwrap()));
        assert!(overlap(cidr, parse("10.0.0.0/16").unwrap()));
        assert!(!overlap(cidr, parse("10.0.2.0/24").unwrap()));
        assert_eq!(at(parse("fd00::/64").unwrap(), 1).to_string(), "fd00::1");
        assert!(parse("10.0.0.0/33").is_none());
    }
}
