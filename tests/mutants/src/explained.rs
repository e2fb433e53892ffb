//! The explanations of mutants that no test catches.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Deserialize;

/// A mutant in `explained.toml`: `FILE: CHANGE | LINE`, where `LINE` is the text of the changed line. An entry has no line number, so that
/// the entry stays true when lines move. Mutants that differ only in their place share an entry.
pub(crate) type Entry = String;

/// The content of `explained.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Explanations {
    #[serde(default)]
    group: Vec<Group>,
}

/// Mutants with the same explanation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    why: String,
    mutants: Vec<Entry>,
}

/// The outcomes of a run.
#[derive(Debug, Default)]
pub(crate) struct Tried {
    /// Mutants that no test noticed.
    pub(crate) survived: BTreeSet<Entry>,
    /// Mutants that a test caught.
    pub(crate) caught: BTreeSet<Entry>,
}

impl Explanations {
    /// Reads `explained.toml`.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, or is no list of groups.
    pub(crate) fn load(path: &Path) -> Result<Explanations> {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        toml::from_str(&text).with_context(|| path.display().to_string())
    }

    /// Compares the explanations with a run, and returns a line for each difference. `listed` are all mutants of the workspace.
    pub(crate) fn differences(&self, listed: &BTreeSet<Entry>, tried: &Tried) -> Vec<String> {
        let mut explained: BTreeMap<&Entry, usize> = BTreeMap::new();
        let mut found = Vec::new();
        for group in &self.group {
            if group.why.trim().is_empty() {
                found.push(format!("a group explains nothing: {:?}", group.mutants));
            }
            for entry in &group.mutants {
                *explained.entry(entry).or_default() += 1;
            }
        }
        for (entry, times) in &explained {
            let problem = if *times > 1 {
                "explained twice"
            } else if !listed.contains(*entry) {
                "explained, but there is no such mutant"
            } else if tried.caught.contains(*entry) && !tried.survived.contains(*entry) {
                "explained, but a test catches it"
            } else {
                continue;
            };
            found.push(format!("{problem}:\n  {},", quoted(entry)));
        }
        let unexplained = tried.survived.iter().filter(|entry| !explained.contains_key(entry));
        found.extend(unexplained.map(|entry| format!("no test fails:\n  {},", quoted(entry))));
        found
    }
}

/// Returns the entry of a mutant. `name` is its name in cargo-mutants: `FILE:LINE:COLUMN: CHANGE`.
///
/// # Errors
///
/// Fails if the workspace at `root` has no such line.
pub(crate) fn entry(name: &str, root: &Path) -> Result<Entry> {
    let mut parts = name.splitn(4, ':');
    let mut part = || parts.next().with_context(|| format!("{name} is not the name of a mutant"));
    let (file, line, _column, change) = (part()?, part()?, part()?, part()?);
    let number: usize = line.parse().with_context(|| name.to_owned())?;
    let text = fs::read_to_string(root.join(file)).with_context(|| file.to_owned())?;
    let line = text
        .lines()
        .nth(number - 1)
        .with_context(|| format!("{file} has no line {number}; run tests/mutants.sh again"))?;
    Ok(format!("{file}:{change} | {}", line.trim()))
}

/// Returns an entry as TOML, with as few escapes as possible.
fn quoted(entry: &str) -> String {
    toml::Value::from(entry).to_string()
}

#[cfg(test)]
mod tests;
