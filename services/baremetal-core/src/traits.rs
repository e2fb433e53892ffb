//! Traits: the capabilities of a node that allocations can ask for.

use serde::{Deserialize, Serialize};

/// The standard traits, those of os-traits 3.9.0. Ironic and Placement refuse every other name without `CUSTOM_`.
const STANDARD: &str = include_str!("traits/standard.txt");

/// A trait: a standard one such as `HW_CPU_X86_VMX`, or `CUSTOM_` followed by a word.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Trait(String);

/// The error for text that is not a trait.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{raw:?} is not a valid trait: use a standard trait such as HW_CPU_X86_VMX, or CUSTOM_ and capital letters, digits and '_', up to 255 characters"
)]
pub struct InvalidTrait {
    /// The text that was given, cut to 64 characters for the message.
    pub raw: String,
}

impl TryFrom<String> for Trait {
    type Error = InvalidTrait;

    fn try_from(raw: String) -> Result<Self, InvalidTrait> {
        let legal = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
        let is_word = |word: &str| !word.is_empty() && word.bytes().all(legal);
        let is_custom = raw.len() <= 255 && raw.strip_prefix("CUSTOM_").is_some_and(is_word);
        if is_custom || STANDARD.lines().any(|standard| standard == raw) {
            return Ok(Trait(raw));
        }
        Err(InvalidTrait { raw: raw.chars().take(64).collect() })
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
    fn only_standard_names_and_custom_words_are_traits() {
        for good in ["CUSTOM_GPU", "HW_CPU_X86_VMX", "COMPUTE_NODE", "STORAGE_DISK_SSD", "CUSTOM_2"]
        {
            assert!(Trait::try_from(good.to_owned()).is_ok(), "{good}");
        }
        for bad in [
            "",
            "CUSTOM_",
            "custom_gpu",
            "CUSTOM_A B",
            "CUSTOM_Ä",
            "HW_GPU",
            "HW_CPU_X86_VMX\n",
            "HW_CPU_X86_VMX\nHW_CPU_X86_AVX",
            "GPU",
        ] {
            assert!(Trait::try_from(bad.to_owned()).is_err(), "{bad:?}");
        }
        let most = format!("CUSTOM_{}", "A".repeat(248));
        assert_eq!(Trait::try_from(most.clone()).map(String::from), Ok(most.clone()));
        assert!(Trait::try_from(most + "A").is_err());
    }
}
