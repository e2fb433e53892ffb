//! When the next turn is due, one row for each rule.

use std::time::Duration;

use decision::Requeue;

use super::*;
use crate::{Problem, TurnPauses};

fn failure(is_transient: bool, retry_after: Option<u64>) -> CallFailure {
    let problem = Problem {
        reason: "Why".to_owned(),
        message: "it failed".to_owned(),
        next_action: String::new(),
        is_final: false,
    };
    let retry_after = retry_after.map(Duration::from_secs);
    CallFailure { problem, is_transient, retry_after, create_failure: None }
}

struct Row {
    failures: Vec<CallFailure>,
    ledger: LedgerMatch,
    is_gone_soon: bool,
    state: CloudObjectState,
    /// The second at which an object may be created again.
    held_until: Option<i64>,
}

impl Default for Row {
    fn default() -> Self {
        Row {
            failures: Vec::new(),
            ledger: LedgerMatch::Complete,
            is_gone_soon: false,
            state: CloudObjectState::Ready,
            held_until: None,
        }
    }
}

#[test]
fn each_rule_has_a_row() {
    let (now, soon, settled) = (Requeue::Now, after(1), after(60));
    let rows = [
        ("nothing is in progress", Row::default(), settled),
        ("the cloud works", Row { state: CloudObjectState::Working, ..Row::default() }, soon),
        ("the cloud deletes", Row { state: CloudObjectState::Deleting, ..Row::default() }, soon),
        (
            "a requested object may appear",
            Row { ledger: LedgerMatch::MayStillCome, ..Row::default() },
            soon,
        ),
        ("objects disappeared", Row { ledger: LedgerMatch::Removed, ..Row::default() }, now),
        ("objects disappear at once", Row { is_gone_soon: true, ..Row::default() }, now),
        (
            "a call failed that may succeed soon",
            Row { failures: vec![failure(true, None), failure(false, None)], ..Row::default() },
            soon,
        ),
        (
            "a call failed for good",
            Row {
                failures: vec![failure(false, None)],
                is_gone_soon: true,
                state: CloudObjectState::Working,
                ..Row::default()
            },
            settled,
        ),
        (
            "services asked for later retries",
            Row {
                failures: vec![failure(true, Some(5)), failure(true, Some(9))],
                ..Row::default()
            },
            after(9),
        ),
        ("an object is in back-off", Row { held_until: Some(17), ..Row::default() }, after(7)),
        ("the back-off ended", Row { held_until: Some(5), ..Row::default() }, after(0)),
        ("the back-off is long", Row { held_until: Some(900), ..Row::default() }, settled),
    ];
    for (rule, row, want) in rows {
        let objects = BTreeMap::from([(Key::Network, found("n", row.state))]);
        let seen = ClusterObservation { objects, ..ClusterObservation::default() };
        let held = row.held_until.map(|until| {
            let held = BackingOff { times: 1, why: String::new(), until: at(until) };
            (Key::Network, held)
        });
        let progress = CloudProgress::of(&row.failures, row.ledger, row.is_gone_soon, &seen);
        let pauses =
            TurnPauses { soon: Duration::from_secs(1), look_every: Duration::from_secs(60) };
        let next =
            next_turn(progress, &row.failures, &held.into_iter().collect(), (&pauses, at(10)));
        assert_eq!(next, want, "{rule}");
    }
}

fn after(seconds: u64) -> Requeue {
    Requeue::After(Duration::from_secs(seconds))
}
