//! How many bytes each caller has in flight: bodies that are worked on, and answers that were not taken yet.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

/// Who has how many bytes in flight now; nobody who has none is in it. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flight(Arc<Mutex<HashMap<String, usize>>>);

/// Somebody's bytes, as long as this is kept.
#[derive(Debug)]
pub(crate) struct Held {
    who: String,
    bytes: usize,
    flight: Flight,
}

impl Flight {
    /// Holds `bytes` more for `who`, unless `who` has some already and both together are more than `at_most`. A single one is always
    /// held, however large it is: others' limits are elsewhere.
    pub(crate) fn hold(&self, who: &str, bytes: usize, at_most: usize) -> Option<Held> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let has = all.get(who).copied().unwrap_or_default();
        if has > 0 && has.saturating_add(bytes) > at_most {
            return None;
        }
        *all.entry(who.to_owned()).or_default() += bytes;
        drop(all);
        Some(Held { who: who.to_owned(), bytes, flight: self.clone() })
    }

    /// Holds `bytes` more for `who`, which are there already.
    pub(crate) fn hold_anyway(&self, who: &str, bytes: usize) -> Held {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *all.entry(who.to_owned()).or_default() += bytes;
        drop(all);
        Held { who: who.to_owned(), bytes, flight: self.clone() }
    }
}

impl Held {
    /// The same bytes, held until the last part of them is dropped: until the socket has taken it.
    pub(crate) fn with(self, bytes: Bytes) -> Bytes {
        struct Owned(Bytes, #[expect(dead_code, reason = "it is kept, and counts")] Held);
        impl AsRef<[u8]> for Owned {
            fn as_ref(&self) -> &[u8] {
                &self.0
            }
        }
        Bytes::from_owner(Owned(bytes, self))
    }
}

impl Drop for Held {
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
    fn each_has_so_many_bytes_and_a_single_large_answer_is_let_through() {
        let flight = Flight::default();
        let large = flight.hold("ann", 500, 100).unwrap();
        assert!(flight.hold("ann", 1, 100).is_none());
        let _bobs = flight.hold("bob", 60, 100).unwrap();
        assert!(flight.hold("bob", 41, 100).is_none());
        assert!(flight.hold("bob", 40, 100).is_some());
        drop(large);
        assert_eq!(flight.0.lock().unwrap().len(), 1, "who has none is forgotten");
    }

    #[test]
    fn bytes_count_until_their_last_part_is_gone() {
        let flight = Flight::default();
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
