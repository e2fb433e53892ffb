//! Which items have a doc comment: every public type, function and constant, and every file.
//!
//! The compiler's `missing_docs` would also ask for the fields of a struct and the variants of an enum. A field whose name says all needs
//! no comment, and a comment that repeats the name hides the ones that matter.

use tidy::{TextFile, none, text_files};

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
        // `$name` is the body of a macro, whose caller writes the comment.
        let bare = items.filter(|at| !lines[*at].contains('$') && !is_documented(&lines[..*at]));
        bare.map(|at| format!("{}:{}: {}", file.path, at + 1, lines[at])).collect::<Vec<_>>()
    });
    none("public items without a doc comment", wrong);
}

#[test]
fn every_file_says_what_it_is() {
    // Unit tests that moved to a file of their own are read beside the module that they test.
    let files = sources().filter(|file| !file.path.ends_with("/tests.rs"));
    let bare = files.filter(|file| {
        let first = file.text.lines().find(|line| !line.starts_with("#![") && !line.is_empty());
        !first.is_some_and(|line| line.starts_with("//!"))
            && !file.text.contains("#![doc = include_str!")
    });
    none("files that do not begin with //!", bare.map(|file| file.path));
}

fn sources() -> impl Iterator<Item = TextFile> {
    text_files().into_iter().filter(|file| file.path.ends_with(".rs"))
}

/// Whether the lines before an item end with a doc comment, or with attributes that follow one.
fn is_documented(before: &[&str]) -> bool {
    let mut depth = 0_i32;
    for line in before.iter().rev() {
        // An attribute of several lines is read from its closing bracket back to its opening one.
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
