//! A new key, before it seals.

use std::fmt;

use zeroize::Zeroizing;

use crate::{SealError, SealingKeys};

/// A new key. `Debug` prints only its id.
pub struct NewKey {
    /// The fingerprint of the key.
    pub id: String,
    /// The line of the key in a key file.
    pub(crate) line: Zeroizing<String>,
}

impl NewKey {
    /// Makes a random key.
    pub fn generate() -> Result<NewKey, SealError> {
        NewKey::of(&SealingKeys::generate()?)
    }

    /// Reads the text of a key file with one key.
    pub(crate) fn of(text: &str) -> Result<NewKey, SealError> {
        let id = SealingKeys::parse(text)?.current().to_owned();
        Ok(NewKey { id, line: Zeroizing::new(text.to_owned()) })
    }
}

impl fmt::Debug for NewKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NewKey({})", self.id)
    }
}
