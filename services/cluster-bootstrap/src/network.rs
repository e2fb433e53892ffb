//! Address ranges in CIDR notation.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address range. All bits after the prefix are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cidr {
    first: IpAddr,
    prefix: u8,
}

/// Why a text is not a valid address range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{raw}` is not a valid address range: write a network address and a prefix length, such as 10.244.0.0/16"
)]
pub struct InvalidCidr {
    pub raw: String,
}

impl Cidr {
    /// Whether `address` is inside the range.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.first, address) {
            (IpAddr::V4(first), IpAddr::V4(address)) => mask4(address, self.prefix) == first,
            (IpAddr::V6(first), IpAddr::V6(address)) => mask6(address, self.prefix) == first,
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }

    /// Whether the two ranges have an address in common.
    pub fn overlaps(&self, other: &Cidr) -> bool {
        self.contains(other.first) || other.contains(self.first)
    }

    /// The length of the prefix in bits.
    pub fn prefix(&self) -> u8 {
        self.prefix
    }
}

impl TryFrom<&str> for Cidr {
    type Error = InvalidCidr;

    fn try_from(raw: &str) -> Result<Self, InvalidCidr> {
        let invalid = || InvalidCidr { raw: raw.to_owned() };
        let (first, prefix) = raw.split_once('/').ok_or_else(invalid)?;
        let first: IpAddr = first.parse().map_err(|_| invalid())?;
        let prefix: u8 = prefix.parse().map_err(|_| invalid())?;
        let (most, masked) = match first {
            IpAddr::V4(it) => (32, IpAddr::V4(mask4(it, prefix))),
            IpAddr::V6(it) => (128, IpAddr::V6(mask6(it, prefix))),
        };
        if prefix > most || masked != first { Err(invalid()) } else { Ok(Cidr { first, prefix }) }
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.prefix)
    }
}

fn mask4(address: Ipv4Addr, prefix: u8) -> Ipv4Addr {
    let mask = u32::MAX.checked_shl(32_u32.saturating_sub(prefix.into())).unwrap_or(0);
    Ipv4Addr::from_bits(address.to_bits() & mask)
}

fn mask6(address: Ipv6Addr, prefix: u8) -> Ipv6Addr {
    let mask = u128::MAX.checked_shl(128_u32.saturating_sub(prefix.into())).unwrap_or(0);
    Ipv6Addr::from_bits(address.to_bits() & mask)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_contains_what_shares_its_prefix() {
        let range = Cidr::try_from("10.244.0.0/16").unwrap();
        assert!(range.contains("10.244.255.255".parse().unwrap()));
        assert!(!range.contains("10.245.0.0".parse().unwrap()));
        assert!(!range.contains("fd00::".parse().unwrap()));
        assert!(Cidr::try_from("0.0.0.0/0").unwrap().contains("1.2.3.4".parse().unwrap()));
        assert!(range.overlaps(&Cidr::try_from("10.0.0.0/8").unwrap()));
        assert!(!range.overlaps(&Cidr::try_from("10.96.0.0/12").unwrap()));
    }

    #[test]
    fn a_range_has_no_bits_behind_its_prefix() {
        for bad in ["", "10.0.0.0", "10.0.0.1/8", "10.0.0.0/33", "fd00::1/64", "10.0.0.0/-1", "x/8"]
        {
            assert!(Cidr::try_from(bad).is_err(), "{bad}");
        }
    }
}
