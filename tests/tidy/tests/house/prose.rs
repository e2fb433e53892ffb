//! How comments read: plain sentences with the actor as the subject.
//!
//! A counter cannot tell whether a comment is clear. It can tell that a habit is back which made one comment in five be read twice: a
//! clause in the place of the subject ("What is asked for …", "Those that …"), and comments of three words that repeat a name.

use std::collections::BTreeMap;

use tidy::{assert_none, text_files};

/// The most sentences of a crate that open with a clause or a bare "Those", in thousandths.
const CLAUSES: usize = 5;
/// The most comments of a crate that have one to three words, in thousandths.
const SHORT: usize = 80;
/// The most sentences of a crate of more than 25 words, in thousandths.
const LONG: usize = 25;
/// Crates with fewer sentences are judged with this many: one bad sentence of twenty is no habit.
const FEW: usize = 200;

const OPENINGS: [&str; 8] = ["What", "Who", "Whoever", "Whom", "Whose", "Whatever", "Those", "Of"];
/// An "Of" opens a clause before one of these words alone.
const AFTER_OF: [&str; 4] = ["which", "whom", "those", "what"];

#[derive(Default)]
struct Counted {
    comments: usize,
    short: usize,
    sentences: usize,
    long: usize,
    clauses: Vec<String>,
}

#[test]
fn comments_are_plain_sentences() {
    let mut crates: BTreeMap<String, Counted> = BTreeMap::new();
    for file in text_files().iter().filter(|file| file.path.ends_with(".rs")) {
        let mut folders = file.path.splitn(3, '/');
        let (Some(tower), Some(name)) = (folders.next(), folders.next()) else { continue };
        let counted = crates.entry(format!("{tower}/{name}")).or_default();
        for comment in comments(&file.text) {
            count(counted, &comment, &file.path);
        }
    }
    assert!(crates.len() > 40, "only {} folders with Rust were found", crates.len());
    let too_many = |bad: usize, all: usize, most: usize| bad * 1000 > most * all.max(FEW);
    let wrong = crates.iter().flat_map(|(name, counted)| {
        let mut wrong = Vec::new();
        if too_many(counted.clauses.len(), counted.sentences, CLAUSES) {
            let examples = counted.clauses.iter().take(5).map(|it| format!("\n    {it}"));
            let count = counted.clauses.len();
            wrong.push(format!(
                "{name}: {count} sentences open with a clause:{}",
                examples.collect::<String>()
            ));
        }
        if too_many(counted.short, counted.comments, SHORT) {
            wrong.push(format!(
                "{name}: {} of {} comments have three words or fewer",
                counted.short, counted.comments
            ));
        }
        if too_many(counted.long, counted.sentences, LONG) {
            wrong.push(format!(
                "{name}: {} of {} sentences have more than 25 words",
                counted.long, counted.sentences
            ));
        }
        wrong
    });
    assert_none("comments that are hard to read", wrong);
}

#[test]
fn the_counter_finds_what_it_looks_for() {
    let text = "/// What is asked for. Of which none is left;\n/// a port of the node.\nfn a() {}\n// The id.\nlet b = 1;\n";
    let mut counted = Counted::default();
    for comment in comments(text) {
        count(&mut counted, &comment, "a.rs");
    }
    assert_eq!((counted.comments, counted.short, counted.sentences), (2, 1, 4));
    assert_eq!(counted.clauses.len(), 2, "{:?}", counted.clauses);
}

/// The comments of a source: the text of neighbouring comment lines, without code blocks.
fn comments(text: &str) -> Vec<String> {
    let mut comments = Vec::new();
    let mut open = String::new();
    for line in text.lines().chain([""]) {
        let line = line.trim_start();
        if let Some(rest) = line.strip_prefix("//") {
            open += rest.trim_start_matches(['/', '!']).trim_start();
            open.push(' ');
        } else if !open.is_empty() {
            let prose = open.split("```").step_by(2).collect::<String>();
            comments.push(prose);
            open.clear();
        }
    }
    comments
}

fn count(counted: &mut Counted, comment: &str, path: &str) {
    let words = comment.split_whitespace().count();
    counted.comments += 1;
    counted.short += usize::from((1..=3).contains(&words));
    for words in sentences(comment) {
        let [first, second, ..] = words[..] else { continue };
        counted.sentences += 1;
        counted.long += usize::from(words.len() > 25);
        if OPENINGS.contains(&first) && (first != "Of" || AFTER_OF.contains(&second)) {
            counted.clauses.push(format!("{path}: {}", words.join(" ")));
        }
    }
}

/// The sentences of a comment, as words; a stop mark counts only at the end of a word.
fn sentences(comment: &str) -> Vec<Vec<&str>> {
    let words: Vec<&str> = comment.split_whitespace().collect();
    let ends = |word: &&str| word.ends_with(['.', '!', '?', ':', ';']);
    words.split_inclusive(ends).map(<[&str]>::to_vec).collect()
}
