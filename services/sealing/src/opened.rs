//! A secret that was opened.

use std::fmt;
use std::ops::Deref;

use zeroize::Zeroizing;

use crate::SealError;

/// A secret that was opened: prints nothing, and is zeroed when it is dropped.
pub struct Opened(Zeroizing<Vec<u8>>);

impl Opened {
    pub(crate) fn new(bytes: Zeroizing<Vec<u8>>) -> Self {
        Opened(bytes)
    }

    /// The secret as text.
    ///
    /// # Errors
    ///
    /// `Broken`, where it is none: it was not sealed as text.
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
