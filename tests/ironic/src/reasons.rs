//! The reasons for the differences that stay, `reasons.yaml`: each known difference belongs to a group.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::known::{self, Known};

/// Differences that stay for one reason.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    why: String,
    /// Parts of the texts of the differences.
    #[serde(default)]
    texts: Vec<String>,
    /// The places of the requests in each file, all of whose differences belong to the group.
    #[serde(default)]
    requests: BTreeMap<String, Vec<usize>>,
}

/// Compares the reasons with the `differences`. Returns a line for each difference without a reason, and for each part of a group that
/// no difference has.
///
/// # Errors
///
/// Fails if a file cannot be read.
pub fn problems(reasons: &Path, differences: &Path) -> Result<Vec<String>> {
    let name = || reasons.display().to_string();
    let text = fs::read_to_string(reasons).with_context(name)?;
    let groups: Vec<Group> = serde_saphyr::from_str(&text).with_context(name)?;
    Ok(check(&groups, &known::read_file(differences)?))
}

fn check(groups: &[Group], known: &Known) -> Vec<String> {
    let mut problems = Vec::new();
    for (file, request, text) in lines(known) {
        if !groups.iter().any(|group| group.has(file, request, text)) {
            problems.push(format!("no group of the reasons has: {file} {request} @{text}"));
        }
    }
    for group in groups {
        for part in &group.texts {
            if !lines(known).any(|(_, _, text)| text.contains(part)) {
                problems.push(format!("no difference has the text {part:?} of: {}", group.why));
            }
        }
        for (file, places) in &group.requests {
            for place in places {
                if !lines(known).any(|it| it.0 == file && place_of(it.1) == Some(*place)) {
                    problems.push(format!("no difference in {file} {place} of: {}", group.why));
                }
            }
        }
    }
    problems
}

impl Group {
    fn has(&self, file: &str, request: &str, text: &str) -> bool {
        let places = self.requests.get(file).map(Vec::as_slice).unwrap_or_default();
        let is_named = place_of(request).is_some_and(|place| places.contains(&place));
        is_named || self.texts.iter().any(|part| text.contains(part))
    }
}

fn lines(known: &Known) -> impl Iterator<Item = (&str, &str, &str)> {
    known.iter().flat_map(|(file, requests)| {
        requests.iter().flat_map(move |(request, texts)| {
            texts.iter().map(move |text| (file.as_str(), request.as_str(), text.as_str()))
        })
    })
}

/// The place of a request in its file.
fn place_of(request: &str) -> Option<usize> {
    request.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_difference_has_a_reason_and_each_reason_a_difference() {
        let known = |text: &str| {
            let requests = BTreeMap::from([("3 GET /v1".to_owned(), vec![text.to_owned()])]);
            Known::from([("01-nodes".to_owned(), requests)])
        };
        let group = |texts: &[&str], places: &[usize]| Group {
            why: "a reason".to_owned(),
            texts: texts.iter().map(|text| (*text).to_owned()).collect(),
            requests: BTreeMap::from([("01-nodes".to_owned(), places.to_vec())]),
        };
        assert!(check(&[group(&["a is 2"], &[])], &known("1: /a is 2, not 1")).is_empty());
        assert!(check(&[group(&[], &[3])], &known("1: /a is 2, not 1")).is_empty());
        assert_eq!(check(&[], &known("1: /a is 2, not 1")).len(), 1);
        assert_eq!(check(&[group(&["/b"], &[3, 4])], &known("1: /a is 2, not 1")).len(), 2);
    }
}
