//! A decrypted secret.

use std::fmt;
use std::ops::Deref;

use zeroize::Zeroizing;

use crate::SealError;

/// A decrypted secret. `Debug` prints nothing of the secret, and the bytes are zeroed on drop.
pub struct DecryptedSecret(Zeroizing<Vec<u8>>);

impl DecryptedSecret {
    pub(crate) fn new(bytes: Zeroizing<Vec<u8>>) -> Self {
        DecryptedSecret(bytes)
    }

    /// Returns the secret as UTF-8 text.
    ///
    /// # Errors
    ///
    /// `Broken` if the bytes are not UTF-8: the secret was not sealed as text.
    pub fn text(&self) -> Result<&str, SealError> {
        std::str::from_utf8(&self.0).map_err(|_| SealError::CannotOpen)
    }
}

impl Deref for DecryptedSecret {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for DecryptedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DecryptedSecret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_read_as_text_only_if_it_is_text() {
        let opened = |bytes: &[u8]| DecryptedSecret::new(Zeroizing::new(bytes.to_vec()));
        assert_eq!(opened("geheim ü".as_bytes()).text().unwrap(), "geheim ü");
        assert!(matches!(opened(b"\xff").text(), Err(SealError::CannotOpen)));
    }
}
