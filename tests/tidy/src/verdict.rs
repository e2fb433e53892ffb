//! How a test says what is wrong.

/// Fails with all of `wrong`, one a line, where there is any.
#[track_caller]
pub fn none(rule: &str, wrong: impl IntoIterator<Item = String>) {
    let wrong: Vec<String> = wrong.into_iter().collect();
    assert!(wrong.is_empty(), "{rule}:\n  {}", wrong.join("\n  "));
}
