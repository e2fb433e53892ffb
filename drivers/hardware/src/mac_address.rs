//! Ethernet (MAC) addresses.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// An EUI-48 address, written as `52:54:00:12:34:56`.
///
/// The parser accepts colons, dashes or nothing between the octets, in either case.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MacAddress([u8; 6]);

/// The text is not six hexadecimal octets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{raw:?} is not a MAC address")]
pub struct InvalidMacAddress {
    /// The text, cut to 64 characters.
    pub raw: String,
}

impl MacAddress {
    /// Makes an address of six octets, in the order of transmission.
    pub const fn new(octets: [u8; 6]) -> Self {
        MacAddress(octets)
    }

    /// The six octets, in the order of transmission.
    pub const fn octets(self) -> [u8; 6] {
        self.0
    }

    /// Whether the address is a group address (IEEE 802: the least significant bit of the first octet), which is
    /// never the address of one machine.
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 == 1
    }
}

impl FromStr for MacAddress {
    type Err = InvalidMacAddress;

    fn from_str(raw: &str) -> Result<Self, InvalidMacAddress> {
        let invalid = || InvalidMacAddress { raw: raw.chars().take(64).collect() };
        let bare: Vec<u8> = match raw.len() {
            12 => raw.bytes().collect(),
            17 => {
                let separator = raw.as_bytes()[2];
                let separated = raw.bytes().skip(2).step_by(3).all(|byte| byte == separator);
                if !separated || !matches!(separator, b':' | b'-') {
                    return Err(invalid());
                }
                raw.bytes()
                    .enumerate()
                    .filter(|(at, _)| at % 3 != 2)
                    .map(|(_, byte)| byte)
                    .collect()
            }
            _ => return Err(invalid()),
        };

        let mut octets = [0; 6];
        for (octet, pair) in octets.iter_mut().zip(bare.chunks(2)) {
            let digit = |byte: u8| (byte as char).to_digit(16).ok_or_else(invalid);
            *octet = (digit(pair[0])? * 16 + digit(pair[1])?) as u8;
        }
        Ok(MacAddress(octets))
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

words::strings!(MacAddress);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(raw: &str, want: Option<&str>) {
        assert_eq!(raw.parse::<MacAddress>().ok().map(|mac| mac.to_string()).as_deref(), want);
    }

    #[test]
    fn every_usual_spelling_is_read() {
        check("52:54:00:AB:cd:01", Some("52:54:00:ab:cd:01"));
        check("52-54-00-ab-cd-01", Some("52:54:00:ab:cd:01"));
        check("525400abcd01", Some("52:54:00:ab:cd:01"));
    }

    #[test]
    fn other_spellings_are_refused() {
        check("", None);
        check("52:54:00:ab:cd", None);
        check("52:54:00:ab:cd:0g", None);
        check("52:54-00:ab:cd:01", None);
        check("52.54.00.ab.cd.01", None);
        check("ü2:54:00:ab:cd:0", None);
    }

    #[test]
    fn an_address_gives_its_octets_and_its_text() {
        let mac: MacAddress = "52:54:00:ab:cd:01".parse().unwrap();
        assert_eq!(mac.octets(), [0x52, 0x54, 0x00, 0xab, 0xcd, 0x01]);
        assert_eq!(String::from(mac), "52:54:00:ab:cd:01");
    }

    #[test]
    fn the_lowest_bit_of_the_first_octet_marks_a_group() {
        for (raw, is_group) in [
            ("ff:ff:ff:ff:ff:ff", true),
            ("01:00:5e:00:00:01", true),
            ("33:33:00:00:00:01", true),
            ("00:16:3e:00:00:01", false),
            ("52:55:01:01:01:01", false),
        ] {
            assert_eq!(raw.parse::<MacAddress>().unwrap().is_multicast(), is_group, "{raw}");
        }
    }

    proptest! {
        #[test]
        fn a_written_address_is_read_back(octets: [u8; 6]) {
            let mac = MacAddress::new(octets);
            prop_assert_eq!(mac.to_string().parse(), Ok(mac));
        }

        #[test]
        fn no_text_panics(raw: String) {
            let _ = raw.parse::<MacAddress>();
        }
    }
}
