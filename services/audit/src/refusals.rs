//! Refusals, counted: who guesses passwords must not be able to fill the trail.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::{Entry, Outcome};

/// A request that was not let in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Refusal {
    /// 401 or 403.
    pub status: u16,
    /// The address it came from.
    pub source: String,
    /// Who it was, where that was proven.
    pub user_id: String,
    /// Their name.
    pub user_name: String,
    /// The project that their token is valid in.
    pub project_id: String,
}

/// The refusals of a while.
#[derive(Clone, Debug, Default)]
pub struct Refusals {
    counted: BTreeMap<Refusal, Count>,
}

#[derive(Clone, Copy, Debug)]
struct Count {
    times: u32,
    since: Timestamp,
}

/// So many kinds of refusals of each status have a row of their own.
const PLACES: usize = 64;
/// So many of these may be from one address, and so many of one user: nobody takes the others' places.
const PLACES_OF_ONE: usize = 4;
/// The source that stands for all that found no place.
const OTHERS: &str = "others";

impl Refusals {
    /// Counts one more.
    pub fn count(&mut self, refusal: Refusal, now: Timestamp) {
        let key = match self.counted.contains_key(&refusal) || self.has_place(&refusal) {
            true => refusal,
            false => Refusal {
                status: refusal.status,
                source: OTHERS.to_owned(),
                user_id: String::new(),
                user_name: String::new(),
                project_id: String::new(),
            },
        };
        let count = self.counted.entry(key).or_insert(Count { times: 0, since: now });
        count.times = count.times.saturating_add(1);
    }

    /// Whether none was counted.
    pub fn is_empty(&self) -> bool {
        self.counted.is_empty()
    }

    /// What there is to record of those that were counted, which are then forgotten.
    pub fn drain(&mut self) -> Vec<Entry> {
        let counted = std::mem::take(&mut self.counted);
        let entry = |(refusal, count): (Refusal, Count)| Entry {
            status: refusal.status,
            times: count.times,
            since: Some(count.since),
            user_id: refusal.user_id,
            user_name: refusal.user_name,
            project_id: refusal.project_id,
            source: refusal.source,
            action: "Refused".to_owned(),
            ..Entry::new(Outcome::Refused)
        };
        counted.into_iter().map(entry).collect()
    }

    fn has_place(&self, new: &Refusal) -> bool {
        let same = self.counted.keys().filter(|it| it.status == new.status);
        let (mut all, mut of_source, mut of_user) = (0, 0, 0);
        for known in same {
            all += 1;
            of_source += usize::from(known.source == new.source);
            of_user += usize::from(!new.user_id.is_empty() && known.user_id == new.user_id);
        }
        all < PLACES && of_source < PLACES_OF_ONE && of_user < PLACES_OF_ONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(status: u16, source: &str, user: &str) -> Refusal {
        Refusal {
            status,
            source: source.to_owned(),
            user_id: user.to_owned(),
            user_name: String::new(),
            project_id: String::new(),
        }
    }

    fn told(refusals: &mut Refusals) -> Vec<(u16, String, String, u32)> {
        let of = |it: Entry| (it.status, it.source, it.user_id, it.times);
        refusals.drain().into_iter().map(of).collect()
    }

    const T0: Timestamp = Timestamp::UNIX_EPOCH;

    #[test]
    fn however_many_guess_there_are_few_rows() {
        let mut refusals = Refusals::default();
        for n in 0..100_000 {
            refusals.count(refusal(401, &format!("192.0.2.{}", n % 1000), ""), T0);
        }
        let rows = refusals.drain();
        assert_eq!(rows.len(), 65);
        assert_eq!(rows.iter().map(|row| row.times).sum::<u32>(), 100_000);
        assert!(refusals.is_empty());
    }

    #[test]
    fn nobody_takes_the_places_of_others() {
        let mut refusals = Refusals::default();
        for n in 0..1000 {
            // One address with many names, and one name from many addresses.
            refusals.count(refusal(403, "192.0.2.1", &format!("u{n}")), T0);
            refusals.count(refusal(403, &format!("198.51.100.{n}"), "eve"), T0);
        }
        refusals.count(refusal(403, "203.0.113.9", "mallory"), T0);
        refusals.count(refusal(401, "203.0.113.9", ""), T0);
        let rows = told(&mut refusals);
        assert!(rows.contains(&(403, "203.0.113.9".to_owned(), "mallory".to_owned(), 1)));
        assert!(rows.contains(&(401, "203.0.113.9".to_owned(), String::new(), 1)));
        assert_eq!(rows.len(), 4 + 4 + 1 + 1 + 1);
    }

    #[test]
    fn the_same_is_counted_together() {
        let mut refusals = Refusals::default();
        for _ in 0..3 {
            refusals.count(refusal(401, "192.0.2.1", ""), T0);
        }
        assert_eq!(told(&mut refusals), [(401, "192.0.2.1".to_owned(), String::new(), 3)]);
    }
}
