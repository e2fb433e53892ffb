//! Traits: the capabilities of a node that allocations can ask for.

use serde::{Deserialize, Serialize};

/// A trait: a standard one such as `HW_CPU_X86_VMX`, or `CUSTOM_` followed by any word.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Trait(String);

/// The error for text that is not a trait.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{raw:?} is not a valid trait: use up to 255 capital letters, digits and '_', starting with a letter, as in CUSTOM_GPU"
)]
pub struct InvalidTrait {
    /// The text that was given, cut to 64 characters for the message.
    pub raw: String,
}

impl TryFrom<String> for Trait {
    type Error = InvalidTrait;

    fn try_from(raw: String) -> Result<Self, InvalidTrait> {
        let legal = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
        let begins = raw.as_bytes().first().is_some_and(u8::is_ascii_uppercase);
        if !begins || raw.len() > 255 || !raw.bytes().all(legal) || raw == "CUSTOM_" {
            return Err(InvalidTrait { raw: raw.chars().take(64).collect() });
        }
        Ok(Trait(raw))
    }
}

impl From<Trait> for String {
    fn from(name: Trait) -> String {
        name.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_upper_case_words_are_traits() {
        for good in ["CUSTOM_GPU", "HW_CPU_X86_VMX", "CUSTOM_2"] {
            assert!(Trait::try_from(good.to_owned()).is_ok(), "{good}");
        }
        for bad in ["", "CUSTOM_", "custom_gpu", "A B", "_A", "1A", "CUSTOM_Ä"] {
            assert!(Trait::try_from(bad.to_owned()).is_err(), "{bad}");
        }
        let most = "A".repeat(255);
        assert_eq!(Trait::try_from(most.clone()).map(String::from), Ok(most));
        assert!(Trait::try_from("A".repeat(256)).is_err());
    }
}
