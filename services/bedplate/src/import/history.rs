//! The part of a node's history that baremetald keeps. Pure.

use crate::ironic::{Object, word};

/// The most entries of a node: baremetald keeps 300, and one of them records the import.
pub(super) const MOST: usize = 299;
/// The most bytes of all events of a node, so that the request does not exceed the limit of its body.
const MOST_BYTES: usize = 4 << 20;

/// The newest entries as an import takes them, in the order of `history`, which begins with the oldest one; and how many older ones there
/// are.
pub(super) fn kept(history: &[Object]) -> (Vec<Object>, usize) {
    let mut bytes = 0;
    let fits = |entry: &&Object| {
        bytes += word(entry, "event").len();
        bytes <= MOST_BYTES
    };
    let newest = history.iter().rev().take(MOST).take_while(fits);
    let mut kept: Vec<Object> = newest.cloned().collect();
    kept.reverse();
    for entry in &mut kept {
        // The conductor of an event is always the one that shows the history.
        entry.retain(|field, _| !["conductor", "links"].contains(&field.as_str()));
    }
    let older = history.len() - kept.len();
    (kept, older)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(id: usize, event: &str) -> Object {
        let entry = json!({"uuid": id, "event": event, "conductor": "c", "links": []});
        entry.as_object().unwrap().clone()
    }

    #[test]
    fn the_newest_entries_are_kept_in_their_order() {
        assert_eq!(kept(&[]), (Vec::new(), 0));
        let all: Vec<Object> = (0..MOST + 2).map(|id| entry(id, "e")).collect();
        let (newest, older) = kept(&all);
        assert_eq!((newest.len(), older), (MOST, 2));
        assert_eq!(newest[0], json!({"uuid": 2, "event": "e"}).as_object().unwrap().clone());
        assert_eq!(newest[MOST - 1]["uuid"], MOST + 1);
    }

    #[test]
    fn long_events_are_kept_up_to_a_size() {
        let long = "e".repeat(MOST_BYTES / 2);
        let (newest, older) = kept(&[entry(0, "e"), entry(1, &long), entry(2, &long)]);
        assert_eq!((newest.len(), older), (2, 1));
    }
}
