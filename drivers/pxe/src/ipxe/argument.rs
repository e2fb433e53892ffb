//! Kernel arguments, restricted to words that iPXE and Linux read in the same way.

use std::fmt;

/// An argument on a kernel's command line: `key=value` or `key`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    key: String,
    value: Option<String>,
}

/// The reasons why a pair cannot be a kernel argument.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidArgument {
    /// A key consists of letters, digits, `.`, `_` and `-`, and begins with a letter or digit.
    #[error("{key:?} cannot be the name of a kernel argument")]
    Key {
        /// The key, cut to 64 characters.
        key: String,
    },
    /// The value has a character that iPXE or Linux would not read literally.
    #[error("the kernel argument {key} cannot hold {character:?}")]
    Character { key: String, character: char },
}

impl Argument {
    /// Makes an argument `key=value`.
    ///
    /// White space and control characters would split the value into several words. In iPXE `$` begins an expansion, `#` can begin a
    /// comment and a backslash joins lines, and Linux strips quotes (`next_arg` in `lib/cmdline.c`). All these characters are refused, and
    /// all that are not ASCII.
    pub fn new(key: &str, value: &str) -> Result<Self, InvalidArgument> {
        let flag = Argument::flag(key)?;
        let harmful = |c: &char| !c.is_ascii_graphic() || r##"$#\"'`"##.contains(*c);
        match value.chars().find(harmful) {
            Some(character) => Err(InvalidArgument::Character { key: flag.key, character }),
            None => Ok(Argument { value: Some(value.to_owned()), ..flag }),
        }
    }

    /// Makes an argument without a value.
    pub fn flag(key: &str) -> Result<Self, InvalidArgument> {
        let legal = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if !key.starts_with(|c: char| c.is_ascii_alphanumeric()) || !key.chars().all(legal) {
            return Err(InvalidArgument::Key { key: key.chars().take(64).collect() });
        }
        Ok(Argument { key: key.to_owned(), value: None })
    }
}

impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Some(value) => write!(f, "{}={value}", self.key),
            None => f.write_str(&self.key),
        }
    }
}
