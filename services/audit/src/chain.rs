//! Verifies that the rows of a trail are complete, unchanged and in the order they were written.

use std::fmt;

use crate::hash::Head;
use crate::{Hash, Row};

/// Verifies a trail row by row, starting at row 1.
#[derive(Clone, Debug)]
pub struct Chain {
    head: Head,
    count: u64,
    known: Vec<Head>,
}

/// Where a trail differs from the trail that was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("row {number} {fault}")]
pub struct Broken {
    /// The number of the first wrong row.
    pub number: i64,
    pub fault: Fault,
}

/// How a row differs from the row that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No row has this number, or another row stands in its place.
    Missing,
    /// The hash does not fit the fields of the row.
    Changed,
    /// The row does not name the hash of the row before it.
    WrongPrevious,
    /// The hashes in the row are not valid hashes.
    Unreadable,
    /// The hash differs from the hash that the caller knew from elsewhere.
    Replaced,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::Missing => "is missing",
            Fault::Changed => "was changed: its hash does not match its fields",
            Fault::WrongPrevious => {
                "does not follow the row before it: one of the two rows was replaced"
            }
            Fault::Unreadable => "was changed: its fields cannot be read",
            Fault::Replaced => "was replaced: its hash differs from the known hash",
        })
    }
}

impl Default for Chain {
    fn default() -> Self {
        Chain { head: Head::NONE, count: 0, known: Vec::new() }
    }
}

impl Chain {
    /// Adds a row that the trail must contain. The caller knows the row from elsewhere, for example from a head written down earlier.
    pub fn expecting(mut self, row: Head) -> Self {
        self.known.push(row);
        self
    }

    /// The last row that was verified.
    pub fn head(&self) -> Head {
        self.head
    }

    /// How many rows were verified.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Verifies `row` as the next row of the trail.
    ///
    /// # Errors
    ///
    /// Returns the fault if `row` is not the row that was written next.
    pub fn follow(&mut self, row: &Row) -> Result<(), Broken> {
        let number = self.head.number.saturating_add(1);
        let broken = |fault| Err(Broken { number, fault });
        if row.number != number {
            return broken(Fault::Missing);
        }
        let (Ok(previous), Ok(hash)) = (row.previous.parse::<Hash>(), row.hash.parse::<Hash>())
        else {
            return broken(Fault::Unreadable);
        };
        if hash != row.digest() {
            return broken(Fault::Changed);
        }
        if previous != self.head.hash {
            return broken(Fault::WrongPrevious);
        }
        let head = Head { number, hash };
        if self.known.iter().any(|known| known.number == number && *known != head) {
            return broken(Fault::Replaced);
        }
        self.head = head;
        self.count += 1;
        Ok(())
    }

    /// Declares the end of the trail and returns its head.
    ///
    /// # Errors
    ///
    /// Returns `Missing` if a row that the trail must contain was not reached: the end was cut off.
    pub fn end(&self) -> Result<Head, Broken> {
        let missing = self.known.iter().any(|known| known.number > self.head.number);
        match missing {
            true => {
                let number = self.head.number.saturating_add(1);
                Err(Broken { number, fault: Fault::Missing })
            }
            false => Ok(self.head),
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::{Entry, Outcome};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn rows(count: i64) -> Vec<Row> {
        let mut head = Head::NONE;
        let rows = (1..=count).map(|number| {
            let mut entry = Entry::new(Outcome::Asked);
            entry.request_id = format!("req-{number}");
            entry.since = (number == 2).then(|| at(1));
            let row = Row::after(head, "clusterd", entry, at(number));
            head = Head { number, hash: row.hash.parse().unwrap() };
            row
        });
        rows.collect()
    }

    fn verify(rows: &[Row]) -> Result<Head, Broken> {
        let mut chain = Chain::default();
        rows.iter().try_for_each(|row| chain.follow(row))?;
        Ok(chain.head())
    }

    #[track_caller]
    fn finds(rows: &[Row], number: i64, fault: Fault) {
        assert_eq!(verify(rows), Err(Broken { number, fault }));
    }

    /// Changes one field each; the text fields get a longer text.
    fn changes() -> Vec<fn(&mut Row)> {
        fn other(text: &mut String) {
            text.push('x');
        }
        vec![
            |row| row.at = at(99),
            |row| other(&mut row.service),
            |row| other(&mut row.outcome),
            |row| row.status += 1,
            |row| row.times += 1,
            |row| row.since = row.since.is_none().then(|| at(0)),
            |row| other(&mut row.request_id),
            |row| other(&mut row.global_request_id),
            |row| other(&mut row.user_id),
            |row| other(&mut row.user_name),
            |row| other(&mut row.project_id),
            |row| other(&mut row.roles),
            |row| other(&mut row.service_user_id),
            |row| other(&mut row.source),
            |row| other(&mut row.method),
            |row| other(&mut row.route),
            |row| other(&mut row.target),
            |row| other(&mut row.action),
            |row| row.previous = "ab".repeat(32),
            |row| row.hash = "ab".repeat(32),
        ]
    }

    #[test]
    fn an_untouched_trail_is_verified_to_its_end() {
        let rows = rows(4);
        let head = verify(&rows).unwrap();
        assert_eq!((head.number, head.hash.to_string()), (4, rows[3].hash.clone()));
        assert_eq!(verify(&[]), Ok(Head::NONE));
    }

    #[test]
    fn the_verified_rows_are_counted() {
        let mut chain = Chain::default();
        assert_eq!(chain.count(), 0);
        rows(3).iter().try_for_each(|row| chain.follow(row)).unwrap();
        assert_eq!(chain.count(), 3);
        // A refused row is not counted.
        chain.follow(&rows(1)[0]).unwrap_err();
        assert_eq!(chain.count(), 3);
    }

    #[test]
    fn a_change_of_any_field_is_found() {
        for change in changes() {
            for which in [0, 1, 3] {
                let mut rows = rows(4);
                change(&mut rows[which]);
                finds(&rows, which as i64 + 1, Fault::Changed);
            }
        }
        let mut rows = rows(1);
        rows[0].hash = "x".to_owned();
        finds(&rows, 1, Fault::Unreadable);
        // A row with the number of another row counts as missing.
        rows[0].number = 2;
        finds(&rows, 1, Fault::Missing);
    }

    #[test]
    fn text_moved_from_one_field_to_the_next_changes_the_hash() {
        let mut rows = rows(1);
        (rows[0].user_id, rows[0].user_name) = ("ab".to_owned(), "c".to_owned());
        let one = rows[0].digest();
        (rows[0].user_id, rows[0].user_name) = ("a".to_owned(), "bc".to_owned());
        assert_ne!(one, rows[0].digest());
    }

    #[test]
    fn a_removed_inserted_or_moved_row_is_found() {
        let whole = rows(5);
        let mut cut = whole.clone();
        cut.remove(2);
        finds(&cut, 3, Fault::Missing);
        let mut swapped = whole.clone();
        swapped.swap(1, 2);
        finds(&swapped, 2, Fault::Missing);
        // With corrected numbers, the fields no longer fit their hashes.
        (swapped[1].number, swapped[2].number) = (2, 3);
        finds(&swapped, 2, Fault::Changed);
        // A row whose own hash is right, in the place of another row.
        let mut replaced = whole.clone();
        let before = Head { number: 2, hash: whole[1].hash.parse().unwrap() };
        replaced[2] = Row::after(before, "clusterd", Entry::new(Outcome::Answered), at(3));
        finds(&replaced, 4, Fault::WrongPrevious);
    }

    #[test]
    fn a_cut_off_end_is_found_with_a_known_head() {
        let whole = rows(5);
        let known = verify(&whole).unwrap();
        let follow = |known: Head, rows: &[Row]| {
            let mut chain = Chain::default().expecting(known);
            rows.iter().try_for_each(|row| chain.follow(row))?;
            chain.end()
        };
        assert_eq!(follow(known, &whole), Ok(known));
        let missing = Broken { number: 4, fault: Fault::Missing };
        assert_eq!(follow(known, &whole[..3]), Err(missing));
        // A row that was replaced together with its hash is right in itself, so only the known hash reveals the change.
        let other = Head { number: 3, hash: Hash::NONE };
        let replaced = Broken { number: 3, fault: Fault::Replaced };
        assert_eq!(follow(other, &whole), Err(replaced));
    }

    #[test]
    fn control_characters_and_long_texts_are_replaced_before_hashing() {
        let mut entry = Entry::new(Outcome::Asked);
        entry.user_name = "a\0b\u{1b}[2J".to_owned();
        entry.target = "é".repeat(1000);
        let row = Row::after(Head::NONE, "clusterd", entry, at(1));
        assert_eq!(row.user_name, "a\u{fffd}b\u{fffd}[2J");
        assert_eq!(row.target.chars().count(), 255);
        verify(&[row]).unwrap();
    }

    #[test]
    fn a_row_keeps_its_hash_through_json() {
        let mut row = rows(2).remove(1);
        row.at = Timestamp::from_microsecond(1_767_323_045_000_006).unwrap();
        row.hash = row.digest().to_string();
        let read: Row = serde_json::from_str(&serde_json::to_string(&row).unwrap()).unwrap();
        assert_eq!((read.digest().to_string(), &read), (row.hash.clone(), &row));
    }
}
