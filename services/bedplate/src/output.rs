//! How answers are written: tables and sentences for people, JSON or YAML for programs.

use std::io::{self, Write};

use anyhow::Context;
use clap::ValueEnum;
use comfy_table::presets::NOTHING;
use comfy_table::{ContentArrangement, Table};
use serde_json::{Map, Value};

/// How answers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Table,
    /// The API's answer as it is.
    Json,
    /// The API's answer as it is, as YAML.
    Yaml,
}

impl Format {
    /// Whether a person reads it: then there may be more than the answer.
    pub(crate) fn is_for_people(self) -> bool {
        self == Format::Table
    }
}

/// An answer of the API, and what people are shown of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    whole: Value,
    shown: String,
}

impl Answer {
    /// An answer that people are shown in these words.
    pub(crate) fn said(whole: Value, words: impl Into<String>) -> Answer {
        Answer { whole, shown: words.into() }
    }

    /// An answer that people are shown as a table.
    pub(crate) fn table(
        whole: Value,
        header: &[&str],
        rows: impl IntoIterator<Item = Vec<String>>,
    ) -> Answer {
        Answer { whole, shown: drawn(header, rows) }
    }

    /// The answers of several services, each under its name.
    pub(crate) fn of_services(
        whole: Map<String, Value>,
        header: &[&str],
        rows: impl IntoIterator<Item = Vec<String>>,
    ) -> Answer {
        Answer::table(Value::Object(whole), header, rows)
    }

    /// Whether the service says something else now; how long ago it was is nothing else.
    pub(crate) fn is_news_after(&self, before: &Answer) -> bool {
        self.whole != before.whole
    }

    /// As it is written.
    pub(crate) fn written(&self, format: Format) -> anyhow::Result<String> {
        match format {
            Format::Table => Ok(self.shown.clone()),
            Format::Json => serde_json::to_string_pretty(&self.whole).map_err(Into::into),
            Format::Yaml => {
                let text = serde_saphyr::to_string(&self.whole).context("cannot write YAML")?;
                Ok(text.trim_end().to_owned())
            }
        }
    }

    /// As it is written where one answer follows another: each is a line, a document, or a table with an empty line before it.
    pub(crate) fn written_again(&self, format: Format, is_first: bool) -> anyhow::Result<String> {
        match format {
            Format::Table if is_first => Ok(self.shown.clone()),
            Format::Table => Ok(format!("\n{}", self.shown)),
            Format::Json => serde_json::to_string(&self.whole).map_err(Into::into),
            Format::Yaml => Ok(format!("---\n{}", self.written(format)?)),
        }
    }

    /// Writes it.
    pub(crate) fn write(&self, format: Format) -> anyhow::Result<()> {
        line(&self.written(format)?)
    }
}

/// Writes a line for people or programs; a closed pipe is the end of it.
pub(crate) fn line(text: &str) -> anyhow::Result<()> {
    writeln!(io::stdout().lock(), "{text}").map_err(Into::into)
}

/// Writes a table for people.
pub(crate) fn table(
    header: &[&str],
    rows: impl IntoIterator<Item = Vec<String>>,
) -> anyhow::Result<()> {
    line(&drawn(header, rows))
}

/// A table without lines; columns are as wide as they have to be, so that a pipe gets whole words.
pub(crate) fn drawn(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    if header.iter().any(|word| !word.is_empty()) {
        table.set_header(header);
    }
    table.add_rows(rows);
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

/// Text without what could drive a terminal: machines and BMCs are strangers.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// The text of a field, plain; nothing where it has none.
pub(crate) fn text(value: &Value) -> String {
    plain(value.as_str().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    fn answer() -> Answer {
        let whole = json!({"nodes": [{"name": "no", "ram": 1024, "note": "1.10", "lessee": null}]});
        Answer::table(whole, &["Name", "RAM"], [vec!["no".to_owned(), "1024".to_owned()]])
    }

    #[test]
    fn people_get_a_table_without_blanks_at_its_ends() {
        let want = expect![[r#"
             Name  RAM
             no    1024"#]];
        // `expect` takes away what all lines begin with.
        want.assert_eq(&answer().written(Format::Table).unwrap().replace("\n ", "\n")[1..]);
    }

    #[test]
    fn programs_get_the_answer_as_it_is() {
        for format in [Format::Json, Format::Yaml] {
            let written = answer().written(format).unwrap();
            let read: Value = serde_saphyr::from_str(&written).unwrap();
            assert_eq!(read, answer().whole, "{written}");
        }
    }

    #[test]
    fn answers_that_follow_each_other_can_be_told_apart() {
        let again = |format| answer().written_again(format, false).unwrap();
        assert_eq!(again(Format::Json).lines().count(), 1);
        assert!(again(Format::Yaml).starts_with("---\n"));
        assert!(again(Format::Table).starts_with('\n'));
    }

    #[test]
    fn nothing_that_drives_a_terminal_is_shown() {
        assert_eq!(text(&json!("a\u{1b}[2Jb\nc")), "a [2Jb c");
        assert_eq!(text(&json!(7)), "");
    }
}
