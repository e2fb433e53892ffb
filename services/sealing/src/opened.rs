//! A decrypted secret.

use std::fmt;
use std::ops::Deref;

use zeroize::Zeroizing;

use crate::SealError;

/// A decrypted secret. `Debug` prints nothing of the secret, and the bytes are zeroed on drop.
pub struct Opened(Zeroizing<Vec<u8>>);

impl Opened {
    pub(crate) fn new(bytes: Zeroizing<Vec<u8>>) -> Self {
        Opened(bytes)
    }

    /// Returns the secret as UTF-8 text.
    ///
    /// # Errors
    ///
    /// `Broken` if the bytes are not UTF-8: the secret was not sealed as text.
    pub fn text(&self) -> Result<&str, SealError> {
        std::str::from_utf8(&self.0).map_err(|_| SealError::Broken)
    }
}

impl Deref for Opened {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Opened(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_read_as_text_only_if_it_is_text() {
        let opened = |bytes: &[u8]| Opened::new(Zeroizing::new(bytes.to_vec()));
        assert_eq!(opened("geheim ü".as_bytes()).text().unwrap(), "geheim ü");
        assert!(matches!(opened(b"\xff").text(), Err(SealError::Broken)));
    }
}
