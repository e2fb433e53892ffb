//! Checks that all dependencies have permissive licences.

use tidy::{assert_none, graph};

/// Licences that only require their text to be passed on with the code. Add another licence here only with the reason. 0BSD, which requires
/// nothing, is the licence of the crate that encodes mail.
const PERMISSIVE: [&str; 8] =
    ["0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "Unicode-3.0", "Zlib"];

#[test]
fn every_dependency_is_permissively_licensed() {
    let graph = graph();
    let wrong = graph.packages().filter_map(|package| {
        let licence = package.license.as_deref().unwrap_or("none");
        let name = format!("{} {}: {licence}", package.name, package.version);
        (!permits(licence)).then_some(name)
    });
    assert_none("dependencies whose licences are not on the list", wrong);
}

/// Whether permissive licences alone satisfy an SPDX expression. `AND` binds more tightly than `OR` (SPDX 2.3 annex D.4); a slash is the
/// `OR` of older manifests.
fn permits(expression: &str) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words = spaced.split_whitespace().peekable();
    let answer = any(&mut words);
    answer && words.next().is_none()
}

type Words<'t> = std::iter::Peekable<std::str::SplitWhitespace<'t>>;

fn any(words: &mut Words<'_>) -> bool {
    let mut answer = all(words);
    while words.next_if_eq(&"OR").is_some() {
        answer |= all(words);
    }
    answer
}

fn all(words: &mut Words<'_>) -> bool {
    let mut answer = one(words);
    while words.next_if_eq(&"AND").is_some() {
        answer &= one(words);
    }
    answer
}

fn one(words: &mut Words<'_>) -> bool {
    if words.next_if_eq(&"(").is_some() {
        let answer = any(words);
        return words.next() == Some(")") && answer;
    }
    let known = words.next().is_some_and(|name| PERMISSIVE.contains(&name));
    // An exception only adds permissions.
    if words.next_if_eq(&"WITH").is_some() {
        words.next();
    }
    known
}

#[test]
fn licence_expressions_follow_spdx() {
    for good in [
        "MIT",
        "MIT/Apache-2.0",
        "GPL-2.0-only OR MIT",
        "(MIT OR GPL-2.0-only) AND ISC",
        "Apache-2.0 WITH LLVM-exception OR MIT",
        "MIT OR GPL-3.0-only AND AGPL-3.0-only",
    ] {
        assert!(permits(good), "{good}");
    }
    for bad in ["GPL-3.0-only", "MIT AND GPL-3.0-only", "(MIT", "MIT)", "", "none", "MIT MIT"] {
        assert!(!permits(bad), "{bad}");
    }
}
