//! Counts the bytes that each caller has in flight: bodies being processed, and answers not yet read.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

/// The number of bytes in flight for each caller. Callers without bytes have no entry. Clones share the counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct BytesInFlight(Arc<Mutex<HashMap<String, usize>>>);

/// Bytes counted for a caller; the count goes down on drop.
#[derive(Debug)]
pub(crate) struct HeldBytes {
    who: String,
    bytes: usize,
    flight: BytesInFlight,
}

impl BytesInFlight {
    /// Counts `bytes` more for `who`, or returns `None` if the total would exceed `at_most`. A caller without other bytes in flight is
    /// never refused, whatever the size: single bodies and answers have limits of their own.
    pub(crate) fn hold(&self, who: &str, bytes: usize, at_most: usize) -> Option<HeldBytes> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let has = all.get(who).copied().unwrap_or_default();
        if has > 0 && has.saturating_add(bytes) > at_most {
            return None;
        }
        *all.entry(who.to_owned()).or_default() += bytes;
        drop(all);
        Some(HeldBytes { who: who.to_owned(), bytes, flight: self.clone() })
    }

    /// Counts `bytes` more for `who`, whatever the total.
    pub(crate) fn hold_anyway(&self, who: &str, bytes: usize) -> HeldBytes {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *all.entry(who.to_owned()).or_default() += bytes;
        drop(all);
        HeldBytes { who: who.to_owned(), bytes, flight: self.clone() }
    }
}

impl HeldBytes {
    /// Attaches the count to `bytes`: the count goes down when the last part of the bytes is dropped, which is after the socket has taken
    /// it.
    pub(crate) fn with(self, bytes: Bytes) -> Bytes {
        struct Owned(
            Bytes,
            #[expect(dead_code, reason = "held until the bytes are dropped, for its count")]
            HeldBytes,
        );
        impl AsRef<[u8]> for Owned {
            fn as_ref(&self) -> &[u8] {
                &self.0
            }
        }
        Bytes::from_owner(Owned(bytes, self))
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        let mut all = self.flight.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = all.get_mut(&self.who) {
            *bytes = bytes.saturating_sub(self.bytes);
            if *bytes == 0 {
                all.remove(&self.who);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_limited_for_each_caller_but_a_single_large_answer_passes() {
        let flight = BytesInFlight::default();
        let large = flight.hold("ann", 500, 100).unwrap();
        assert!(flight.hold("ann", 1, 100).is_none());
        let _bobs = flight.hold("bob", 60, 100).unwrap();
        assert!(flight.hold("bob", 41, 100).is_none());
        assert!(flight.hold("bob", 40, 100).is_some());
        drop(large);
        assert_eq!(flight.0.lock().unwrap().len(), 1, "who has none is forgotten");
    }

    #[test]
    fn bytes_count_until_their_last_part_is_dropped() {
        let flight = BytesInFlight::default();
        let held = flight.hold("ann", 10, 10).unwrap();
        let mut bytes = held.with(Bytes::from_static(b"0123456789"));
        let first = bytes.split_to(4);
        drop(bytes);
        assert!(flight.hold("ann", 1, 10).is_none());
        assert_eq!(&first[..], b"0123");
        drop(first);
        assert!(flight.hold("ann", 1, 10).is_some());
    }
}
