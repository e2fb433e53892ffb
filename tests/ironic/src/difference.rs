//! The differences between the answers of two services.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use crate::answer::{Answer, Status};
use crate::change::{ChangeKind, changes, short};
use crate::versions::ranges;
use crate::walker::{Answered, Answers, InternalErrors, NOT_REACHED, OMITTED};

/// The kind of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The walk has other requests than the recording.
    Recording,
    /// A request was not sent, because an earlier answer lacked a value that it needs.
    NotRun,
    /// A wait for a state ended without that state.
    Wait,
    Status,
    Location,
    MissingField,
    ExtraField,
    Value,
}

/// A difference between two answers to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The file of the request.
    pub subject: String,
    /// The place of the request in its file, from 1, and its method and path.
    pub request: String,
    pub kind: Kind,
    /// The minor microversions and the difference.
    pub text: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} @{}", self.subject, self.request, self.text)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Recording => "not recorded",
            Kind::NotRun => "not run",
            Kind::Wait => "state not reached",
            Kind::Status => "status",
            Kind::Location => "location",
            Kind::MissingField => "missing field",
            Kind::ExtraField => "extra field",
            Kind::Value => "value",
        })
    }
}

impl From<ChangeKind> for Kind {
    fn from(kind: ChangeKind) -> Kind {
        match kind {
            ChangeKind::Missing => Kind::MissingField,
            ChangeKind::Extra => Kind::ExtraField,
            ChangeKind::Value => Kind::Value,
        }
    }
}

/// Returns the differences between the answers `got` and the recorded ones, in the order of the walk.
pub fn compare(recorded: &Answered, got: &Answered, errors: InternalErrors) -> Vec<Difference> {
    let mut differences = Vec::new();
    for (subject, requests) in got {
        let recorded = recorded.get(subject).map(Vec::as_slice).unwrap_or_default();
        for (at, (line, answers)) in requests.iter().enumerate() {
            let found = match recorded.get(at) {
                Some((recorded_line, recorded)) if recorded_line == line => {
                    of_request(recorded, answers, errors)
                }
                _ => not_recorded(answers),
            };
            differences.extend(found.into_iter().map(|(kind, text)| Difference {
                subject: subject.clone(),
                request: format!("{} {line}", at + 1),
                kind,
                text,
            }));
        }
    }
    differences
}

/// Counts differences by kind.
pub fn counts(differences: &[Difference]) -> BTreeMap<Kind, usize> {
    let mut counts = BTreeMap::new();
    for difference in differences {
        *counts.entry(difference.kind).or_default() += 1;
    }
    counts
}

fn of_request(recorded: &Answers, got: &Answers, errors: InternalErrors) -> Vec<(Kind, String)> {
    if !recorded.iter().map(|it| it.0).eq(got.iter().map(|it| it.0)) {
        return not_recorded(got);
    }
    let mut versions: BTreeMap<(Kind, String), Vec<usize>> = BTreeMap::new();
    for ((version, want), (_, got)) in recorded.iter().zip(got) {
        for difference in of_answer(want, got, errors) {
            versions.entry(difference).or_default().push(usize::from(*version));
        }
    }
    let line = |((kind, text), at): ((Kind, String), _)| (kind, format!("{}: {text}", ranges(at)));
    versions.into_iter().map(line).collect()
}

fn not_recorded(got: &Answers) -> Vec<(Kind, String)> {
    let at = ranges(got.iter().map(|it| usize::from(it.0)));
    vec![(Kind::Recording, format!("{at}: the recording has another request here: record again"))]
}

fn of_answer(want: &Answer, got: &Answer, errors: InternalErrors) -> Vec<(Kind, String)> {
    if errors == InternalErrors::Defects {
        match (&want.status, &got.status) {
            (_, Status::Http(got @ 500..)) => return vec![(Kind::Status, format!("status {got}"))],
            (Status::Http(500..), Status::Http(_)) => return Vec::new(),
            (Status::Http(500..), Status::Other(text)) if text == OMITTED => return Vec::new(),
            _ => {}
        }
    }
    match (&want.status, &got.status) {
        (Status::Http(want), Status::Http(got)) if want != got => {
            return vec![(Kind::Status, format!("status {got}, not {want}"))];
        }
        (_, Status::Other(text)) if text == NOT_REACHED => {
            return vec![(Kind::Wait, format!("state not reached: {}", not_reached(want, got)))];
        }
        (want, Status::Other(text)) if *want != got.status => {
            return vec![(Kind::NotRun, text.clone())];
        }
        _ => {}
    }
    let mut differences = Vec::new();
    if want.location != got.location {
        let text = format!("location {}, not {}", short(&got.location), short(&want.location));
        differences.push((Kind::Location, text));
    }
    let changes = changes(&want.body, &got.body);
    differences.extend(changes.into_iter().map(|it| (Kind::from(it.kind), it.to_string())));
    differences
}

/// Returns the fields of a wait that have other values than the recorded ones.
fn not_reached(want: &Answer, got: &Answer) -> String {
    let fields = want.body.as_object().into_iter().flatten();
    let differs = fields.filter(|(name, value)| got.body.get(name) != Some(value));
    let text = |(name, value): (&String, &Value)| {
        format!("{name} is {}, not {}", short(&got.body[name]), short(value))
    };
    differs.map(text).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::walker::InternalErrors::{Defects, Same};

    fn answer(status: Status, body: Value) -> Answer {
        Answer { status, location: None, body }
    }

    fn answered(line: &str, answers: &[(u8, u16, Value)]) -> Answered {
        let answer = |(version, status, body): &(u8, u16, Value)| {
            (*version, answer(Status::Http(*status), body.clone()))
        };
        let answers = answers.iter().map(answer).collect();
        Answered::from([("01-nodes".to_owned(), vec![(line.to_owned(), answers)])])
    }

    fn lines(differences: &[Difference]) -> Vec<String> {
        differences.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_difference_names_its_request_and_its_versions() {
        let line = "GET /v1/nodes/{node}";
        let want = answered(
            line,
            &[(1, 200, json!({"a": 1})), (2, 200, json!({"a": 1})), (3, 404, json!({}))],
        );
        let got = answered(
            line,
            &[(1, 200, json!({"a": 2})), (2, 200, json!({"a": 2, "b": null})), (3, 200, json!(1))],
        );
        let found = compare(&want, &got, Defects);
        let expected = [
            "01-nodes 1 GET /v1/nodes/{node} @3: status 200, not 404",
            "01-nodes 1 GET /v1/nodes/{node} @2: /b is extra: null",
            "01-nodes 1 GET /v1/nodes/{node} @1-2: /a is 2, not 1",
        ];
        assert_eq!(lines(&found), expected);
        let counted = BTreeMap::from([(Kind::Status, 1), (Kind::ExtraField, 1), (Kind::Value, 1)]);
        assert_eq!(counts(&found), counted);
        assert_eq!(compare(&want, &want, Defects), []);
    }

    #[test]
    fn a_walk_with_other_requests_is_recorded_again() {
        let want = answered("GET /v1/nodes", &[(1, 200, json!({}))]);
        for got in [
            answered("GET /v1/ports", &[(1, 200, json!({}))]),
            answered("GET /v1/nodes", &[(2, 200, json!({}))]),
            answered("GET /v1/nodes", &[(1, 200, json!({})), (2, 200, json!({}))]),
        ] {
            let found = compare(&want, &got, Defects);
            assert_eq!(counts(&found), BTreeMap::from([(Kind::Recording, 1)]));
        }
    }

    #[test]
    fn an_internal_error_is_never_right() {
        let answer = |status| answer(Status::Http(status), json!({}));
        assert_eq!(of_answer(&answer(500), &answer(400), Defects), []);
        let wrong = [(Kind::Status, "status 500".to_owned())];
        assert_eq!(of_answer(&answer(500), &answer(500), Defects), wrong);
        assert_eq!(of_answer(&answer(400), &answer(500), Defects), wrong);
        assert_eq!(of_answer(&answer(500), &answer(500), Same), []);
        assert_eq!(of_answer(&answer(500), &Answer::other(OMITTED), Defects), []);
        assert_eq!(of_answer(&answer(400), &Answer::other(OMITTED), Defects).len(), 1);
        assert_eq!(of_answer(&answer(500), &answer(400), Same).len(), 1);
    }

    #[test]
    fn a_request_that_was_not_sent_is_one_difference() {
        let want = answer(Status::Http(200), json!({"a": 1}));
        let found = of_answer(&want, &Answer::other("not run"), Defects);
        assert_eq!(found, [(Kind::NotRun, "not run".to_owned())]);
    }

    #[test]
    fn a_wait_names_the_fields_that_differ() {
        let reached = json!({"provision_state": "active", "reservation": null});
        let want = answer(Status::Other("reached".to_owned()), reached);
        let seen = json!({"provision_state": "deploy failed", "reservation": null});
        let got = answer(Status::Other(NOT_REACHED.to_owned()), seen);
        let text = r#"state not reached: provision_state is "deploy failed", not "active""#;
        assert_eq!(of_answer(&want, &got, Defects), [(Kind::Wait, text.to_owned())]);
        assert_eq!(of_answer(&want, &want, Defects), []);
    }
}
