//! Counts how many places each of several users holds.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The number of places held by each user. Users without places have no entry. Clones share the counts.
#[derive(Clone, Debug, Default)]
pub struct PlaceCounts(Arc<Mutex<HashMap<String, usize>>>);

/// A place held by a user; the count goes down on drop.
#[derive(Debug)]
pub struct Place {
    who: String,
    crowd: PlaceCounts,
}

impl PlaceCounts {
    /// Gives `who` one more place, unless `who` already holds `at_most`.
    pub fn enter(&self, who: &str, at_most: usize) -> Option<Place> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(who.to_owned()).or_default();
        if *count >= at_most {
            return None;
        }
        *count += 1;
        drop(counts);
        Some(Place { who: who.to_owned(), crowd: self.clone() })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = self.crowd.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.who) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.who);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_user_does_not_use_up_the_places_of_others() {
        let crowd = PlaceCounts::default();
        let places = [crowd.enter("ann", 2).unwrap(), crowd.enter("ann", 2).unwrap()];
        assert!(crowd.enter("ann", 2).is_none());
        let _bob = crowd.enter("bob", 2).unwrap();
        drop(places);
        assert_eq!(crowd.0.lock().unwrap().len(), 1, "who has none is forgotten");
        assert!(crowd.enter("ann", 2).is_some());
    }
}
