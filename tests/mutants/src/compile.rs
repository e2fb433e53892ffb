//! Compiles the woven copy and finds the mutants that the compiler refuses.

use std::collections::BTreeSet;
use std::io::BufRead as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::list::Number;
use crate::tree::{Refusals, Tree};
use crate::weave::{Function, mutants_at, returns_before};

#[derive(Clone, Debug)]
pub(crate) struct TestProgram {
    pub(crate) package: String,
    pub(crate) path: PathBuf,
    /// The folder that cargo runs the tests in.
    pub(crate) folder: PathBuf,
}

/// The end of a build of woven code.
pub(crate) enum Build {
    Ready(Vec<TestProgram>),
    /// The compiler does not accept these mutants and ordinary functions. Without them it may refuse others.
    Refused(Refusals),
}

#[derive(Deserialize)]
struct Message {
    reason: String,
    #[serde(default)]
    manifest_path: PathBuf,
    target: Option<Target>,
    message: Option<Diagnostic>,
    profile: Option<Profile>,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

#[derive(Deserialize)]
struct Diagnostic {
    level: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    spans: Vec<DiagnosticSpan>,
    #[serde(default)]
    children: Vec<Diagnostic>,
    rendered: Option<String>,
}

#[derive(Deserialize)]
struct DiagnosticSpan {
    file_name: PathBuf,
    byte_start: usize,
    is_primary: bool,
    expansion: Option<Box<Expansion>>,
}

#[derive(Deserialize)]
struct Expansion {
    span: DiagnosticSpan,
}

/// Builds the tests of `packages` in the woven copy.
///
/// # Errors
///
/// Fails if the errors of the compiler lead to no mutant.
pub(crate) fn test_programs(
    tree: &Tree,
    packages: &BTreeSet<String>,
    build: &Path,
) -> Result<Build> {
    // A check is quicker than a build, and finds all errors but those of evaluated arithmetic.
    for arguments in [["check", "--tests", "--keep-going"], ["build", "--tests", "--keep-going"]] {
        let messages = cargo(tree, packages, build, &arguments)?;
        let errors: Vec<&Diagnostic> = messages
            .iter()
            .filter_map(|message| message.message.as_ref())
            .filter(|message| message.level == "error" && !message.spans.is_empty())
            .collect();
        let mut refused = Refusals::default();
        for error in &errors {
            match constant(&tree.ordinary, &error.message) {
                Some(function) => drop(refused.constant.insert(function)),
                None => refused.mutants.extend(guilty(tree, error)),
            }
        }
        if !refused.is_empty() {
            return Ok(Build::Refused(refused));
        }
        if !errors.is_empty() {
            let texts = errors.iter().filter_map(|error| error.rendered.as_deref());
            bail!("errors without a mutant:\n{}", texts.collect::<Vec<_>>().join("\n"));
        }
        let programs: Vec<TestProgram> = messages.into_iter().filter_map(test_program).collect();
        if !programs.is_empty() {
            return Ok(Build::Ready(programs));
        }
    }
    bail!("cargo built no tests: run it in {}", tree.root.display())
}

fn test_program(message: Message) -> Option<TestProgram> {
    let path = message.executable?;
    let is_test = message.profile?.test && message.target?.kind != ["example"];
    let folder = message.manifest_path.parent()?.to_owned();
    let package = folder.file_name()?.to_string_lossy().into_owned();
    is_test.then_some(TestProgram { package, path, folder })
}

/// Runs cargo in the copy, and returns what it says of artifacts and of the compiler.
fn cargo(
    tree: &Tree,
    packages: &BTreeSet<String>,
    build: &Path,
    arguments: &[&str],
) -> Result<Vec<Message>> {
    let mut child = Command::new("cargo")
        .args(arguments)
        .args(["--locked", "--quiet", "--message-format=json"])
        .args(packages.iter().flat_map(|package| ["-p", package]))
        .current_dir(&tree.root)
        .env("CARGO_TARGET_DIR", build)
        // A plain compiler: clippy's warnings about woven code help nobody.
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env_remove("CLIPPY_ARGS")
        .env("CARGO_INCREMENTAL", "0")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot run cargo")?;
    let output = child.stdout.take().context("cargo has no output")?;
    let mut messages = Vec::new();
    for line in std::io::BufReader::new(output).lines() {
        let line = line?;
        if line.starts_with('{') {
            let message: Message = serde_json::from_str(&line).with_context(|| line.clone())?;
            if message.reason != "build-finished" {
                messages.push(message);
            }
        }
    }
    child.wait()?;
    Ok(messages)
}

fn guilty(tree: &Tree, diagnostic: &Diagnostic) -> BTreeSet<Number> {
    let spans = diagnostic.spans.iter();
    // The primary span first; a span of the explanation if the primary span is in original code.
    let primary = spans.clone().filter(|span| span.is_primary);
    let others = spans.filter(|span| !span.is_primary);
    let explained = diagnostic.children.iter().flat_map(|child| &child.spans);
    for span in primary.chain(others).chain(explained) {
        let mut place = Some(span);
        while let Some(span) = place {
            if let Some(woven) = tree.woven.get(&span.file_name)
                && let Some(number) = mutants_at(woven, span.byte_start).first()
            {
                return BTreeSet::from([*number]);
            }
            place = span.expansion.as_ref().map(|expansion| &expansion.span);
        }
    }
    // The values of a function decide the types in its code.
    let primary = diagnostic.spans.iter().find(|span| span.is_primary);
    let woven = primary.and_then(|span| Some((tree.woven.get(&span.file_name)?, span.byte_start)));
    woven
        .map(|(text, offset)| returns_before(text, offset))
        .unwrap_or_default()
        .into_iter()
        .collect()
}

/// Returns the function of `ordinary` that a constant calls, if the `message` of the compiler says so:
/// "cannot call non-const method `power::PowerState::as_str` in constants" (E0015).
fn constant(ordinary: &BTreeSet<Function>, message: &str) -> Option<Function> {
    let path = message.strip_prefix("cannot call non-const ")?.split('`').nth(1)?;
    let mut depth = 0;
    let mut plain = String::new();
    for character in path.chars() {
        depth += i32::from(character == '<');
        if depth == 0 {
            plain.push(character);
        }
        depth -= i32::from(character == '>');
    }
    let mut names = plain.rsplit("::").filter(|name| !name.is_empty());
    let name = names.next()?;
    let of_type = names.next().map(|of| format!("{of}::{name}"));
    of_type.into_iter().chain([name.to_owned()]).find(|function| ordinary.contains(function))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compiler_names_the_function_that_a_constant_calls() {
        let ordinary = ["S::new", "b"].map(str::to_owned).into();
        let named = |what: &str| constant(&ordinary, &format!("cannot call non-const {what}"));
        for (what, function) in [
            ("method `m::S::new` in constants", Some("S::new")),
            ("associated function `m::S::<Vec<u8>>::new` in statics", Some("S::new")),
            ("function `m::b::<u8>` in constant functions", Some("b")),
            ("function `b` in constants", Some("b")),
            ("associated function `m::T::new` in constants", None),
            ("function `c` in constants", None),
        ] {
            assert_eq!(named(what).as_deref(), function, "{what}");
        }
        assert_eq!(constant(&ordinary, "mismatched types in `b`"), None);
    }
}
