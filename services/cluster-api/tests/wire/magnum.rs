//! Compares the answers with those of a real Magnum, which `tests/real/magnum/record.py` recorded. Magnum's driver does its work at once; here
//! no conductor works.
//!
//! `UPDATE_EXPECT=1` rewrites the list of differences.

use std::collections::BTreeMap;
use std::fmt::Write;

use expect_test::expect_file;
use serde::Deserialize;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::api::Api;

/// A request, and Magnum's answer.
#[derive(Deserialize)]
struct Step {
    ask: String,
    /// The microversion.
    at: String,
    #[serde(default)]
    body: Value,
    /// The values of the answer that later requests name.
    #[serde(default)]
    keep: BTreeMap<String, String>,
    answer: Recorded,
}

#[derive(Deserialize)]
struct Recorded {
    status: u16,
    body: Value,
}

/// The fields that are not compared, with the reason.
const OTHER: &[(&str, &[&str])] = &[
    (
        "Magnum's driver does its work at once, and here no conductor works",
        &[
            "api_address",
            "coe_version",
            "health_status",
            "health_status_reason",
            "status",
            "status_reason",
            "version",
        ],
    ),
    ("Magnum numbers its rows, and shows a field of requests", &["id", "merge_labels"]),
    ("there is no Heat stack, whose id this was", &["cluster_id"]),
    (
        "other defaults",
        &["create_timeout", "dns_nameserver", "docker_storage_driver", "driver", "min_node_count"],
    ),
];

/// The reasons of the differences that stay: a difference with one of the words belongs to the reason.
const REASONS: &[(&str, &[&str])] = &[
    ("an addition of clusterd", &["is extra", "\"docker_volume_size\":0"]),
    (
        "other descriptions of the service, and no federations",
        &["GET /: ", "/federations is missing", "GET /v1: /links", "GET /v1: /nodegroups"],
    ),
    ("a failed update is repeated, not rolled back", &["?rollback=true"]),
    (
        "an invalid value of a node group is 400, as every other invalid value",
        &["status 400, not 409"],
    ),
    (
        "an answer to a first change has its time, and a reported health has its reasons as a whole",
        &["/updated_at is", "health_status_reason/api"],
    ),
    (
        "a name is used in DNS names, and nothing is accepted that has no effect",
        &["\"1bad\"", "ca_cert_type=nothing"],
    ),
];

#[tokio::test]
async fn the_answers_are_those_of_a_real_magnum_except_for_the_listed_differences() {
    let recorded =
        include_str!("magnum/recorded.json").replace("http://localhost", "http://api:9511");
    let steps: Vec<Step> = serde_json::from_str(&recorded).unwrap();
    let api = Api::start().await;
    let mut kept = BTreeMap::new();
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    for step in &steps {
        for line in compare(&api, step, &mut kept).await {
            match found.iter_mut().find(|(one, _)| *one == line) {
                Some((_, versions)) => versions.push(step.at.clone()),
                None => found.push((line, vec![step.at.clone()])),
            }
        }
    }
    expect_file!["magnum/differences.txt"].assert_eq(&grouped(&found));
}

/// Sends the request, and returns what differs from Magnum's answer.
async fn compare(api: &Api, step: &Step, kept: &mut BTreeMap<String, String>) -> Vec<String> {
    let filled = |text: &str| {
        kept.iter().fold(text.to_owned(), |text, (name, value)| {
            text.replace(&format!("{{{name}}}"), value)
        })
    };
    let body = if step.body.is_null() { String::new() } else { filled(&step.body.to_string()) };
    let ask = filled(&step.ask);
    let (method, path) = ask.split_once(' ').unwrap();
    let answer = api.send(method, path, &format!("container-infra {}", step.at), &body).await;
    let ours: Value = serde_json::from_str(&answer.text).unwrap_or_default();
    for (name, pointer) in &step.keep {
        if let Some(value) = ours.pointer(pointer).and_then(Value::as_str) {
            kept.insert(name.clone(), value.to_owned());
        }
    }
    let mut found = Vec::new();
    let (status, theirs) = (answer.status.as_u16(), step.answer.status);
    if status != theirs {
        found.push(format!("status {status}, not {theirs}"));
    } else if status < 300 {
        differences("", &ours, &step.answer.body, &mut found);
    }
    let sent = if step.body.is_null() { String::new() } else { format!(" {}", step.body) };
    found.into_iter().map(|found| format!("{}{sent}: {found}", step.ask)).collect()
}

fn differences(path: &str, ours: &Value, theirs: &Value, found: &mut Vec<String>) {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            let is_compared = |name: &str| !OTHER.iter().any(|(_, fields)| fields.contains(&name));
            for (name, theirs) in theirs.iter().filter(|(name, _)| is_compared(name)) {
                match ours.get(name) {
                    Some(ours) => differences(&format!("{path}/{name}"), ours, theirs, found),
                    None => found.push(format!("{path}/{name} is missing")),
                }
            }
            let extra = ours.keys().filter(|name| !theirs.contains_key(*name) && is_compared(name));
            found.extend(extra.map(|name| format!("{path}/{name} is extra")));
        }
        (Value::Array(ours), Value::Array(theirs)) if ours.len() == theirs.len() => {
            for (at, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
                differences(&format!("{path}/{at}"), ours, theirs, found);
            }
        }
        (Value::Array(ours), Value::Array(theirs)) => {
            found.push(format!("{path} has {} elements, not {}", ours.len(), theirs.len()));
        }
        (ours, Value::String(lasting))
            if ["UUID", "TIME", "PEM"].iter().any(|word| lasting.contains(word)) =>
        {
            if !ours.is_string() && !ours.is_null() {
                found.push(format!("{path} is no text"));
            }
        }
        (ours, Value::Null) if is_empty(ours) => {}
        (ours, theirs) if ours == theirs => {}
        (ours, theirs) => found.push(format!("{path} is {}, not {theirs}", lasting(ours))),
    }
}

fn is_empty(ours: &Value) -> bool {
    ours.as_object().is_some_and(Map::is_empty) || ours.as_array().is_some_and(Vec::is_empty)
}

fn lasting(ours: &Value) -> String {
    let is_id = ours.as_str().is_some_and(|text| text.parse::<Uuid>().is_ok());
    if is_id { "\"UUID\"".to_owned() } else { ours.to_string() }
}

/// The differences under their reasons.
fn grouped(found: &[(String, Vec<String>)]) -> String {
    let reason = |line: &str| {
        let has = |words: &[&str]| words.iter().any(|word| line.contains(word));
        REASONS.iter().find(|(_, words)| has(words)).map_or("not explained", |(reason, _)| *reason)
    };
    let mut text = String::new();
    let reasons = REASONS.iter().map(|(reason, _)| *reason).chain(["not explained"]);
    for wanted in reasons {
        let own: Vec<_> = found.iter().filter(|(line, _)| reason(line) == wanted).collect();
        if own.is_empty() {
            continue;
        }
        writeln!(text, "# {wanted}").unwrap();
        for (line, versions) in own {
            writeln!(text, "{line} ({})", versions.join(", ")).unwrap();
        }
    }
    text
}
