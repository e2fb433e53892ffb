//! A strict reader of OpenMetrics text. It accepts no more than the daemons need, and panics at the first line that breaks the format.
//!
//! The sections are those of OpenMetrics 1.0, "Text format". `tests/compat` reads the same pages with Prometheus' own parser for Python.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The samples of a page.
#[derive(Debug, Default)]
pub struct Scrape {
    /// The type of each metric family.
    families: BTreeMap<String, String>,
    /// The value of each series: a name with its labels in braces, in the order of the page.
    samples: BTreeMap<String, f64>,
    /// All values of each label.
    labels: BTreeMap<String, BTreeSet<String>>,
}

impl Scrape {
    /// Reads a page.
    #[track_caller]
    pub fn read(text: &str) -> Scrape {
        let body = text.strip_suffix("# EOF\n").expect("a page ends with # EOF");
        let (mut scrape, mut family) = (Scrape::default(), "");
        for line in body.split_terminator('\n') {
            match line.strip_prefix("# ") {
                Some(about) => family = scrape.describe(family, about),
                None => scrape.add(family, line),
            }
        }
        scrape.check_histograms();
        scrape
    }

    /// Returns the value of a series: a name, with its labels in braces if it has any.
    pub fn value(&self, series: &str) -> Option<f64> {
        self.samples.get(series).copied()
    }

    /// Returns all values that a label has on the page.
    pub fn label(&self, key: &str) -> BTreeSet<String> {
        self.labels.get(key).cloned().unwrap_or_default()
    }

    /// Returns the names of all metric families.
    pub fn families(&self) -> BTreeSet<&str> {
        self.families.keys().map(String::as_str).collect()
    }

    /// Returns the metric families that the table in `deploy/docs/operations.md` does not list.
    pub fn undocumented(&self) -> Vec<&str> {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/docs/operations.md");
        let table = fs::read_to_string(file).unwrap();
        let listed = |name: &str, kind: &str| {
            let suffix = match kind {
                "counter" => "_total",
                "info" => "_info",
                _ => "",
            };
            table.contains(&format!("\n| `{name}{suffix}` | {kind} |"))
        };
        let missing = self.families.iter().filter(|(name, kind)| !listed(name, kind));
        missing.map(|(name, _)| name.as_str()).collect()
    }

    /// Reads a line of metadata. Returns the family that it describes.
    fn describe<'t>(&mut self, family: &str, about: &'t str) -> &'t str {
        let mut words = about.splitn(3, ' ');
        let (kind, name) = (words.next().unwrap(), words.next().unwrap());
        let value = words.next().unwrap();
        match kind {
            "HELP" => {
                let earlier = self.families.insert(name.to_owned(), String::new());
                assert_eq!(earlier, None, "the family {name} comes twice");
            }
            "TYPE" => {
                assert!(["counter", "gauge", "histogram", "info"].contains(&value), "{about}");
                assert_eq!(name, family, "its lines of metadata are not together");
                self.families.insert(name.to_owned(), value.to_owned());
            }
            "UNIT" => {
                assert_eq!(name, family, "its lines of metadata are not together");
                assert!(name.ends_with(&format!("_{value}")), "{about}");
            }
            other => panic!("unknown metadata {other}"),
        }
        name
    }

    fn add(&mut self, family: &str, line: &str) {
        let (series, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no value: {line}"));
        let value: f64 = value.parse().unwrap_or_else(|_| panic!("no number: {line}"));
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        let suffix = name.strip_prefix(family);
        let suffix = suffix.unwrap_or_else(|| panic!("{name} is among the samples of {family}"));
        let allowed: &[&str] = match self.families[family].as_str() {
            "counter" => &["_total"],
            "gauge" => &[""],
            "histogram" => &["_bucket", "_count", "_sum"],
            "info" => &["_info"],
            other => panic!("{family} has the type {other:?}"),
        };
        assert!(allowed.contains(&suffix), "{line}");
        assert!(suffix.is_empty() || value >= 0.0, "{line}");
        for (key, value) in read_labels(labels) {
            self.labels.entry(key).or_default().insert(value);
        }
        let earlier = self.samples.insert(series.to_owned(), value);
        assert_eq!(earlier, None, "the series {series} comes twice");
    }

    /// The buckets of a histogram count at least as much as smaller buckets, and the last one counts everything.
    fn check_histograms(&self) {
        let infinite = |series: &str| series.contains("le=\"+Inf\"");
        for (series, count) in self.samples.iter().filter(|(series, _)| infinite(series)) {
            let total = series.replace("_bucket{", "_count{").replace("le=\"+Inf\"", "");
            let total = total.replace("{,", "{").replace(",}", "}").replace("{}", "");
            assert_eq!(self.value(&total), Some(*count), "{series} and {total}");
            let (before, after) = series.split_once("+Inf").unwrap();
            let mut smaller = self.samples.iter().filter(|(it, _)| {
                it.strip_prefix(before).is_some_and(|rest| rest.ends_with(after))
            });
            assert!(smaller.all(|(_, smaller)| smaller <= count), "{series}");
        }
    }
}

/// Reads labels after their opening brace: `key="value",…}`.
fn read_labels(mut rest: &str) -> Vec<(String, String)> {
    let mut labels = Vec::new();
    while rest != "}" {
        let (key, after) = rest.split_once("=\"").unwrap_or_else(|| panic!("no label: {rest}"));
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        assert!(!key.is_empty() && key.chars().all(is_name), "{key:?} is no name of a label");
        let (mut value, mut chars) = (String::new(), after.chars());
        loop {
            match chars.next().unwrap_or_else(|| panic!("a label without an end: {rest}")) {
                '"' => break,
                '\\' => match chars.next() {
                    Some('n') => value.push('\n'),
                    Some(escaped @ ('"' | '\\')) => value.push(escaped),
                    other => panic!("an unknown escape: {other:?}"),
                },
                plain => value.push(plain),
            }
        }
        labels.push((key.to_owned(), value));
        let after = chars.as_str();
        rest = after.strip_prefix(',').unwrap_or(after);
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
# HELP a_seconds Of a.
# TYPE a_seconds histogram
# UNIT a_seconds seconds
a_seconds_sum{k=\"x\"} 3.5
a_seconds_count{k=\"x\"} 2
a_seconds_bucket{le=\"1.0\",k=\"x\"} 1
a_seconds_bucket{le=\"+Inf\",k=\"x\"} 2
# HELP b Of b.
# TYPE b counter
b_total{k=\"a \\\"b\\\"\"} 7
# EOF
";

    #[test]
    fn a_page_is_read() {
        let scrape = Scrape::read(PAGE);
        assert_eq!(scrape.value("a_seconds_count{k=\"x\"}"), Some(2.0));
        let keys: Vec<String> = scrape.label("k").into_iter().collect();
        assert_eq!(keys, ["a \"b\"", "x"]);
        assert_eq!(scrape.families().into_iter().collect::<Vec<_>>(), ["a_seconds", "b"]);
    }

    #[test]
    fn a_page_that_breaks_the_format_is_refused() {
        for (from, to) in [
            ("# EOF\n", ""),
            ("b_total", "b"),
            ("# TYPE b counter\n", ""),
            ("UNIT a_seconds seconds", "UNIT a_seconds bytes"),
            ("+Inf\",k=\"x\"} 2", "+Inf\",k=\"x\"} 3"),
            ("le=\"1.0\",k=\"x\"} 1", "le=\"1.0\",k=\"x\"} 9"),
            ("b_total{k=\"a ", "b_total{k\"a "),
            ("# HELP b ", "# HELP a_seconds "),
        ] {
            let page = PAGE.replace(from, to);
            assert_ne!(page, PAGE);
            let read = std::panic::catch_unwind(|| Scrape::read(&page));
            assert!(read.is_err(), "read with {to:?} in place of {from:?}");
        }
    }
}
