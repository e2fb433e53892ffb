//! A buffer with the last bytes of a console's output.

use std::collections::VecDeque;

use bytes::Bytes;

/// The last bytes of a stream.
#[derive(Debug, Default)]
pub(super) struct Ring(VecDeque<u8>);

impl Ring {
    /// The size of the buffer in bytes: some screens, and most of a boot.
    pub(super) const SIZE: usize = 64 << 10;

    /// Appends bytes, and drops the oldest ones beyond the size.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let new = bytes.get(bytes.len().saturating_sub(Ring::SIZE)..).unwrap_or_default();
        let over = (self.0.len() + new.len()).saturating_sub(Ring::SIZE);
        self.0.drain(..over);
        self.0.extend(new);
    }

    /// Returns the bytes in order.
    pub(super) fn kept(&self) -> Bytes {
        self.0.iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_bytes_are_kept_in_order() {
        let mut ring = Ring::default();
        ring.push(b"first ");
        ring.push(b"second");
        assert_eq!(ring.kept(), "first second");
        ring.push(&vec![b'x'; Ring::SIZE - 3]);
        assert_eq!(ring.kept().len(), Ring::SIZE);
        assert!(ring.kept().starts_with(b"ondx"));
        let mut much = vec![b'y'; Ring::SIZE + 10];
        much.extend(b"end");
        ring.push(&much);
        assert_eq!(ring.kept().len(), Ring::SIZE);
        assert!(ring.kept().ends_with(b"yend"));
    }
}
