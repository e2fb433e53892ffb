//! Whether the key file holds the keys that a database needs.

use crate::SealingKeys;

/// What a database knows of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownKey {
    /// Its id.
    pub id: String,
    /// What [`SealingKeys::canary`] made when the database was told of the key; none, where an earlier version told it.
    pub canary: Option<String>,
    /// How many records are sealed by it, and how many machines show what was derived from it.
    pub needed: u64,
    /// The place and the text of one record that it sealed, which stands in for the canary where there is none.
    pub sample: Option<(String, String)>,
}

/// Why the key file is not the one that a database needs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LostKey {
    /// It does not hold a key.
    #[error(
        "it does not hold the key {id}, by which {needed} records in the database are sealed: put the key file back that holds it"
    )]
    Missing {
        /// Which key.
        id: String,
        /// How many records need it.
        needed: u64,
    },
    /// It holds another key with the same id.
    #[error(
        "its key {id} is not the key {id} by which {needed} records in the database are sealed: put the key file back that the database was used with"
    )]
    Another {
        /// Which key.
        id: String,
        /// How many records need it.
        needed: u64,
    },
}

impl KnownKey {
    /// Whether the key of this id in the file is the one that the database knows. One of which nothing proves it is taken for it.
    fn is_in(&self, keys: &SealingKeys) -> bool {
        match (&self.canary, &self.sample) {
            (Some(canary), _) => keys.opens_canary(&self.id, canary),
            (None, Some((place, sealed))) => keys.open(place, sealed).is_ok(),
            (None, None) => true,
        }
    }
}

impl SealingKeys {
    /// Whether these keys open all that a database holds, as far as canaries tell.
    ///
    /// # Errors
    ///
    /// The first key that is missing or another, of those that something needs.
    pub fn check(&self, known: &[KnownKey]) -> Result<(), LostKey> {
        for key in known.iter().filter(|key| key.needed > 0) {
            let (id, needed) = (key.id.clone(), key.needed);
            if !self.holds(&key.id) {
                return Err(LostKey::Missing { id, needed });
            }
            if !key.is_in(self) {
                return Err(LostKey::Another { id, needed });
            }
        }
        Ok(())
    }

    /// The ids and canaries that a database lacks: of keys that an earlier version registered, and of ids that another key had, by which nothing
    /// is sealed any more.
    pub fn missing_canaries(&self, known: &[KnownKey]) -> Vec<(String, String)> {
        let stale = |key: &&KnownKey| {
            !key.canary.as_ref().is_some_and(|canary| self.opens_canary(&key.id, canary))
        };
        let made = |key: &KnownKey| Some((key.id.clone(), self.canary(&key.id)?));
        known.iter().filter(stale).filter_map(made).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(ids: &[&str]) -> SealingKeys {
        let line = |id: &&str| {
            let made = SealingKeys::generate().unwrap();
            format!("{id}:{}", made.split_once(':').unwrap().1)
        };
        SealingKeys::parse(&ids.iter().map(line).collect::<String>()).unwrap()
    }

    fn known(id: &str, by: Option<&SealingKeys>, needed: u64) -> KnownKey {
        let canary = by.map(|keys| keys.canary(id).unwrap());
        KnownKey { id: id.to_owned(), canary, needed, sample: None }
    }

    #[test]
    fn a_file_without_a_key_that_something_needs_is_refused() {
        let (ours, other) = (keys(&["2", "1"]), keys(&["1"]));
        let both = [known("1", Some(&ours), 3), known("2", Some(&ours), 1)];
        assert_eq!(ours.check(&both), Ok(()));
        let another = LostKey::Another { id: "1".to_owned(), needed: 3 };
        assert_eq!(other.check(&both), Err(another.clone()));
        let missing = LostKey::Missing { id: "2".to_owned(), needed: 1 };
        assert_eq!(other.check(&both[1..]), Err(missing));
        // What nobody needs may be lost.
        assert_eq!(other.check(&[known("1", Some(&ours), 0), known("9", None, 0)]), Ok(()));
        // A record stands in for a canary that an earlier version did not write.
        let sample = |keys: &SealingKeys| Some(("p".to_owned(), keys.seal("p", b"s").unwrap()));
        let old = KnownKey { sample: sample(&keys(&["1"])), ..known("1", None, 3) };
        assert_eq!(other.check(std::slice::from_ref(&old)), Err(another));
        let old = KnownKey { sample: sample(&other), ..old };
        assert_eq!(other.check(&[old]), Ok(()));
    }

    #[test]
    fn canaries_are_made_where_there_is_none_that_opens() {
        let (ours, other) = (keys(&["2", "1"]), keys(&["1"]));
        let all = [known("1", Some(&other), 0), known("2", Some(&ours), 5), known("9", None, 0)];
        let made = ours.missing_canaries(&all);
        assert_eq!(made.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), ["1"]);
        assert!(ours.opens_canary("1", &made[0].1));
    }
}
