//! Mail addresses that receive the notices about a lease.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A mail address in the characters that every mail server accepts (RFC 5321, section 4.1.2, without quoted names). The accepted characters
/// exclude everything that starts a new header line, a second address or a comment, so an address cannot inject headers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MailAddress(String);

/// The error for text that is not exactly one plain mail address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be exactly one mail address, such as ann@example.org")]
pub struct InvalidAddress;

impl MailAddress {
    /// Returns the address as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the part after the `@`.
    pub fn domain(&self) -> &str {
        self.0.rsplit_once('@').map_or("", |(_, domain)| domain)
    }
}

impl FromStr for MailAddress {
    type Err = InvalidAddress;

    fn from_str(raw: &str) -> Result<Self, InvalidAddress> {
        let (name, domain) = raw.rsplit_once('@').ok_or(InvalidAddress)?;
        let is_atom = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c);
        let is_name = |part: &str| !part.is_empty() && part.chars().all(is_atom);
        let is_label = |part: &str| {
            (1..=63).contains(&part.len())
                && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
                && !part.starts_with('-')
                && !part.ends_with('-')
        };
        let fits = name.len() <= 64 && domain.len() <= 253 && raw.len() <= 254;
        let is_right = fits && name.split('.').all(is_name) && domain.split('.').all(is_label);
        is_right.then(|| MailAddress(raw.to_owned())).ok_or(InvalidAddress)
    }
}

impl fmt::Display for MailAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

words::strings!(MailAddress);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        for raw in ["ann@example.org", "a.b+c@localhost", "o'neil@x-1.example.co.uk"] {
            let address: MailAddress = raw.parse().unwrap();
            assert_eq!(address.as_str(), raw);
            assert_eq!(String::from(address), raw);
        }
        assert_eq!("ann@example.org".parse::<MailAddress>().unwrap().domain(), "example.org");
    }

    #[test]
    fn anything_but_one_plain_address_is_refused() {
        let wrong = [
            "",
            "ann",
            "@x.org",
            "ann@",
            "ann@x..org",
            ".ann@x.org",
            "ann.@x.org",
            "a@b@c",
            "ann@-x.org",
            "ann@x.org\r\nBcc: eve@x.org",
            "ann@x.org,eve@x.org",
            "ann <ann@x.org>",
            "\"a b\"@x.org",
            "ann@x.org ",
            "ann(x)@x.org",
            "änn@x.org",
            "ann@[127.0.0.1]",
            "ann@x.org\0",
        ];
        for raw in wrong {
            assert_eq!(raw.parse::<MailAddress>(), Err(InvalidAddress), "{raw:?}");
        }
        let long = format!("{}@x.org", "a".repeat(65));
        assert_eq!(long.parse::<MailAddress>(), Err(InvalidAddress));
    }
}
