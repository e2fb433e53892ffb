//! How answers are written: tables for people, JSON for programs.

use std::io::{self, Write};

use clap::ValueEnum;
use comfy_table::presets::NOTHING;
use comfy_table::{ContentArrangement, Table};
use serde_json::Value;

/// How answers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Table,
    /// The API's answer as it is.
    Json,
}

/// Writes a line for people or programs; a closed pipe is the end of it.
pub(crate) fn line(text: &str) -> anyhow::Result<()> {
    writeln!(io::stdout().lock(), "{text}").map_err(Into::into)
}

/// Writes the API's answer as it is.
pub(crate) fn json(value: &Value) -> anyhow::Result<()> {
    line(&serde_json::to_string_pretty(value)?)
}

/// Writes a table.
pub(crate) fn table(
    header: &[&str],
    rows: impl IntoIterator<Item = Vec<String>>,
) -> anyhow::Result<()> {
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(header);
    table.add_rows(rows);
    line(&table.to_string())
}

/// Text without what could drive a terminal: machines and BMCs are strangers.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
