//! How many records and tokens still need each key, and whether a key may be retired.

use crate::{KeyFileError, SealingKeys};

/// A key, and how many records and tokens need the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyUsage {
    pub id: String,
    pub seals: bool,
    /// Whether the key file holds the key. Records of a key that is not held cannot be opened.
    pub held: bool,
    /// How many records the key sealed.
    pub records: u64,
    /// How many servers report with a token derived from the key.
    pub tokens: u64,
}

impl KeyUsage {
    /// Counts the uses of every key: first the keys of the file in file order, then keys that only stored records or tokens name. `stored`
    /// holds the id, the records and the tokens of each key.
    pub fn count(keys: &SealingKeys, stored: &[(String, u64, u64)]) -> Vec<KeyUsage> {
        let one = |id: &str| {
            let found = stored.iter().find(|(known, ..)| known == id);
            let (records, tokens) =
                found.map_or((0, 0), |(_, records, tokens)| (*records, *tokens));
            let (seals, held) = (keys.current() == id, keys.holds(id));
            KeyUsage { id: id.to_owned(), seals, held, records, tokens }
        };
        let lost =
            stored.iter().filter(|(id, records, tokens)| !keys.holds(id) && records + tokens > 0);
        keys.ids().map(one).chain(lost.map(|(id, ..)| one(id))).collect()
    }
}

/// Why a key is not retired. The key file is left as it was.
#[derive(Debug, thiserror::Error)]
pub enum RetireError<E> {
    #[error("there is no key {id}")]
    Unknown { id: String },
    /// The key seals, or records or tokens still need the key.
    #[error("key {id} is still in use: {by}")]
    Needed {
        id: String,
        /// The records or tokens that need the key, and what to do next.
        by: String,
    },
    #[error(transparent)]
    File(KeyFileError),
    /// The store cannot tell how many records need the key.
    #[error(transparent)]
    Store(E),
}

impl<E> RetireError<E> {
    /// Checks that nothing needs the key `id`, according to `keys`.
    pub fn check(keys: &[KeyUsage], id: &str) -> Result<(), Self> {
        let needed = |by: String| Err(RetireError::Needed { id: id.to_owned(), by });
        match keys.iter().find(|key| key.id == id) {
            None => Err(RetireError::Unknown { id: id.to_owned() }),
            Some(key) if key.seals => {
                needed("it is the key that seals; rotate the keys first".to_owned())
            }
            Some(key) if key.records > 0 => needed(format!(
                "{} records are sealed with it; wait until they are re-encrypted",
                key.records
            )),
            Some(key) if key.tokens > 0 => needed(format!(
                "{} servers report with tokens derived from it; retire the key after these servers have been replaced",
                key.tokens
            )),
            Some(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_may_be_retired_once_nothing_needs_it() {
        let key = SealingKeys::generate().unwrap();
        let bytes = key.split_once(':').unwrap().1;
        let lines: String = ["4", "3", "2", "1"].map(|id| format!("{id}:{bytes}")).concat();
        let stored = [("2", 5, 0), ("3", 0, 7), ("9", 1, 0), ("8", 0, 0), ("7", 0, 2)];
        let stored = stored.map(|(id, records, tokens)| (id.to_owned(), records, tokens));
        let keys = KeyUsage::count(&SealingKeys::parse(&lines).unwrap(), &stored);
        let ids: Vec<_> = keys.iter().map(|key| (key.id.as_str(), key.held)).collect();
        let held = ["4", "3", "2", "1"].map(|id| (id, true));
        assert_eq!(ids, [&held[..], &[("9", false), ("7", false)]].concat());
        let check =
            |id| RetireError::<std::fmt::Error>::check(&keys, id).map_err(|why| why.to_string());
        assert_eq!(check("1"), Ok(()));
        for (id, want) in [
            ("4", "key 4 is still in use: it is the key that seals; rotate the keys first"),
            (
                "3",
                "key 3 is still in use: 7 servers report with tokens derived from it; retire the key after these servers have been replaced",
            ),
            (
                "2",
                "key 2 is still in use: 5 records are sealed with it; wait until they are re-encrypted",
            ),
            ("6", "there is no key 6"),
        ] {
            assert_eq!(check(id), Err(want.to_owned()));
        }
    }
}
