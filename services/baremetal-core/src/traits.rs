//! What a node can be said to be capable of.

use serde::{Deserialize, Serialize};

/// A trait: `HW_CPU_X86_VMX`, or `CUSTOM_` and a word of one's own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Trait(String);

/// The text is no trait.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{raw:?} is no trait: it must have up to 255 capital letters, digits and '_', a letter first, as in CUSTOM_GPU"
)]
pub struct InvalidTrait {
    /// What was given, cut to a length fit for a message.
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
    fn only_capital_words_are_traits() {
        for good in ["CUSTOM_GPU", "HW_CPU_X86_VMX", "CUSTOM_2"] {
            assert!(Trait::try_from(good.to_owned()).is_ok(), "{good}");
        }
        for bad in ["", "CUSTOM_", "custom_gpu", "A B", "_A", "1A", "CUSTOM_Ä"] {
            assert!(Trait::try_from(bad.to_owned()).is_err(), "{bad}");
        }
        assert!(Trait::try_from("A".repeat(256)).is_err());
    }
}
