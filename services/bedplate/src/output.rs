//! Output: tables and sentences for people, JSON or YAML for programs.

use std::io::{self, Write};

use anyhow::Context;
use api_client::WithJson;
use clap::ValueEnum;
use comfy_table::presets::NOTHING;
use comfy_table::{ContentArrangement, Table};
use serde_json::{Map, Value, json};

/// The format of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Table for people.
    Table,
    /// Unchanged response of the API.
    Json,
    /// Unchanged response of the API, as YAML.
    Yaml,
}

impl Format {
    /// Whether a person reads the output, so that progress and hints can be shown too.
    pub(crate) fn is_for_people(self) -> bool {
        self == Format::Table
    }
}

/// A response of the API, with its text for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    whole: Value,
    shown: String,
}

impl Answer {
    /// Makes an answer with this text for people.
    pub(crate) fn sentence(whole: Value, words: impl Into<String>) -> Answer {
        Answer { whole, shown: words.into() }
    }

    /// Makes an answer with a table for people.
    pub(crate) fn table(
        whole: Value,
        header: &[&str],
        rows: impl IntoIterator<Item = Vec<String>>,
    ) -> Answer {
        Answer { whole, shown: draw_table(header, rows) }
    }

    /// Makes an answer with a list under this name, and a table with a row for each element.
    pub(crate) fn list<T>(
        key: &str,
        all: Vec<WithJson<T>>,
        header: &[&str],
        row: impl Fn(&T) -> Vec<String>,
    ) -> Answer {
        let rows: Vec<_> = all.iter().map(|one| row(one)).collect();
        Answer::table(json!({key: elements(all)}), header, rows)
    }

    /// Makes an answer with a list of each service under the service's name, and a table with a row for each element.
    pub(crate) fn of_services<T>(
        lists: Vec<(&str, Vec<WithJson<T>>)>,
        header: &[&str],
        row: impl Fn(&str, &T) -> Vec<String>,
    ) -> Answer {
        let (mut whole, mut rows) = (Map::new(), Vec::new());
        for (service, list) in lists {
            rows.extend(list.iter().map(|one| row(service, one)));
            whole.insert(service.to_owned(), elements(list));
        }
        Answer::table(Value::Object(whole), header, rows)
    }

    /// Whether the response differs from an earlier one. The text for people may differ without that, because it contains elapsed times.
    pub(crate) fn is_news_after(&self, before: &Answer) -> bool {
        self.whole != before.whole
    }

    pub(crate) fn format(&self, format: Format) -> anyhow::Result<String> {
        match format {
            Format::Table => Ok(self.shown.clone()),
            Format::Json => serde_json::to_string_pretty(&self.whole).map_err(Into::into),
            Format::Yaml => {
                let text = serde_saphyr::to_string(&self.whole).context("cannot write YAML")?;
                Ok(text.trim_end().to_owned())
            }
        }
    }

    /// Formats an answer that follows another: a line of JSON, a YAML document, or a table after an empty line.
    pub(crate) fn written_again(&self, format: Format, is_first: bool) -> anyhow::Result<String> {
        match format {
            Format::Table if is_first => Ok(self.shown.clone()),
            Format::Table => Ok(format!("\n{}", self.shown)),
            Format::Json => serde_json::to_string(&self.whole).map_err(Into::into),
            Format::Yaml => Ok(format!("---\n{}", self.format(format)?)),
        }
    }

    pub(crate) fn write(&self, format: Format) -> anyhow::Result<()> {
        line(&self.format(format)?)
    }
}

/// The elements of a list as the API answered them.
pub(crate) fn elements<T>(all: Vec<WithJson<T>>) -> Value {
    all.into_iter().map(|one| one.json).collect()
}

/// Prints a line. Returns an error if the pipe is closed.
pub(crate) fn line(text: &str) -> anyhow::Result<()> {
    writeln!(io::stdout().lock(), "{text}").map_err(Into::into)
}

pub(crate) fn table(
    header: &[&str],
    rows: impl IntoIterator<Item = Vec<String>>,
) -> anyhow::Result<()> {
    line(&draw_table(header, rows))
}

/// Formats a table without lines. Columns are as wide as their content, so that a pipe gets whole words.
pub(crate) fn draw_table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    if header.iter().any(|word| !word.is_empty()) {
        table.set_header(header);
    }
    table.add_rows(rows);
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

/// Replaces control characters by spaces: texts of machines and BMCs are not trusted, and could drive the terminal.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// A number with its noun: `1 node`, `2 nodes`.
pub(crate) fn counted(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// The text of a field without control characters; empty if the answer has no text there.
pub(crate) fn text(value: Option<&str>) -> String {
    plain(value.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn answer() -> Answer {
        let whole = json!({"nodes": [{"name": "no", "ram": 1024, "note": "1.10", "lessee": null}]});
        Answer::table(whole, &["Name", "RAM"], [vec!["no".to_owned(), "1024".to_owned()]])
    }

    #[test]
    fn a_table_has_no_trailing_spaces() {
        let want = expect![[r#"
             Name  RAM
             no    1024"#]];
        // `expect` removes the common indentation of all lines.
        want.assert_eq(&answer().format(Format::Table).unwrap().replace("\n ", "\n")[1..]);
    }

    #[test]
    fn json_and_yaml_are_the_unchanged_response() {
        for format in [Format::Json, Format::Yaml] {
            let written = answer().format(format).unwrap();
            let read: Value = serde_saphyr::from_str(&written).unwrap();
            assert_eq!(read, answer().whole, "{written}");
        }
    }

    #[test]
    fn successive_answers_are_separated() {
        let again = |format| answer().written_again(format, false).unwrap();
        assert_eq!(again(Format::Json).lines().count(), 1);
        assert!(again(Format::Yaml).starts_with("---\n"));
        assert!(again(Format::Table).starts_with('\n'));
    }

    #[test]
    fn control_characters_are_removed() {
        assert_eq!(text(Some("a\u{1b}[2Jb\nc")), "a [2Jb c");
        assert_eq!(text(None), "");
    }
}
