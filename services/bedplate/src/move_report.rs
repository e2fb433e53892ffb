//! The report of an import or an export: the result for each resource, and the values that the other side does not have.

use serde_json::{Value, json};

use crate::exit::{Exit, Failure};
use crate::ironic::{Object, word};
use crate::output::{Answer, Format, counted, plain};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MoveResult {
    Taken,
    /// The resource would be taken without `--dry-run`.
    WouldBeTaken,
    /// The resource was there already, and was not changed.
    Present,
    NotTaken {
        reasons: Vec<String>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MoveLine {
    kind: &'static str,
    id: String,
    name: String,
    /// The provision state of a node.
    state: String,
    result: MoveResult,
    /// The values that are lost or changed.
    losses: Vec<String>,
}

#[derive(Debug, Default)]
pub(crate) struct MoveReport {
    lines: Vec<MoveLine>,
}

impl MoveResult {
    /// The result of a resource that is not taken for one reason.
    pub(crate) fn refused(reason: impl Into<String>) -> Self {
        MoveResult::NotTaken { reasons: vec![reason.into()] }
    }

    fn word(&self) -> &'static str {
        match self {
            MoveResult::Taken => "taken",
            MoveResult::WouldBeTaken => "would be taken",
            MoveResult::Present => "present",
            MoveResult::NotTaken { .. } => "not taken",
        }
    }

    fn reasons(&self) -> &[String] {
        match self {
            MoveResult::NotTaken { reasons } => reasons,
            MoveResult::Taken | MoveResult::WouldBeTaken | MoveResult::Present => &[],
        }
    }
}

impl MoveLine {
    /// Makes the line of a resource as the API shows it.
    pub(crate) fn new(
        kind: &'static str,
        resource: &Object,
        result: MoveResult,
        losses: Vec<String>,
    ) -> Self {
        let of = |field| word(resource, field).to_owned();
        let (id, name, state) = (of("uuid"), of("name"), of("provision_state"));
        MoveLine { kind, id, name, state, result, losses }
    }

    /// Whether the other side has the resource, or would have it without `--dry-run`.
    pub(crate) fn is_there(&self) -> bool {
        match self.result {
            MoveResult::Taken | MoveResult::WouldBeTaken | MoveResult::Present => true,
            MoveResult::NotTaken { .. } => false,
        }
    }

    fn row(&self) -> Vec<String> {
        let label = if self.name.is_empty() { &self.id } else { &self.name };
        let losses = self.losses.iter().map(|loss| format!("lost: {loss}"));
        let details: Vec<String> = self.result.reasons().iter().cloned().chain(losses).collect();
        vec![
            self.kind.to_owned(),
            plain(label),
            plain(&self.state),
            self.result.word().to_owned(),
            plain(&details.join("; ")),
        ]
    }

    fn json(&self) -> Value {
        json!({
            "kind": self.kind,
            "uuid": self.id,
            "name": if self.name.is_empty() { Value::Null } else { Value::from(self.name.as_str()) },
            "result": self.result.word().replace(' ', "_"),
            "reasons": self.result.reasons(),
            "losses": self.losses,
        })
    }
}

impl MoveReport {
    pub(crate) fn add(&mut self, line: MoveLine) {
        self.lines.push(line);
    }

    pub(crate) fn has_taken_nodes(&self) -> bool {
        let is_taken = |line: &MoveLine| line.kind == "node" && line.result == MoveResult::Taken;
        self.lines.iter().any(is_taken)
    }

    /// Prints the report. Returns an error if anything was not taken.
    pub(crate) fn write(&self, format: Format) -> anyhow::Result<()> {
        let resources: Vec<Value> = self.lines.iter().map(MoveLine::json).collect();
        let header = ["Kind", "Resource", "State", "Result", "Details"];
        let rows = self.lines.iter().map(MoveLine::row);
        Answer::table(json!({"resources": resources}), &header, rows).write(format)?;
        self.check()
    }

    fn check(&self) -> anyhow::Result<()> {
        let not_taken = |line: &&MoveLine| !line.is_there();
        let left = self.lines.iter().filter(not_taken).count();
        let losses: usize =
            self.lines.iter().filter(|line| !not_taken(line)).map(|line| line.losses.len()).sum();
        let sentence = match (left, losses) {
            (0, 0) => return Ok(()),
            (0, _) => format!("{} could not be taken", counted(losses, "value")),
            (_, 0) => format!("{} of {} not taken", left, counted(self.lines.len(), "resource")),
            (_, _) => format!(
                "{} of {} not taken, and {} of the others lost",
                left,
                counted(self.lines.len(), "resource"),
                counted(losses, "value")
            ),
        };
        Err(Failure::new(Exit::Failed, format!("{sentence}: see the report")).into())
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn line(result: MoveResult, losses: &[&str]) -> MoveLine {
        let node = json!({"uuid": "u1", "name": "n1", "provision_state": "active"});
        let losses = losses.iter().map(|loss| (*loss).to_owned()).collect();
        MoveLine::new("node", node.as_object().unwrap(), result, losses)
    }

    #[test]
    fn the_command_fails_if_anything_was_not_taken() {
        let check = |lines: &[MoveLine]| {
            MoveReport { lines: lines.to_vec() }.check().err().map(|why| why.to_string())
        };
        assert_eq!(check(&[]), None);
        assert_eq!(check(&[line(MoveResult::Taken, &[]), line(MoveResult::Present, &[])]), None);
        let lost = check(&[line(MoveResult::Taken, &["fault"])]).unwrap();
        assert_eq!(lost, "1 value could not be taken: see the report");
        let left = check(&[line(MoveResult::Taken, &[]), line(MoveResult::refused("x"), &["y"])]);
        assert_eq!(left.unwrap(), "1 of 2 resources not taken: see the report");
    }

    #[test]
    fn a_line_has_the_reasons_and_the_losses() {
        let one = line(MoveResult::refused("driver: unknown"), &["fault: power failure"]);
        expect!["node|n1|active|not taken|driver: unknown; lost: fault: power failure"]
            .assert_eq(&one.row().join("|"));
        let want = json!({
            "kind": "node", "uuid": "u1", "name": "n1", "result": "not_taken",
            "reasons": ["driver: unknown"], "losses": ["fault: power failure"],
        });
        assert_eq!(one.json(), want);
    }
}
