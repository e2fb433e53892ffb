//! Reads the requests of a walk from its files.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;
use serde_json::{Map, Value};

/// The newest microversion, 1.115.
pub const NEWEST: u8 = 115;

/// The files of a walk, in the order of their names.
pub type Walk = BTreeMap<String, Vec<Step>>;

/// One step of a walk.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Request(Request),
    Wait(Wait),
}

/// A request. `{variable}` in its path, its headers and the strings of its body stands for a value that an earlier answer contained.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// `METHOD PATH`.
    pub line: String,
    pub options: RequestOptions,
}

/// A wait until fields of a resource have these values.
#[derive(Clone, Debug, PartialEq)]
pub struct Wait {
    pub path: String,
    pub fields: Map<String, Value>,
}

/// The options of a request.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RequestOptions {
    /// The minor microversions of the request, which is sent once with each. 0 stands for a request without a version.
    at: Versions,
    /// A JSON body.
    pub body: Option<Value>,
    /// A body that is not JSON.
    pub raw: Option<RawBody>,
    /// Further headers.
    pub headers: BTreeMap<String, String>,
    /// Variables from the answer to the last version, by JSON pointers (RFC 6901).
    pub keep: BTreeMap<String, String>,
    /// The reason for the request, for the reader.
    pub why: Option<String>,
}

/// A body with its content type.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawBody {
    #[serde(rename = "type")]
    pub content_type: String,
    pub text: String,
}

/// Microversions.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(untagged)]
enum Versions {
    #[default]
    Newest,
    Some(Vec<u8>),
    Named(AllVersions),
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum AllVersions {
    Each,
}

impl RequestOptions {
    /// Returns the minor microversions of the request.
    pub fn versions(&self) -> Vec<u8> {
        match &self.at {
            Versions::Newest => vec![NEWEST],
            Versions::Some(some) => some.clone(),
            Versions::Named(AllVersions::Each) => (1..=NEWEST).collect(),
        }
    }
}

impl Step {
    /// Returns the step as a line of a report.
    pub fn line(&self) -> String {
        match self {
            Step::Request(request) => request.line.clone(),
            Step::Wait(Wait { path, fields }) => {
                format!("WAIT {path} {}", Value::Object(fields.clone()))
            }
        }
    }
}

/// Reads the files of a walk.
///
/// # Errors
///
/// Fails if the folder has no files, or if one is not a list of steps.
pub fn read(folder: &Path) -> Result<Walk> {
    let mut walk = Walk::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.extension().is_some_and(|it| it == "yaml") {
            let subject = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let text = fs::read_to_string(&path)?;
            let steps = parse(&text).with_context(|| path.display().to_string())?;
            walk.insert(subject, steps);
        }
    }
    ensure!(!walk.is_empty(), "{} has no file of requests", folder.display());
    Ok(walk)
}

/// Reads a list of steps: each is `METHOD PATH: OPTIONS` or `WAIT PATH: FIELDS`.
fn parse(text: &str) -> Result<Vec<Step>> {
    let items: Vec<BTreeMap<String, Value>> = serde_saphyr::from_str(text)?;
    items.into_iter().flatten().map(|(line, options)| step(line, options)).collect()
}

fn step(line: String, options: Value) -> Result<Step> {
    let Some((method, path)) = line.split_once(' ') else {
        bail!("{line:?} is not a method and a path");
    };
    if method == "WAIT" {
        let fields = serde_json::from_value(options).with_context(|| line.clone())?;
        return Ok(Step::Wait(Wait { path: path.to_owned(), fields }));
    }
    let options = if options.is_null() {
        RequestOptions::default()
    } else {
        serde_json::from_value(options).with_context(|| line.clone())?
    };
    ensure!(
        options.body.is_none() || options.raw.is_none(),
        "{line}: a request has body or raw, not both"
    );
    let is_known = |version: &u8| *version <= NEWEST;
    ensure!(options.versions().iter().all(is_known), "{line}: a version is above 1.{NEWEST}");
    Ok(Step::Request(Request { line, options }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_step_is_a_request_or_a_wait() {
        let text = "
            # Chassis
            - POST /v1/chassis: {at: [7, 115], body: {description: a}, keep: {chassis: /uuid}}
            - GET /v1/chassis: {at: each}
            - DELETE /v1/chassis/{chassis}:
            - WAIT /v1/nodes/{node}: {provision_state: manageable, target_provision_state: null}
        ";
        let steps = parse(text).unwrap();
        let versions = |step: &Step| match step {
            Step::Request(request) => request.options.versions(),
            Step::Wait(_) => Vec::new(),
        };
        assert_eq!(versions(&steps[0]), [7, 115]);
        assert_eq!(versions(&steps[1]).len(), 115);
        assert_eq!(versions(&steps[2]), [115]);
        let Step::Request(post) = &steps[0] else { panic!("{:?}", steps[0]) };
        assert_eq!(post.options.body, Some(json!({"description": "a"})));
        assert_eq!(post.options.keep["chassis"], "/uuid");
        let waits = r#"WAIT /v1/nodes/{node} {"provision_state":"manageable","target_provision_state":null}"#;
        assert_eq!(steps[3].line(), waits);
    }

    #[test]
    fn a_wrong_step_is_named() {
        for (text, want) in [
            ("- GET: {}", "\"GET\" is not a method and a path"),
            ("- GET /: {at: [116]}", "GET /: a version is above 1.115"),
            ("- GET /: {body: 1, raw: {type: a, text: b}}", "GET /: a request has body or raw"),
        ] {
            let found = parse(text).unwrap_err().to_string();
            assert!(found.contains(want), "{found}");
        }
        assert!(format!("{:#}", parse("- GET /: {bodi: 1}").unwrap_err()).contains("bodi"));
    }
}
