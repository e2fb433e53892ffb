//! Ranges of IP addresses in CIDR notation.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

use ipnet::{IpNet, Ipv4Net};
use serde::{Deserialize, Serialize};

/// A range of addresses such as `10.0.0.0/24` or `fd00::/64`. No bit after the prefix is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cidr(IpNet);

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
        Cidr(IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)))
    }

    /// Whether the two ranges have an address in common.
    pub fn overlaps(&self, other: &Cidr) -> bool {
        self.0.contains(&other.0) || other.0.contains(&self.0)
    }

    /// Returns the length of the prefix in bits.
    pub fn prefix(&self) -> u8 {
        self.0.prefix_len()
    }

    /// Whether the addresses are IPv4.
    pub fn is_v4(&self) -> bool {
        self.0.addr().is_ipv4()
    }
}

impl From<Cidr> for IpNet {
    fn from(cidr: Cidr) -> IpNet {
        cidr.0
    }
}

impl FromStr for Cidr {
    type Err = InvalidCidr;

    fn from_str(raw: &str) -> Result<Self, InvalidCidr> {
        let read = || {
            let (address, prefix) = raw.split_once('/')?;
            // The parser of `IpNet` reads 010.0.0.0 as 10.0.0.0, which other programs read as 8.0.0.0.
            let prefix = prefix.parse().ok().filter(|_| prefix.len() <= 3)?;
            let range = IpNet::new(address.parse().ok()?, prefix).ok()?;
            (range.trunc() == range).then_some(Cidr(range))
        };
        read().ok_or_else(|| InvalidCidr { raw: raw.chars().take(64).collect() })
    }
}

words::strings!(Cidr);

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
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
        for bad in [
            "10.0.0.1/24",
            "10.0.0.0",
            "10.0.0.0/33",
            "x/8",
            "10.0.0.0/",
            "fd00::1/64",
            "010.0.0.0/8",
        ] {
            assert!(bad.parse::<Cidr>().is_err(), "{bad} passed");
        }
    }

    #[test]
    fn a_range_keeps_its_address_and_prefix() {
        let range: Cidr = "10.1.0.0/16".parse().unwrap();
        assert_eq!(IpNet::from(range).to_string(), "10.1.0.0/16");
        assert_eq!((range.prefix(), range.is_v4()), (16, true));
        let range: Cidr = "fd00::/64".parse().unwrap();
        assert_eq!((range.prefix(), range.is_v4()), (64, false));
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
