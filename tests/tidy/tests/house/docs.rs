//! Checks that every file, and every public type, function and constant has a doc comment.
//!
//! The `missing_docs` lint of the compiler would also require comments on fields and variants. A field with a clear name needs no comment,
//! and a comment that repeats the name hides the useful ones.

use tidy::{TextFile, assert_none, text_files};

const ITEMS: [&str; 9] = [
    "pub fn ",
    "pub async fn ",
    "pub const fn ",
    "pub struct ",
    "pub enum ",
    "pub trait ",
    "pub type ",
    "pub const ",
    "pub static ",
];

#[test]
fn every_public_item_has_a_doc_comment() {
    let wrong = sources().flat_map(|file| {
        let lines: Vec<&str> = file.text.lines().map(str::trim_start).collect();
        let items =
            (0..lines.len()).filter(|at| ITEMS.iter().any(|item| lines[*at].starts_with(item)));
        // `$name` stands in a macro, whose callers write the comment.
        let bare = items.filter(|at| !lines[*at].contains('$') && !is_documented(&lines[..*at]));
        bare.map(|at| format!("{}:{}: {}", file.path, at + 1, lines[at])).collect::<Vec<_>>()
    });
    assert_none("public items without a doc comment", wrong);
}

#[test]
fn every_file_begins_with_a_description() {
    // A file with only unit tests is read next to the module it tests, so it needs no description.
    let files = sources().filter(|file| !file.path.ends_with("/tests.rs"));
    let bare = files.filter(|file| {
        let first = file.text.lines().find(|line| !line.starts_with("#![") && !line.is_empty());
        !first.is_some_and(|line| line.starts_with("//!"))
            && !file.text.contains("#![doc = include_str!")
    });
    assert_none("files that do not begin with //!", bare.map(|file| file.path));
}

fn sources() -> impl Iterator<Item = TextFile> {
    text_files().into_iter().filter(|file| file.path.ends_with(".rs"))
}

/// Whether the lines before an item end with a doc comment, or with attributes that follow a doc comment.
fn is_documented(before: &[&str]) -> bool {
    let mut depth = 0_i32;
    for line in before.iter().rev() {
        // An attribute over several lines is read backwards, from its closing to its opening bracket.
        depth += closings(line) - openings(line);
        let is_attribute = depth > 0 || line.starts_with("#[") || line.ends_with(")]");
        if line.starts_with("///") || line.starts_with("#[doc") || line.starts_with("/**") {
            return true;
        }
        if !is_attribute {
            return false;
        }
    }
    false
}

fn closings(line: &str) -> i32 {
    if line == ")]" { 1 } else { 0 }
}

fn openings(line: &str) -> i32 {
    if line.starts_with("#[") && line.ends_with('(') { 1 } else { 0 }
}
