//! Whether the key file holds the keys that a database needs.

use crate::SealingKeys;

/// A key that a database has registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisteredKey {
    pub id: String,
    /// The canary that [`SealingKeys::canary`] made when the key was registered. `None` if an earlier version registered the key.
    pub canary: Option<String>,
    /// How many records the key sealed, plus how many servers hold a token derived from the key.
    pub needed: u64,
    /// Place and text of one record that the key sealed. The record replaces the canary if there is no canary.
    pub sample: Option<(String, String)>,
}

/// Why the key file does not fit the database.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyMismatch {
    #[error(
        "the key file does not hold key {id}, which sealed {needed} records in the database: restore the key file that holds this key"
    )]
    Missing {
        id: String,
        /// How many records the key sealed.
        needed: u64,
    },
    #[error(
        "the key {id} in the file is not the key {id} that sealed {needed} records in the database: restore the key file that belongs to this database"
    )]
    Another {
        id: String,
        /// How many records the key sealed.
        needed: u64,
    },
}

impl RegisteredKey {
    /// Whether the file's key with this id is the key that the database knows. With neither canary nor sample the id is all there is to
    /// compare, and is trusted.
    fn is_in(&self, keys: &SealingKeys) -> bool {
        match (&self.canary, &self.sample) {
            (Some(canary), _) => keys.opens_canary(&self.id, canary),
            (None, Some((place, sealed))) => keys.open(place, sealed).is_ok(),
            (None, None) => true,
        }
    }
}

impl SealingKeys {
    /// Checks that these keys include every key that sealed something in the database. Canaries and samples prove that a key is the same
    /// key.
    ///
    /// # Errors
    ///
    /// Returns the first needed key that is missing, or that differs from the key with the same id.
    pub fn check(&self, known: &[RegisteredKey]) -> Result<(), KeyMismatch> {
        for key in known.iter().filter(|key| key.needed > 0) {
            let (id, needed) = (key.id.clone(), key.needed);
            if !self.holds(&key.id) {
                return Err(KeyMismatch::Missing { id, needed });
            }
            if !key.is_in(self) {
                return Err(KeyMismatch::Another { id, needed });
            }
        }
        Ok(())
    }

    /// Returns id and canary of each key whose canary the database has to store. A canary is missing if an earlier version registered the
    /// key, or stale if the id once belonged to another key, by which nothing is sealed any more.
    pub fn missing_canaries(&self, known: &[RegisteredKey]) -> Vec<(String, String)> {
        let stale = |key: &&RegisteredKey| {
            !key.canary.as_ref().is_some_and(|canary| self.opens_canary(&key.id, canary))
        };
        let made = |key: &RegisteredKey| Some((key.id.clone(), self.canary(&key.id)?));
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

    fn known(id: &str, by: Option<&SealingKeys>, needed: u64) -> RegisteredKey {
        let canary = by.map(|keys| keys.canary(id).unwrap());
        RegisteredKey { id: id.to_owned(), canary, needed, sample: None }
    }

    #[test]
    fn a_file_that_lacks_a_needed_key_is_refused() {
        let (ours, other) = (keys(&["2", "1"]), keys(&["1"]));
        let both = [known("1", Some(&ours), 3), known("2", Some(&ours), 1)];
        assert_eq!(ours.check(&both), Ok(()));
        let another = KeyMismatch::Another { id: "1".to_owned(), needed: 3 };
        assert_eq!(other.check(&both), Err(another.clone()));
        let missing = KeyMismatch::Missing { id: "2".to_owned(), needed: 1 };
        assert_eq!(other.check(&both[1..]), Err(missing));
        // A key that sealed nothing may be lost.
        assert_eq!(other.check(&[known("1", Some(&ours), 0), known("9", None, 0)]), Ok(()));
        // A sealed record proves the key if an earlier version stored no canary.
        let sample = |keys: &SealingKeys| Some(("p".to_owned(), keys.seal("p", b"s").unwrap()));
        let old = RegisteredKey { sample: sample(&keys(&["1"])), ..known("1", None, 3) };
        assert_eq!(other.check(std::slice::from_ref(&old)), Err(another));
        let old = RegisteredKey { sample: sample(&other), ..old };
        assert_eq!(other.check(&[old]), Ok(()));
    }

    #[test]
    fn missing_and_stale_canaries_are_made_anew() {
        let (ours, other) = (keys(&["2", "1"]), keys(&["1"]));
        let all = [known("1", Some(&other), 0), known("2", Some(&ours), 5), known("9", None, 0)];
        let made = ours.missing_canaries(&all);
        assert_eq!(made.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), ["1"]);
        assert!(ours.opens_canary("1", &made[0].1));
    }
}
