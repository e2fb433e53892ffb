//! Ranges of IP addresses in CIDR notation.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A range of addresses such as `10.0.0.0/24` or `fd00::/64`. `address` is the first address of the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cidr {
    address: IpAddr,
    prefix: u8,
}

/// The text is not a range of addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{raw:?} is not an address range: write it as 10.0.0.0/24, with the first address of the range"
)]
pub struct InvalidCidr {
    /// The text that was given, cut to 64 characters so that it fits in a message.
    pub raw: String,
}

impl Cidr {
    /// Makes an IPv4 range. `address` must be the first address of the range; this constructor does not check.
    pub const fn v4(address: [u8; 4], prefix: u8) -> Cidr {
        let [a, b, c, d] = address;
        Cidr { address: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), prefix }
    }

    /// Returns the first address of the range.
    pub fn first(&self) -> IpAddr {
        self.address
    }

    /// Whether `address` lies in the range.
    pub fn contains(&self, address: IpAddr) -> bool {
        masked(address, self.prefix) == Some(self.address)
    }

    /// Whether the two ranges have an address in common.
    pub fn overlaps(&self, other: &Cidr) -> bool {
        self.contains(other.address) || other.contains(self.address)
    }

    /// Whether the addresses are IPv4.
    pub fn is_v4(&self) -> bool {
        self.address.is_ipv4()
    }

    /// Returns the length of the prefix in bits.
    pub fn prefix(&self) -> u8 {
        self.prefix
    }
}

/// Returns `address` with all but the first `prefix` bits cleared; `None` when the address has fewer bits than `prefix`.
fn masked(address: IpAddr, prefix: u8) -> Option<IpAddr> {
    Some(match address {
        IpAddr::V4(v4) => {
            let drop = 32u32.checked_sub(prefix.into())?;
            let mask = u32::MAX.checked_shl(drop).unwrap_or(0);
            IpAddr::V4((u32::from(v4) & mask).into())
        }
        IpAddr::V6(v6) => {
            let drop = 128u32.checked_sub(prefix.into())?;
            let mask = u128::MAX.checked_shl(drop).unwrap_or(0);
            IpAddr::V6((u128::from(v6) & mask).into())
        }
    })
}

impl FromStr for Cidr {
    type Err = InvalidCidr;

    fn from_str(raw: &str) -> Result<Self, InvalidCidr> {
        let read = || {
            let (address, prefix) = raw.split_once('/')?;
            let address: IpAddr = address.parse().ok()?;
            let prefix = prefix.parse::<u8>().ok().filter(|_| prefix.len() <= 3)?;
            (masked(address, prefix)? == address).then_some(Cidr { address, prefix })
        };
        read().ok_or_else(|| InvalidCidr { raw: raw.chars().take(64).collect() })
    }
}

impl TryFrom<String> for Cidr {
    type Error = InvalidCidr;

    fn try_from(raw: String) -> Result<Self, InvalidCidr> {
        raw.parse()
    }
}

impl From<Cidr> for String {
    fn from(cidr: Cidr) -> String {
        cidr.to_string()
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_read_and_written() {
        for good in ["10.0.0.0/24", "0.0.0.0/0", "10.1.2.3/32", "fd00::/64", "::/0"] {
            assert_eq!(good.parse::<Cidr>().unwrap().to_string(), good);
        }
        for bad in ["10.0.0.1/24", "10.0.0.0", "10.0.0.0/33", "x/8", "10.0.0.0/", "fd00::1/64"] {
            assert!(bad.parse::<Cidr>().is_err(), "{bad} passed");
        }
    }

    #[test]
    fn ranges_overlap_when_one_contains_the_other() {
        let cidr = |raw: &str| raw.parse::<Cidr>().unwrap();
        assert!(cidr("10.0.0.0/8").overlaps(&cidr("10.1.0.0/16")));
        assert!(cidr("10.1.0.0/16").overlaps(&cidr("10.0.0.0/8")));
        assert!(!cidr("10.1.0.0/16").overlaps(&cidr("10.2.0.0/16")));
        assert!(!cidr("10.1.0.0/16").overlaps(&cidr("fd00::/8")));
    }
}
