//! How many places each of several people has.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Who has how many places now; nobody who has none is in it. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Crowd(Arc<Mutex<HashMap<String, usize>>>);

/// Somebody's place, as long as it is kept.
#[derive(Debug)]
pub struct Place {
    who: String,
    crowd: Crowd,
}

impl Crowd {
    /// One more place for `who`, unless it has `at_most` already.
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
    fn one_does_not_take_the_others_places() {
        let crowd = Crowd::default();
        let places = [crowd.enter("ann", 2).unwrap(), crowd.enter("ann", 2).unwrap()];
        assert!(crowd.enter("ann", 2).is_none());
        let _bob = crowd.enter("bob", 2).unwrap();
        drop(places);
        assert_eq!(crowd.0.lock().unwrap().len(), 1, "who has none is forgotten");
        assert!(crowd.enter("ann", 2).is_some());
    }
}
