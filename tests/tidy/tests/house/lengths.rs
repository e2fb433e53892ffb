//! Checks that a reader takes in a function at once: it does one thing, or it names the steps of what it does.
//!
//! Functions of tests are not counted, because a table of cases or the story of a scenario may be long.

use std::collections::BTreeMap;

use tidy::{assert_none, text_files};

/// The most lines of a function, with its signature. Most functions fit in half of it.
const MOST: usize = 60;

/// The functions that may be longer: the file, the name and the most lines. Each is a flat table or match.
const LONGER: [(&str, &str, usize); 4] = [
    ("drivers/ipmi/src/commands/event_text.rs", "sensor_state", 75),
    ("services/baremetal-core/src/join.rs", "plan_join", 70),
    ("services/baremetal-core/src/plan/command.rs", "plan_command", 70),
    ("services/cluster-core/src/sample.rs", "perform", 70),
];

#[test]
fn a_function_fits_on_a_screen() {
    let files = text_files();
    let mut unused: BTreeMap<(&str, &str), usize> =
        LONGER.iter().map(|(file, name, most)| ((*file, *name), *most)).collect();
    let allowed = unused.clone();
    let (mut wrong, mut counted) = (Vec::new(), 0);
    for file in files.iter().filter(|file| is_counted(&file.path)) {
        for found in functions(without_tests(&file.text)) {
            counted += 1;
            let Function { name, line, lines } = found;
            if lines <= MOST {
                continue;
            }
            let key = (file.path.as_str(), name);
            unused.remove(&key);
            let most = allowed.get(&key).copied().unwrap_or(MOST);
            if lines > most {
                let path = &file.path;
                wrong.push(format!("{path}:{line}: {name} has {lines} lines of {most}"));
            }
        }
    }
    assert!(counted > 5000, "only {counted} functions were found");
    assert_none("functions that are too long", wrong);
    let unused = unused.keys().map(|(file, name)| format!("{file}: {name}"));
    assert_none("exceptions in LONGER that no function needs any more", unused);
}

#[test]
fn the_length_of_a_function_is_counted_from_its_signature() {
    let text = "
impl A {
    /// Not counted.
    pub(crate) async fn short(
        self,
    ) -> u8 {
        0
    }
}
trait B {
    fn bodyless(&self);
    fn one_line(&self) {}
    fn last(&self) {
        fn inner() {
        }
    }
}
#[cfg(test)]
mod tests {
    fn of_a_test() {
    }
}
";
    let found: Vec<(&str, usize, usize)> =
        functions(without_tests(text)).map(|it| (it.name, it.line, it.lines)).collect();
    assert_eq!(found, [("short", 4, 5), ("last", 13, 4), ("inner", 14, 2)]);
}

/// Whether the functions of a file are counted.
fn is_counted(path: &str) -> bool {
    let layers = ["services/", "drivers/"];
    path.ends_with(".rs")
        && layers.iter().any(|layer| path.starts_with(layer))
        && path.contains("/src/")
        && !path.contains("/tests/")
        && !path.ends_with("/tests.rs")
}

/// The text before the unit tests, which end a file.
fn without_tests(text: &str) -> &str {
    text.find("\nmod tests {").map_or(text, |at| &text[..at])
}

/// A function with a body of more than one line.
struct Function<'t> {
    name: &'t str,
    line: usize,
    lines: usize,
}

/// Finds the functions in formatted source: a body ends with a bracket that is indented as the signature is.
fn functions(text: &str) -> impl Iterator<Item = Function<'_>> {
    let lines: Vec<&str> = text.lines().collect();
    (0..lines.len()).filter_map(move |at| {
        let (indent, name) = signature(lines[at])?;
        let ends = |line: &&str| line.ends_with(['{', '}', ';']);
        let opening = lines[at..].iter().position(ends)?;
        if !lines[at + opening].ends_with('{') {
            return None;
        }
        let closing = |line: &&str| line.strip_prefix(indent) == Some("}");
        let last = lines[at..].iter().position(closing)?;
        Some(Function { name, line: at + 1, lines: last + 1 })
    })
}

/// The indentation and the name of the function whose signature begins on this line.
fn signature(line: &str) -> Option<(&str, &str)> {
    let code = line.trim_start();
    let indent = &line[..line.len() - code.len()];
    let (before, after) = code.split_once("fn ")?;
    let words = ["pub", "pub(crate)", "pub(super)", "const", "async", "unsafe", "extern", "\"C\""];
    if !before.split_whitespace().all(|word| words.contains(&word)) {
        return None;
    }
    let end = after.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    Some((indent, &after[..end]))
}
