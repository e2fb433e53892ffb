//! The recorded answers of a service, in files that a reviewer can read: versions with the same answer stand together, and an answer that
//! differs little from the one before it is written as changes (RFC 6902).

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use json_patch::Patch;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::answer::{Answer, Status};
use crate::versions::{minors, ranges};
use crate::walker::{Answered, Answers};

#[derive(Debug, Serialize, Deserialize)]
struct RecordedRequest {
    request: String,
    answers: Vec<RecordedAnswer>,
}

/// The answer to some versions of a request.
#[derive(Debug, Serialize, Deserialize)]
struct RecordedAnswer {
    /// Minor microversions, such as `1-4, 7`.
    versions: String,
    status: Status,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    location: Option<String>,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    body: Value,
    /// The changes of the body from that of the answer before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    changes: Option<Patch>,
}

/// Writes a file of answers for each file of requests.
///
/// # Errors
///
/// Fails if the folder cannot be written.
pub fn write(folder: &Path, answered: &Answered) -> Result<()> {
    fs::create_dir_all(folder)?;
    for (subject, requests) in answered {
        let recorded: Vec<_> = requests.iter().map(|it| recorded(&it.0, &it.1)).collect();
        let path = folder.join(format!("{subject}.json"));
        fs::write(&path, text(&recorded)?).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

/// Returns the JSON of a recording, with one line for each request and each answer.
fn text(recorded: &[RecordedRequest]) -> Result<String> {
    let mut requests = Vec::new();
    for RecordedRequest { request, answers } in recorded {
        let answers = answers.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
        let request = serde_json::to_string(request)?;
        let answers = answers.join(",\n  ");
        requests.push(format!("{{\"request\": {request}, \"answers\": [\n  {answers}\n]}}"));
    }
    Ok(format!("[\n{}\n]\n", requests.join(",\n")))
}

/// Reads the answers to the subjects of `of`.
///
/// # Errors
///
/// Fails if a file is missing, or is not one that [`write()`] wrote.
pub fn read<'a>(folder: &Path, of: impl IntoIterator<Item = &'a String>) -> Result<Answered> {
    let mut answered = Answered::new();
    for subject in of {
        let path = folder.join(format!("{subject}.json"));
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let recorded: Vec<RecordedRequest> =
            serde_json::from_str(&text).with_context(|| path.display().to_string())?;
        let requests: Result<_> =
            recorded.into_iter().map(|it| Ok((it.request, expanded(it.answers)?))).collect();
        answered.insert(subject.clone(), requests.with_context(|| path.display().to_string())?);
    }
    Ok(answered)
}

fn recorded(request: &str, answers: &Answers) -> RecordedRequest {
    let mut groups: Vec<(Vec<usize>, &Answer)> = Vec::new();
    for (version, answer) in answers {
        match groups.last_mut() {
            Some((versions, same)) if *same == answer => versions.push(usize::from(*version)),
            _ => groups.push((vec![usize::from(*version)], answer)),
        }
    }
    let mut before = &Value::Null;
    let mut written = Vec::new();
    for (versions, answer) in groups {
        let changes = Some(json_patch::diff(before, &answer.body));
        let is_shorter = |it: &Patch| it.to_string().len() < answer.body.to_string().len();
        let changes = changes.filter(|it| !before.is_null() && is_shorter(it));
        written.push(RecordedAnswer {
            versions: ranges(versions),
            status: answer.status.clone(),
            location: answer.location.clone(),
            body: if changes.is_some() { Value::Null } else { answer.body.clone() },
            changes,
        });
        before = &answer.body;
    }
    RecordedRequest { request: request.to_owned(), answers: written }
}

fn expanded(recorded: Vec<RecordedAnswer>) -> Result<Answers> {
    let mut answers = Answers::new();
    let mut before = Value::Null;
    for RecordedAnswer { versions, status, location, body, changes } in recorded {
        let body = match changes {
            None => body,
            Some(changes) => {
                json_patch::patch(&mut before, &changes)?;
                before
            }
        };
        let answer = Answer { status, location, body: body.clone() };
        answers.extend(minors(&versions)?.into_iter().map(|version| (version, answer.clone())));
        before = body;
    }
    Ok(answers)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer(status: u16, body: Value) -> Answer {
        Answer { status: Status::Http(status), location: None, body }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let node = |more: Value| {
            let mut node = json!({"uuid": "{node}", "name": null, "properties": {"cpus": 1, "memory_mb": 1024}});
            node.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            node
        };
        let answers = vec![
            (1, answer(200, node(json!({})))),
            (2, answer(200, node(json!({})))),
            (3, answer(200, node(json!({"owner": null})))),
            (4, answer(404, json!({"error": {}}))),
            (5, answer(200, node(json!({"owner": "a"})))),
        ];
        let answered = Answered::from([(
            "01-nodes".to_owned(),
            vec![("GET /v1/nodes/{node}".to_owned(), answers)],
        )]);
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &answered).unwrap();
        assert_eq!(read(folder.path(), answered.keys()).unwrap(), answered);
        let text = fs::read_to_string(folder.path().join("01-nodes.json")).unwrap();
        assert_eq!(text.matches("\"versions\"").count(), 4);
        assert_eq!(text.matches("\"changes\"").count(), 1, "{text}");
    }
}
