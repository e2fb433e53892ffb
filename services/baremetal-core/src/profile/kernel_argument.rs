//! A kernel argument, restricted so that no boot loader interprets it in its own way.

use serde::{Deserialize, Serialize};

/// The maximum length of a key and of a value.
const LONGEST: usize = 256;

/// A kernel argument: `KEY` or `KEY=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelArgument {
    /// Letters, digits, `_`, `-` and `.`.
    pub key: String,
    /// The value; `None` writes the key alone.
    #[serde(default)]
    pub value: Option<String>,
}

impl KernelArgument {
    pub(super) fn new(key: &str, value: impl Into<String>) -> Self {
        KernelArgument { key: key.to_owned(), value: Some(value.into()) }
    }

    /// Returns what is wrong with the argument, or `None` if it is valid.
    ///
    /// A value consists of characters that have no meaning in GRUB or in a shell, so that every program reads the same value.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        let word = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-.,:=/+@% ".contains(c);
        if self.key.is_empty() || self.key.len() > LONGEST || !self.key.chars().all(word) {
            return Some("key: must be 1 to 256 letters, digits, '_', '-' and '.'");
        }
        let value = self.value.as_deref().unwrap_or("x");
        let fits = !value.is_empty() && value.len() <= LONGEST && value.chars().all(plain);
        (!fits).then_some("value: must be 1 to 256 letters, digits, blanks and '_-.,:=/+@%'")
    }

    /// Returns the argument as the kernel reads it: a value with blanks is quoted.
    pub fn written(&self) -> String {
        match &self.value {
            None => self.key.clone(),
            Some(value) if value.contains(' ') => format!("{}=\"{value}\"", self.key),
            Some(value) => format!("{}={value}", self.key),
        }
    }
}
