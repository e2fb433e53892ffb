//! Typed ids of every resource, and the names that users give.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use kinds::*;

mod kinds {
    newtype_uuid_macros::impl_typed_uuid_kinds! {
        kinds = {
            Cluster = {},
            Template = {},
            NodeGroup = {},
            Event = {},
            Ledger = {},
            Claim = {},
            Certificate = {},
            Quota = {},
            Vm = {},
            Snapshot = {},
            Drain = {},
            Backup = {},
        },
    }
}

/// The name of a cluster, a template, a node group or a VM, by Magnum's rule: a letter, then letters, digits, `_`, `.` and `-`, at most 242
/// characters.
///
/// A name never looks like a UUID, so that a path segment is either a name or an id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

/// The text cannot be a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{raw:?} is not a valid name: use at most 242 letters, digits, '_', '.' and '-', begin with a letter, and do not use a UUID"
)]
pub struct InvalidName {
    /// The text that was given, cut to 64 characters so that it fits in a message.
    pub raw: String,
}

impl Name {
    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name as a DNS label (RFC 1123) of at most `longest` characters: other characters become `-`, capital letters lower case.
    pub fn label(&self, longest: usize) -> String {
        let plain = self.0.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
        let label: String = plain.take(longest).collect();
        label.to_ascii_lowercase().trim_end_matches('-').to_owned()
    }
}

impl FromStr for Name {
    type Err = InvalidName;

    fn from_str(raw: &str) -> Result<Self, InvalidName> {
        let legal = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        let begins = raw.chars().next().is_some_and(|c| c.is_ascii_alphabetic());
        if !begins || raw.len() > 242 || !raw.chars().all(legal) || Uuid::parse_str(raw).is_ok() {
            return Err(InvalidName { raw: raw.chars().take(64).collect() });
        }
        Ok(Name(raw.to_owned()))
    }
}

words::strings!(Name);

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How a caller refers to a resource: by its id or by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ident {
    Id(Uuid),
    Name(Name),
}

impl FromStr for Ident {
    type Err = InvalidName;

    fn from_str(raw: &str) -> Result<Self, InvalidName> {
        match Uuid::parse_str(raw) {
            Ok(id) => Ok(Ident::Id(id)),
            Err(_) => Ok(Ident::Name(raw.parse()?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_begins_with_a_letter_and_is_no_uuid() {
        assert!("k8s_test.a-1".parse::<Name>().is_ok());
        for bad in ["", "1a", "a b", "a/b", "ü", "-a", "ac9e6679-7425-40de-944b-e07fc1f90ae7"] {
            assert!(bad.parse::<Name>().is_err(), "{bad:?} passed");
        }
        assert!("n".repeat(242).parse::<Name>().is_ok());
        assert!("n".repeat(243).parse::<Name>().is_err());
    }

    #[test]
    fn a_name_is_a_string_in_json() {
        let name: Name = "k8s_test.a-1".parse().unwrap();
        let json = serde_json::to_string(&name).unwrap();
        assert_eq!(json, "\"k8s_test.a-1\"");
        assert_eq!(serde_json::from_str::<Name>(&json).unwrap(), name);
        assert!(serde_json::from_str::<Name>("\"1a\"").is_err());
    }

    #[test]
    fn a_name_becomes_a_dns_label() {
        let label = |raw: &str, longest| raw.parse::<Name>().unwrap().label(longest);
        assert_eq!(label("My_Cluster.1", 20), "my-cluster-1");
        assert_eq!(label("abc-def", 4), "abc");
    }
}
