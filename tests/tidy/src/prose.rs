//! The prose of a file: text that people read, without code.

/// A comment, a paragraph or a string.
pub struct Prose {
    /// The first line of the text.
    pub line: usize,
    /// The text, with single spaces.
    pub text: String,
}

/// The prose of a file by its path: comments and strings of Rust, comments of scripts and configurations, and whole documents.
pub fn prose(path: &str, text: &str) -> Vec<Prose> {
    let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
    match extension {
        "rs" => of_rust(text),
        "md" | "html" => of_lines(text, ""),
        "sql" => of_lines(text, "--"),
        "css" | "js" | "json" | "lock" | "svg" => Vec::new(),
        _ => of_lines(text, "#"),
    }
}

/// The runs of neighbouring lines that begin with `mark`; without a mark, the runs of lines that are not empty.
fn of_lines(text: &str, mark: &str) -> Vec<Prose> {
    let mut found = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let words = line.trim().strip_prefix(mark).filter(|words| !words.trim().is_empty());
        extend(&mut found, at, words);
    }
    found.retain(|it: &Prose| !it.text.is_empty());
    found
}

/// Adds a line to the prose before it, or begins new prose after a line without words.
fn extend(found: &mut Vec<Prose>, at: usize, words: Option<&str>) {
    let begin = || Prose { line: at + 2, text: String::new() };
    match (words, found.last_mut()) {
        (Some(words), Some(last)) => {
            last.line = if last.text.is_empty() { at + 1 } else { last.line };
            append(&mut last.text, words);
        }
        (Some(words), None) => {
            let mut text = String::new();
            append(&mut text, words);
            found.push(Prose { line: at + 1, text });
        }
        (None, _) => found.push(begin()),
    }
}

fn append(text: &mut String, words: &str) {
    for word in words.split_whitespace() {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(word);
    }
}

/// The comments and the strings with more than one word.
fn of_rust(text: &str) -> Vec<Prose> {
    let mut strings = Vec::new();
    let mut comments = Vec::new();
    let mut rest = text;
    let line_of = |rest: &str| text[..text.len() - rest.len()].matches('\n').count();
    let mut last_comment = None;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            let length = rest.find('\n').unwrap_or(rest.len());
            let at = line_of(rest);
            if last_comment != Some(at.wrapping_sub(1)) {
                extend(&mut comments, at, None);
            }
            last_comment = Some(at);
            extend(&mut comments, at, Some(rest[..length].trim_start_matches(['/', '!'])));
            length
        } else if let Some((length, inside)) = string(rest) {
            if inside.contains(char::is_whitespace) {
                let mut words = String::new();
                append(&mut words, &inside.replace("\\n", " ").replace("\\\n", " "));
                strings.push(Prose { line: line_of(rest) + 1, text: words });
            }
            length
        } else if first == '\'' {
            character(rest)
        } else {
            // A name is passed as a whole, so that an `r` at its end opens no string.
            let is_name = |c: char| c.is_alphanumeric() || c == '_';
            let name = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
            name.max(first.len_utf8())
        };
        rest = &rest[length..];
    }
    comments.retain(|it: &Prose| !it.text.is_empty());
    comments.into_iter().chain(strings).collect()
}

/// The string that begins `rest`: its whole length, and its inside.
fn string(rest: &str) -> Option<(usize, &str)> {
    let opened = rest.trim_start_matches(['b', 'c']);
    if rest.len() - opened.len() > 1 {
        return None;
    }
    let raw = opened.strip_prefix('r');
    let hashes = raw.map_or(0, |raw| raw.len() - raw.trim_start_matches('#').len());
    let inside = raw.unwrap_or(opened)[hashes..].strip_prefix('"')?;
    let end = match raw {
        Some(_) => inside.find(&format!("\"{}", "#".repeat(hashes)))?,
        None => {
            let mut escaped = false;
            inside.find(|c| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            })?
        }
    };
    Some((rest.len() - inside.len() + end + 1 + hashes, &inside[..end]))
}

/// The length of the character that begins `rest`, or of the quote of a lifetime.
fn character(rest: &str) -> usize {
    let inside = &rest[1..];
    if let Some(escaped) = inside.strip_prefix('\\') {
        return 2 + escaped
            .char_indices()
            .skip(1)
            .find(|(_, c)| *c == '\'')
            .map_or(0, |(at, _)| at + 1);
    }
    let mut letters = inside.char_indices();
    let end = letters.nth(1).filter(|(_, second)| *second == '\'');
    end.map_or(1, |(at, _)| at + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, text: &str, want: &[(usize, &str)]) {
        let found = prose(path, text);
        let found: Vec<_> = found.iter().map(|it| (it.line, it.text.as_str())).collect();
        assert_eq!(found, want);
    }

    #[test]
    fn comments_and_strings_of_rust_are_prose() {
        check(
            "a.rs",
            "//! One\n//! two.\n\n/// Three\nfn four<'a>(five: &'a str) { // six\n    \
             let seven = (\"eight\", \"nine \\\" ten \\\n  eleven\", 'x', '\"', '\\'', \"twelve 13\");\n}\n// fourteen",
            &[
                (1, "One two."),
                (4, "Three six"),
                (9, "fourteen"),
                (6, "nine \\\" ten eleven"),
                (7, "twelve 13"),
            ],
        );
    }

    #[test]
    fn raw_strings_end_at_their_hashes() {
        let text = "let r = (r#\"a \"b\" c\"#, br\"d e\", b\"f g\", bar(\"// h i\"));";
        check("a.rs", text, &[(1, "a \"b\" c"), (1, "d e"), (1, "f g"), (1, "// h i")]);
    }

    #[test]
    fn other_files_have_comments_or_are_documents() {
        check("a.md", "# One\ntwo\n\nthree", &[(1, "# One two"), (4, "three")]);
        check("a.toml", "# one\n#  two\nthree = 4\n\n# five", &[(1, "one two"), (5, "five")]);
        check("a.sql", "-- one\nselect two", &[(1, "one")]);
        check("a.js", "// one", &[]);
    }
}
