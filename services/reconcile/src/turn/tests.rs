use std::sync::Mutex;

use super::*;

/// A turn that notes each of its steps. "ask twice" leads to the action "ask again", and "fail" skips the actions after it.
struct NotedTurn {
    steps: Mutex<Vec<String>>,
    decision: Decision<u32, &'static str>,
}

impl NotedTurn {
    fn note(&self, step: String) {
        self.steps.lock().unwrap().push(step);
    }
}

impl Turn for NotedTurn {
    type Record = u32;
    type Seen = ();
    type Change = u32;
    type Action = &'static str;
    type Outcome = &'static str;
    type Error = &'static str;

    async fn observe(&self, record: &u32) -> Result<(), &'static str> {
        self.note(format!("observe {record}"));
        Ok(())
    }

    fn decide(&self, _: &u32, (): &()) -> Decided<Self> {
        Ok(self.decision.clone())
    }

    async fn write(&self, record: u32, change: u32) -> Result<u32, &'static str> {
        self.note(format!("write {change}"));
        if change <= record { Err("stale") } else { Ok(change) }
    }

    async fn perform(
        &self,
        record: &u32,
        action: &'static str,
    ) -> Result<&'static str, &'static str> {
        self.note(format!("{action} {record}"));
        Ok(action)
    }

    fn skips_rest(&self, outcome: &&'static str) -> bool {
        *outcome == "fail"
    }

    fn conclude(&self, record: &u32, outcomes: Vec<&'static str>) -> Decided<Self> {
        let write = Decision::write(record + outcomes.len() as u32, Requeue::OnChange);
        Ok(match outcomes.contains(&"ask twice") {
            true => Decision { actions: vec!["ask again"], ..write },
            false => Decision { next_turn: Requeue::Now, ..write },
        })
    }
}

async fn executed(
    decision: Decision<u32, &'static str>,
) -> (Result<(u32, Requeue), &'static str>, String) {
    let turn = NotedTurn { steps: Mutex::default(), decision };
    let ended = execute(&turn, 1).await;
    (ended, turn.steps.into_inner().unwrap().join(", "))
}

#[tokio::test]
async fn a_change_is_written_before_the_actions_that_it_announces() {
    let decision = Decision {
        actions: vec!["power off", "power on"],
        ..Decision::write(7, Requeue::OnChange)
    };
    let (ended, steps) = executed(decision).await;
    assert_eq!(ended, Ok((9, Requeue::Now)));
    assert_eq!(steps, "observe 1, write 7, power off 7, power on 7, write 9");
}

#[tokio::test]
async fn the_actions_of_a_conclusion_follow_its_change_and_have_a_conclusion() {
    let later = Requeue::After(std::time::Duration::from_secs(1));
    let decision = Decision { next_turn: later, ..Decision::act("ask twice") };
    let (ended, steps) = executed(decision).await;
    assert_eq!(ended, Ok((3, Requeue::Now)), "the earliest of all times");
    assert_eq!(steps, "observe 1, ask twice 1, write 2, ask again 2, write 3");
}

#[tokio::test]
async fn a_result_can_skip_the_actions_after_it() {
    let decision =
        Decision { actions: vec!["fail", "power on"], ..Decision::rest(Requeue::OnChange) };
    let (ended, steps) = executed(decision).await;
    assert_eq!(ended, Ok((2, Requeue::Now)));
    assert_eq!(steps, "observe 1, fail 1, write 2");
}

#[tokio::test]
async fn a_turn_that_lost_a_race_performs_nothing() {
    let decision = Decision { actions: vec!["power off"], ..Decision::write(1, Requeue::Now) };
    let (ended, steps) = executed(decision).await;
    assert_eq!(ended, Err("stale"));
    assert_eq!(steps, "observe 1, write 1");
}

#[tokio::test]
async fn a_turn_without_actions_has_no_conclusion() {
    let (ended, steps) = executed(Decision::rest(Requeue::OnChange)).await;
    assert_eq!(ended, Ok((1, Requeue::OnChange)));
    assert_eq!(steps, "observe 1");
}
