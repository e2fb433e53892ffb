//! Counts refused requests, so that password guessing cannot fill the trail: a few rows stand for any number of refusals.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::{Entry, Outcome};

/// The properties by which refused requests are counted together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Refusal {
    pub status: u16,
    pub source: String,
    /// Empty if the caller did not prove an identity (401).
    pub user_id: String,
    pub user_name: String,
    pub project_id: String,
}

/// The refusals that were counted since the last [`RefusalCounter::drain`].
#[derive(Clone, Debug, Default)]
pub struct RefusalCounter {
    counted: BTreeMap<Refusal, Count>,
}

#[derive(Clone, Copy, Debug)]
struct Count {
    times: u32,
    since: Timestamp,
}

/// At most this many different refusals of one status get a row of their own.
const MAX_ROWS: usize = 64;
/// At most this many of the [`MAX_ROWS`] go to one address, and to one user, so that no caller uses up the rows of the others.
const MAX_ROWS_PER_CALLER: usize = 4;
/// The source named in the row that counts all refusals without a row of their own.
const OTHERS: &str = "others";

impl RefusalCounter {
    /// Counts one refusal.
    pub fn count(&mut self, refusal: Refusal, now: Timestamp) {
        let key = match self.counted.contains_key(&refusal) || self.has_room_for(&refusal) {
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

    /// Returns whether no refusal was counted since the last drain.
    pub fn is_empty(&self) -> bool {
        self.counted.is_empty()
    }

    /// Returns one entry for each kind of refusal, and starts counting anew.
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

    fn has_room_for(&self, new: &Refusal) -> bool {
        let same = self.counted.keys().filter(|it| it.status == new.status);
        let (mut all, mut of_source, mut of_user) = (0, 0, 0);
        for known in same {
            all += 1;
            of_source += usize::from(known.source == new.source);
            of_user += usize::from(!new.user_id.is_empty() && known.user_id == new.user_id);
        }
        all < MAX_ROWS && of_source < MAX_ROWS_PER_CALLER && of_user < MAX_ROWS_PER_CALLER
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

    fn reported(refusals: &mut RefusalCounter) -> Vec<(u16, String, String, u32)> {
        let of = |it: Entry| (it.status, it.source, it.user_id, it.times);
        refusals.drain().into_iter().map(of).collect()
    }

    const T0: Timestamp = Timestamp::UNIX_EPOCH;

    #[test]
    fn any_number_of_guesses_makes_few_rows() {
        let mut refusals = RefusalCounter::default();
        for n in 0..100_000 {
            refusals.count(refusal(401, &format!("192.0.2.{}", n % 1000), ""), T0);
        }
        let rows = refusals.drain();
        assert_eq!(rows.len(), 65);
        assert_eq!(rows.iter().map(|row| row.times).sum::<u32>(), 100_000);
        assert!(refusals.is_empty());
    }

    #[test]
    fn no_caller_uses_up_the_rows_of_others() {
        let mut refusals = RefusalCounter::default();
        for n in 0..1000 {
            // One address that tries many users, and one user that tries from many addresses.
            refusals.count(refusal(403, "192.0.2.1", &format!("u{n}")), T0);
            refusals.count(refusal(403, &format!("198.51.100.{n}"), "eve"), T0);
        }
        refusals.count(refusal(403, "203.0.113.9", "mallory"), T0);
        refusals.count(refusal(401, "203.0.113.9", ""), T0);
        let rows = reported(&mut refusals);
        assert!(rows.contains(&(403, "203.0.113.9".to_owned(), "mallory".to_owned(), 1)));
        assert!(rows.contains(&(401, "203.0.113.9".to_owned(), String::new(), 1)));
        assert_eq!(rows.len(), 4 + 4 + 1 + 1 + 1);
    }

    #[test]
    fn equal_refusals_are_counted_in_one_row() {
        let mut refusals = RefusalCounter::default();
        for _ in 0..3 {
            refusals.count(refusal(401, "192.0.2.1", ""), T0);
        }
        assert_eq!(reported(&mut refusals), [(401, "192.0.2.1".to_owned(), String::new(), 3)]);
    }

    #[test]
    fn a_row_holds_everything_known_of_the_refusals_it_counts() {
        let mut refusals = RefusalCounter::default();
        assert!(refusals.is_empty());
        let refused = Refusal {
            status: 403,
            source: "192.0.2.1".to_owned(),
            user_id: "u1".to_owned(),
            user_name: "ann".to_owned(),
            project_id: "p1".to_owned(),
        };
        let later = Timestamp::from_second(9).unwrap();
        refusals.count(refused.clone(), T0);
        refusals.count(refused, later);
        assert!(!refusals.is_empty());
        let row = Entry {
            outcome: Outcome::Refused,
            status: 403,
            times: 2,
            since: Some(T0),
            request_id: String::new(),
            global_request_id: String::new(),
            user_id: "u1".to_owned(),
            user_name: "ann".to_owned(),
            project_id: "p1".to_owned(),
            roles: String::new(),
            service_user_id: String::new(),
            source: "192.0.2.1".to_owned(),
            method: String::new(),
            route: String::new(),
            target: String::new(),
            action: "Refused".to_owned(),
        };
        assert_eq!(refusals.drain(), [row]);
        assert!(refusals.is_empty());
    }
}
