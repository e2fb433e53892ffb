#![doc = include_str!("../README.md")]

use std::fmt::Display;
use std::io::Write;
use std::{env, fs};

/// Whether a program of this name is installed.
pub fn installed(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Reports on standard error and in the file named by `BEDPLATE_SKIPPED` that `test` is skipped, and why.
///
/// # Panics
///
/// Panics if `BEDPLATE_PEERS=required` is set: then every peer has to be installed.
#[track_caller]
pub fn skip(test: &str, reason: impl Display) {
    let line = format!("SKIPPED {test}: {reason}");
    assert!(env::var_os("BEDPLATE_PEERS").is_none_or(|word| word != "required"), "{line}");
    eprintln!("{line}");
    let Some(list) = env::var_os("BEDPLATE_SKIPPED") else { return };
    // A single write, so that the lines of tests that run in parallel do not mix.
    let file = fs::OpenOptions::new().append(true).create(true).open(list);
    let written = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
    written.expect("the list of what is skipped can be written");
}

/// Returns `n` for a crash loop that kills at every `n`-th point: 1 if `BEDPLATE_SOAK` is set, otherwise `normally`.
pub fn kill_every(normally: usize) -> usize {
    if env::var_os("BEDPLATE_SOAK").is_some() { 1 } else { normally }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_installed_programs_are_found() {
        assert!(installed("sh"));
        assert!(!installed("no-such-program"));
    }
}
