//! The known differences, `differences.yaml`: the list of the work that is left.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::difference::Difference;

/// The head of the file.
const HEAD: &str = "\
# Each line is a difference between the answers of baremetald and the recorded answers of Ironic. It names the minor versions.
# `cargo run -p ironic -- compare --accept` writes this file. A change that makes baremetald answer as Ironic makes the file shorter.
# `reasons.yaml` says why each difference stays.
";

/// The texts of known differences, by request and by file.
pub(crate) type Known = BTreeMap<String, BTreeMap<String, Vec<String>>>;

/// A known difference: its file, its request and its text.
type Line<'a> = (&'a str, &'a str, &'a str);

/// Writes the list.
///
/// # Errors
///
/// Fails if the file cannot be written.
pub fn write(path: &Path, differences: &[Difference]) -> Result<()> {
    fs::write(path, text(differences)).with_context(|| path.display().to_string())
}

/// Compares differences with the list. Returns a line for each difference that is not in the list, and for each line of the list that no
/// longer occurs.
///
/// # Errors
///
/// Fails if the file cannot be read.
pub fn problems(path: &Path, found: &[Difference]) -> Result<Vec<String>> {
    Ok(check(&read_file(path)?, found))
}

/// Reads the list.
pub(crate) fn read_file(path: &Path) -> Result<Known> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    read(&text).with_context(|| path.display().to_string())
}

fn read(text: &str) -> Result<Known> {
    Ok(serde_saphyr::from_str::<Option<Known>>(text)?.unwrap_or_default())
}

fn text(differences: &[Difference]) -> String {
    let mut text = HEAD.to_owned();
    let mut before: Option<&Difference> = None;
    for it in differences {
        let is_same_file = before.is_some_and(|before| before.subject == it.subject);
        if !is_same_file {
            let _ = writeln!(text, "{}:", it.subject);
        }
        if !is_same_file || before.is_some_and(|before| before.request != it.request) {
            let _ = writeln!(text, "  {}:", scalar(&it.request));
        }
        let _ = writeln!(text, "  - {}", quoted(&it.text));
        before = Some(it);
    }
    text
}

/// Returns a text as a YAML scalar, in quotes if it needs them.
fn scalar(text: &str) -> String {
    let is_plain = !["\"", "\\", ": ", " #"].iter().any(|it| text.contains(it));
    if is_plain { text.to_owned() } else { quoted(text) }
}

/// Returns a text in quotes: single ones where the text has double ones, because these need no backslashes.
fn quoted(text: &str) -> String {
    if text.contains('"') && !text.chars().any(char::is_control) {
        return format!("'{}'", text.replace('\'', "''"));
    }
    serde_json::Value::from(text).to_string()
}

fn check(known: &Known, found: &[Difference]) -> Vec<String> {
    let known = known.iter().flat_map(|(subject, requests)| {
        let texts =
            requests.iter().flat_map(|(request, texts)| texts.iter().map(move |it| (request, it)));
        texts.map(move |(request, text)| (subject.as_str(), request.as_str(), text.as_str()))
    });
    let known: BTreeSet<Line<'_>> = known.collect();
    let occur: BTreeSet<Line<'_>> = found
        .iter()
        .map(|it| (it.subject.as_str(), it.request.as_str(), it.text.as_str()))
        .collect();
    let line = |(subject, request, text): &Line<'_>| format!("{subject} {request} @{text}");
    let new = occur.difference(&known).map(|it| format!("new: {}", line(it)));
    let gone = known
        .difference(&occur)
        .map(|it| format!("in the list, but it does not occur: {}", line(it)));
    new.chain(gone).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::difference::Kind;

    fn difference(subject: &str, request: &str, text: &str) -> Difference {
        Difference {
            subject: subject.to_owned(),
            request: request.to_owned(),
            kind: Kind::Value,
            text: text.to_owned(),
        }
    }

    fn some() -> Vec<Difference> {
        vec![
            difference("01-nodes", "2 GET /v1/nodes/{node}", "1-115: status 404, not 200"),
            difference("01-nodes", "2 GET /v1/nodes/{node}", "7: /a is \"it's\", not null"),
            difference("01-nodes", "10 WAIT /v1/nodes {\"a: b\":null}", "115: not run: no {node}"),
            difference("02-ports", "2 GET /v1/nodes/{node}", "0: /a is missing"),
        ]
    }

    #[test]
    fn the_list_is_read_as_it_was_written() {
        let written = text(&some());
        let known = read(&written).unwrap();
        assert_eq!(check(&known, &some()), Vec::<String>::new());
        let lines: Vec<&str> = written.lines().skip(HEAD.lines().count()).collect();
        assert_eq!(
            lines[..4],
            [
                "01-nodes:",
                "  2 GET /v1/nodes/{node}:",
                "  - \"1-115: status 404, not 200\"",
                "  - '7: /a is \"it''s\", not null'",
            ]
        );
        assert_eq!(read(&text(&[])).unwrap(), Known::new());
    }

    #[test]
    fn a_new_difference_and_one_that_is_gone_are_problems() {
        let mut known = some();
        let gone = known.remove(0);
        let found =
            [&known[..], &[difference("02-ports", "3 GET /", "1: status 500, not 200")]].concat();
        known.insert(0, gone);
        let problems = check(&read(&text(&known)).unwrap(), &found);
        assert_eq!(
            problems,
            [
                "new: 02-ports 3 GET / @1: status 500, not 200",
                "in the list, but it does not occur: 01-nodes 2 GET /v1/nodes/{node} @1-115: status 404, not 200",
            ]
        );
    }
}
