//! Reports the violations that a test has found.

/// Panics with every violation in `wrong`, one per line, unless `wrong` is empty.
#[track_caller]
pub fn assert_none(rule: &str, wrong: impl IntoIterator<Item = String>) {
    let wrong: Vec<String> = wrong.into_iter().collect();
    assert!(wrong.is_empty(), "{rule}:\n  {}", wrong.join("\n  "));
}
