//! Checks that comments, documents, messages and pages use the words of the glossary.

use std::fs;

use tidy::{assert_none, prose, root, text_files};

/// The heading of the table in ARCHITECTURE.md.
const HEADING: &str = "## Words we do not use\n";

struct Row {
    /// The phrases that nobody should write, in lower case.
    unwanted: Vec<String>,
    /// The phrases to write instead.
    wanted: Vec<String>,
}

/// ARCHITECTURE.md without the table, and the table.
fn map_and_rows() -> (String, Vec<Row>) {
    let map = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("there is a map");
    let (before, after) = map.split_once(HEADING).expect("the map has the table");
    let (table, rest) = after.split_once("\n## ").unwrap_or((after, ""));
    let phrases = |cell: &str| -> Vec<String> {
        cell.split(',').map(|phrase| phrase.trim().to_lowercase()).collect()
    };
    let rows = table.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ");
        Some(Row { unwanted: phrases(cells.next()?), wanted: phrases(cells.next()?) })
    });
    // The first row is the header.
    let rows = rows.skip(1).collect();
    (format!("{before}{rest}"), rows)
}

/// The unwanted phrases of a file, each with its line and the words to write.
fn found(rows: &[Row], path: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for prose in prose(path, text) {
        let words = prose.text.to_lowercase();
        for row in rows {
            // A wanted phrase may contain an unwanted one.
            let words = row.wanted.iter().fold(words.clone(), |words, it| words.replace(it, "…"));
            let unwanted = row.unwanted.iter().filter(|phrase| contains(&words, phrase));
            found.extend(unwanted.map(|phrase| {
                format!("{path}:{}: {phrase} -> {}", prose.line, row.wanted.join(", "))
            }));
        }
    }
    found
}

/// Whether the words of `phrase` are in `text` as whole words.
fn contains(text: &str, phrase: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || "_-".contains(c);
    text.match_indices(phrase).any(|(at, phrase)| {
        let (before, after) = (&text[..at], &text[at + phrase.len()..]);
        !before.ends_with(is_part) && !after.starts_with(is_part)
    })
}

#[test]
fn words_are_those_of_the_glossary() {
    let (map, rows) = map_and_rows();
    let wrong = text_files().into_iter().flat_map(|file| {
        let text = if file.path == "ARCHITECTURE.md" { &map } else { &file.text };
        found(&rows, &file.path, text)
    });
    assert_none("words that the glossary replaces", wrong);
}

#[test]
fn every_unwanted_phrase_is_found() {
    let (_, rows) = map_and_rows();
    assert!(rows.len() > 10, "only {} rows were read", rows.len());
    let phrases = rows.iter().flat_map(|row| &row.unwanted);
    for phrase in phrases {
        let half = phrase.replacen(' ', "\n/// ", 1);
        let capital = phrase[..1].to_uppercase() + &phrase[1..];
        for (path, text) in [
            ("a.rs", format!("/// Here {half} is.\nfn a() {{}}")),
            ("a.rs", format!("bail!(\"{capital} (it is)\")")),
            ("a.md", format!("# {capital}")),
            ("a.html", format!("<h1>{capital}</h1>")),
            ("a.toml", format!("a = 1\n# {phrase}")),
        ] {
            assert_eq!(found(&rows, path, &text).len(), 1, "{text}");
        }
        let code = format!("let {0} = \"{0}\";", phrase.replace([' ', ':', '\''], "_"));
        assert_eq!(found(&rows, "a.rs", &code).len(), 0, "{code}");
    }
}

#[test]
fn a_wanted_phrase_may_contain_an_unwanted_one() {
    let rows = [Row { unwanted: vec!["b".to_owned()], wanted: vec!["a b".to_owned()] }];
    assert_eq!(found(&rows, "x.md", "A b, c-b, b_c and bc").len(), 0);
    assert_eq!(found(&rows, "x.md", "A b, and b.").len(), 1);
}
