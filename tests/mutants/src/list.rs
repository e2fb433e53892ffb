//! The mutants that cargo-mutants lists.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

/// The number of a mutant in a run: its place in the list.
pub(crate) type Number = usize;

/// A change of one place in the code, as `cargo mutants --list --json` prints it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Mutant {
    pub(crate) package: String,
    pub(crate) file: PathBuf,
    pub(crate) genre: Genre,
    pub(crate) name: String,
    pub(crate) replacement: String,
    pub(crate) span: Region,
}

/// The kinds of changes that cargo-mutants makes.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub(crate) enum Genre {
    FnValue,
    BinaryOperator,
    UnaryOperator,
    MatchArm,
    MatchArmGuard,
    StructField,
}

/// The changed text of a file.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Region {
    pub(crate) start: Position,
}

/// A place in a file. Lines and columns count from 1, and columns count characters.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Position {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

impl Position {
    /// Returns the byte offset of this place in `text`, or the end of `text` if it has no such place.
    pub(crate) fn offset(self, text: &str) -> usize {
        let mut begin = 0;
        for (at, line) in text.split_inclusive('\n').enumerate() {
            if at + 1 == self.line {
                let column = line.char_indices().nth(self.column - 1);
                return begin + column.map_or(line.len(), |(offset, _)| offset);
            }
            begin += line.len();
        }
        text.len()
    }
}

/// Lists the mutants of the workspace at `root`. `options` select some of them and are those of cargo-mutants.
pub(crate) fn list(cargo_mutants: &Path, root: &Path, options: &[String]) -> Result<Vec<Mutant>> {
    let listed = Command::new(cargo_mutants)
        .args(["mutants", "--list", "--json"])
        .args(options)
        .current_dir(root)
        .output()
        .with_context(|| format!("cannot run {}", cargo_mutants.display()))?;
    ensure!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    serde_json::from_slice(&listed.stdout).context("cargo-mutants printed no list of mutants")
}
