//! Names of clusters and members.

use std::fmt;

/// A name that fits a host and a Kubernetes node: a label of RFC 1123, lower case, at most 63 characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(String);

/// Why a text is not a valid name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{raw}` is not a valid name: use 1 to 63 of a-z, 0-9 and `-`, without a `-` at either end"
)]
pub struct InvalidName {
    pub raw: String,
}

impl Name {
    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Name {
    type Error = InvalidName;

    fn try_from(raw: String) -> Result<Self, InvalidName> {
        let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let edges = raw.starts_with('-') || raw.ends_with('-');
        if raw.is_empty() || raw.len() > 63 || edges || !raw.chars().all(legal) {
            return Err(InvalidName { raw });
        }
        Ok(Name(raw))
    }
}

impl TryFrom<&str> for Name {
    type Error = InvalidName;

    fn try_from(raw: &str) -> Result<Self, InvalidName> {
        raw.to_owned().try_into()
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_label_of_a_host_name() {
        for good in ["a", "node-1", "0", &"x".repeat(63)] {
            assert_eq!(Name::try_from(good).as_ref().map(Name::as_str), Ok(good));
        }
        for bad in ["", "-a", "a-", "A", "a.b", "a b", "a\n", "ä", &"x".repeat(64)] {
            assert!(Name::try_from(bad).is_err(), "{bad}");
        }
    }
}
