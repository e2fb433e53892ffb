//! Parses command lines and environments as described in systemd.service(5) and systemd.exec(5).

use std::collections::BTreeMap;

use anyhow::{Result, bail};

pub(crate) type Environment = BTreeMap<String, String>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Command {
    /// Whether a failure of the command is ignored.
    pub(crate) may_fail: bool,
    words: Vec<String>,
}

impl Command {
    /// Parses the value of `ExecStart=`.
    pub(crate) fn parse(line: &str) -> Result<Self> {
        let plain = line.trim_start_matches('-');
        if plain.starts_with(['@', '+', '!', ':', '|']) {
            bail!("unsupported command prefix: {line}");
        }
        let words = split(plain)?;
        if !words.first().is_some_and(|program| program.starts_with('/')) {
            bail!("the program must be an absolute path: {line}");
        }
        Ok(Command { may_fail: plain.len() < line.len(), words })
    }

    /// The words with variables and specifiers replaced. `$NAME` alone may become several words, `${NAME}` is always one.
    pub(crate) fn words(&self, unit: &str, environment: &Environment) -> Result<Vec<String>> {
        let mut words = Vec::new();
        for word in &self.words {
            let word = replace_specifiers(word, unit)?;
            match word.strip_prefix('$').filter(|name| is_name(name)) {
                Some(name) => {
                    let value = environment.get(name).map_or("", String::as_str);
                    words.extend(split(value)?);
                }
                None => words.push(replace_braced_variables(&word, environment)),
            }
        }
        Ok(words)
    }
}

/// Adds the variables of an `Environment=` line.
pub(crate) fn assign(line: &str, environment: &mut Environment) -> Result<()> {
    for word in split(line)? {
        let Some((name, value)) = word.split_once('=') else { bail!("not NAME=VALUE: {word}") };
        environment.insert(name.to_owned(), value.to_owned());
    }
    Ok(())
}

/// Adds the variables of an environment file.
pub(crate) fn read_file(text: &str, environment: &mut Environment) {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';']));
    for (name, value) in lines.filter_map(|line| line.split_once('=')) {
        let value = value.trim();
        let quoted =
            ['"', '\''].iter().find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote));
        environment.insert(name.trim().to_owned(), quoted.unwrap_or(value).to_owned());
    }
}

/// Splits a line into words at white space, respecting quotes and backslashes.
fn split(line: &str) -> Result<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (_, '\\') => match letters.next() {
                Some('n') => word.get_or_insert_default().push('\n'),
                Some('t') => word.get_or_insert_default().push('\t'),
                Some(other) => word.get_or_insert_default().push(other),
                None => bail!("ends with a backslash: {line}"),
            },
            (None, '"' | '\'') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, _) if letter.is_whitespace() => words.extend(word.take()),
            (_, _) => word.get_or_insert_default().push(letter),
        }
    }
    if quote.is_some() {
        bail!("unclosed quote: {line}");
    }
    words.extend(word);
    Ok(words)
}

fn replace_specifiers(word: &str, unit: &str) -> Result<String> {
    let mut out = String::new();
    let mut letters = word.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '%' => match letters.next() {
                Some('%') => out.push('%'),
                Some('n') => out.push_str(unit),
                other => bail!("unsupported specifier %{}", other.unwrap_or(' ')),
            },
            _ => out.push(letter),
        }
    }
    Ok(out)
}

fn replace_braced_variables(word: &str, environment: &Environment) -> String {
    let mut out = String::new();
    let mut rest = word;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        match after.strip_prefix('{').and_then(|it| it.split_once('}')) {
            Some((name, after)) => {
                out.push_str(environment.get(name).map_or("", String::as_str));
                rest = after;
            }
            None => {
                out.push('$');
                rest = after.strip_prefix('$').unwrap_or(after);
            }
        }
    }
    out + rest
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, want: &[&str]) {
        let environment = Environment::from([
            ("TWO".to_owned(), "a  b".to_owned()),
            ("FLAGS".to_owned(), "--one=\"x y\" --two".to_owned()),
        ]);
        let words = Command::parse(line).unwrap().words("u.service", &environment).unwrap();
        assert_eq!(words, want);
    }

    #[test]
    fn a_command_is_split_into_words_with_quotes() {
        check("/bin/a b 'c d' \"e\\\"f\" g\\ h", &["/bin/a", "b", "c d", "e\"f", "g h"]);
        check("/bin/a \"\" %n 100%%", &["/bin/a", "", "u.service", "100%"]);
    }

    #[test]
    fn a_bare_variable_is_split_and_a_braced_one_is_not() {
        check(
            "/bin/a $TWO ${TWO} x${TWO}y $NONE $$HOME",
            &["/bin/a", "a", "b", "a  b", "xa  by", "$HOME"],
        );
        check("/bin/a $FLAGS", &["/bin/a", "--one=x y", "--two"]);
    }

    #[test]
    fn an_unsupported_command_is_refused() {
        for bad in ["a", "+/bin/a", "/bin/a 'b", ""] {
            assert!(Command::parse(bad).is_err(), "{bad}");
        }
        assert!(Command::parse("-/bin/a").unwrap().may_fail);
    }

    #[test]
    fn environment_files_are_parsed() {
        let mut environment = Environment::new();
        read_file("# no\nA=b c\nD=\"e f\"\n\n", &mut environment);
        assign("\"G=h i\" J=k", &mut environment).unwrap();
        let all: Vec<String> =
            environment.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(all, ["A=b c", "D=e f", "G=h i", "J=k"]);
    }
}
