//! Address ranges in CIDR notation.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A network in CIDR notation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cidr {
    first: u128,
    prefix: u32,
    pub(crate) v6: bool,
}

impl Cidr {
    /// Parses `10.0.0.0/24`. Bits below the prefix are dropped.
    pub(crate) fn parse(text: &str) -> Option<Cidr> {
        let (address, prefix) = text.split_once('/')?;
        let address: IpAddr = address.parse().ok()?;
        let prefix: u32 = prefix.parse().ok()?;
        let v6 = address.is_ipv6();
        let width = if v6 { 128 } else { 32 };
        if prefix > width {
            return None;
        }
        let mut cidr = Cidr { first: number(address), prefix, v6 };
        cidr.first &= !(cidr.size() - 1);
        Some(cidr)
    }

    fn size(self) -> u128 {
        let bits = if self.v6 { 128 - self.prefix } else { 32 - self.prefix };
        1_u128.checked_shl(bits).unwrap_or(u128::MAX)
    }

    /// The address at this offset from the first.
    pub(crate) fn at(self, offset: u128) -> IpAddr {
        address(self.first + offset, self.v6)
    }

    /// The last address that a host can have: in IPv4, the one before the broadcast address.
    pub(crate) fn last_host(self) -> IpAddr {
        let last = self.first + self.size() - 1;
        address(if self.v6 || self.size() <= 2 { last } else { last - 1 }, self.v6)
    }

    pub(crate) fn contains(self, address: IpAddr) -> bool {
        let number = number(address);
        address.is_ipv6() == self.v6 && number >= self.first && number - self.first < self.size()
    }

    pub(crate) fn overlaps(self, other: Cidr) -> bool {
        self.v6 == other.v6 && (self.contains(other.at(0)) || other.contains(self.at(0)))
    }

    pub(crate) fn text(self) -> String {
        format!("{}/{}", self.at(0), self.prefix)
    }
}

/// Converts an address to a number.
pub(crate) fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u32::from(v4).into(),
        IpAddr::V6(v6) => v6.into(),
    }
}

/// Converts a number to an address.
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
        let cidr = Cidr::parse("10.0.1.7/24").unwrap();
        assert_eq!(cidr.text(), "10.0.1.0/24");
        assert_eq!(cidr.at(1).to_string(), "10.0.1.1");
        assert_eq!(cidr.last_host().to_string(), "10.0.1.254");
        assert!(cidr.contains("10.0.1.255".parse().unwrap()));
        assert!(!cidr.contains("10.0.2.0".parse().unwrap()));
        assert!(cidr.overlaps(Cidr::parse("10.0.0.0/16").unwrap()));
        assert!(!cidr.overlaps(Cidr::parse("10.0.2.0/24").unwrap()));
        assert_eq!(Cidr::parse("fd00::/64").unwrap().at(1).to_string(), "fd00::1");
        assert!(Cidr::parse("10.0.0.0/33").is_none());
    }
}
