//! Arguments of the kernel, as words that mean the same to iPXE and to Linux.

use std::fmt;

/// `key=value` or `key` on a kernel's command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    key: String,
    value: Option<String>,
}

/// Why a pair cannot be an argument.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidArgument {
    /// Keys are letters, digits, `.`, `_` and `-`, and begin with a letter or digit.
    #[error("{key:?} cannot be the name of a kernel argument")]
    Key {
        /// What was given, cut short.
        key: String,
    },
    /// The value has a character that iPXE or Linux would not take literally.
    #[error("the kernel argument {key} cannot hold {character:?}")]
    Character {
        /// The argument.
        key: String,
        /// The character.
        character: char,
    },
}

impl Argument {
    /// `key=value`.
    ///
    /// White space and control characters would make several words of it. `$` begins an expansion and `#`
    /// can begin a comment in iPXE, a backslash joins lines there, and Linux strips quotes
    /// (`next_arg` in `lib/cmdline.c`). All of these are refused, as is what is not ASCII.
    pub fn new(key: &str, value: &str) -> Result<Self, InvalidArgument> {
        let flag = Argument::flag(key)?;
        let harmful = |c: &char| !c.is_ascii_graphic() || r##"$#\"'`"##.contains(*c);
        match value.chars().find(harmful) {
            Some(character) => Err(InvalidArgument::Character { key: flag.key, character }),
            None => Ok(Argument { value: Some(value.to_owned()), ..flag }),
        }
    }

    /// A `key` alone.
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
