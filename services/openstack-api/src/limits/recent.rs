//! A bounded map that forgets the keys not seen for the longest time.

use std::collections::HashMap;
use std::hash::Hash;

/// Holds at most twice `room` entries. An entry is forgotten if `room` other keys were seen since its last use, at the latest after twice
/// as many.
#[derive(Debug)]
pub(crate) struct RecentMap<K, V> {
    room: usize,
    young: HashMap<K, V>,
    old: HashMap<K, V>,
}

impl<K: Eq + Hash + Clone, V> RecentMap<K, V> {
    pub(crate) fn of(room: usize) -> Self {
        RecentMap { room, young: HashMap::new(), old: HashMap::new() }
    }

    /// Returns the value of `key`, made by `make` if the key is unknown.
    pub(crate) fn get(&mut self, key: &K, make: impl FnOnce() -> V) -> &mut V {
        if !self.young.contains_key(key) {
            let known = self.old.remove(key).unwrap_or_else(make);
            if self.young.len() >= self.room {
                self.old = std::mem::take(&mut self.young);
            }
            return self.young.entry(key.clone()).or_insert(known);
        }
        self.young.entry(key.clone()).or_insert_with(make)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_keys_are_remembered_and_the_size_is_bounded() {
        let mut seen = RecentMap::of(10);
        for stranger in 1..10_000 {
            *seen.get(&0, || 0) += 1;
            seen.get(&stranger, || 0);
            assert!(seen.len() <= 20);
        }
        assert_eq!(*seen.get(&0, || 0), 9999);
        assert_eq!(*seen.get(&1, || 7), 7, "it was forgotten");
    }
}
