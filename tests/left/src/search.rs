//! Looking for canaries, however they are spelled.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// At most so much of a file is in memory at once.
const CHUNK: usize = 1 << 20;

/// What is looked for: each canary in each of its spellings.
pub struct Search {
    spellings: Vec<Spelling>,
    longest: usize,
}

struct Spelling {
    canary: &'static str,
    how: &'static str,
    bytes: Vec<u8>,
}

/// A canary, and where it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Find {
    /// Which.
    pub canary: &'static str,
    /// How it was spelled.
    pub how: &'static str,
    /// In which file.
    pub file: PathBuf,
}

impl Search {
    /// Looks for these.
    pub fn of(canaries: &[&'static str]) -> Search {
        let spellings: Vec<_> = canaries.iter().flat_map(|canary| spellings(canary)).collect();
        let longest = spellings.iter().map(|it| it.bytes.len()).max().unwrap_or(0);
        Search { spellings, longest }
    }

    /// What is in a text.
    pub fn text(&self, text: &[u8]) -> Vec<(&'static str, &'static str)> {
        let there = |it: &&Spelling| text.windows(it.bytes.len()).any(|part| part == it.bytes);
        self.spellings.iter().filter(there).map(|it| (it.canary, it.how)).collect()
    }

    /// What is in a file, or in any file of a folder. What is not there holds nothing; the count is of files looked at.
    pub fn path(&self, path: &Path, finds: &mut Vec<Find>) -> anyhow::Result<usize> {
        let Ok(kind) = fs::symlink_metadata(path) else { return Ok(0) };
        if kind.is_dir() {
            let entries = fs::read_dir(path).with_context(|| format!("{}", path.display()))?;
            let mut looked = 0;
            for entry in entries {
                looked += self.path(&entry?.path(), finds)?;
            }
            return Ok(looked);
        }
        if !kind.is_file() {
            return Ok(0);
        }
        let found = self.file(path).with_context(|| format!("cannot read {}", path.display()))?;
        finds.extend(found.into_iter().map(|(canary, how)| Find {
            canary,
            how,
            file: path.to_owned(),
        }));
        Ok(1)
    }

    fn file(&self, path: &Path) -> std::io::Result<Vec<(&'static str, &'static str)>> {
        let mut file = File::open(path)?;
        let (mut window, mut found) = (Vec::new(), Vec::new());
        loop {
            let read = Read::by_ref(&mut file).take(CHUNK as u64).read_to_end(&mut window)?;
            found.extend(self.text(&window));
            if read == 0 {
                found.sort_unstable();
                found.dedup();
                return Ok(found);
            }
            // What lies across two chunks is seen with the second.
            window.drain(..window.len().saturating_sub(self.longest));
        }
    }
}

fn spellings(canary: &'static str) -> Vec<Spelling> {
    let spelling = |how, bytes: Vec<u8>| Spelling { canary, how, bytes };
    let mut all = vec![
        spelling("plain", canary.as_bytes().to_vec()),
        spelling("hexadecimal", hex::encode(canary).into_bytes()),
        spelling("hexadecimal", hex::encode_upper(canary).into_bytes()),
        spelling("URL-encoded", utf8_percent_encode(canary, NON_ALPHANUMERIC).to_string().into()),
        spelling("URL-encoded", form(canary).into_bytes()),
    ];
    for engine in [&STANDARD, &URL_SAFE] {
        all.extend((0..3).map(|offset| spelling("base64", within(engine, canary, offset))));
    }
    all
}

/// As forms and most clients' URLs spell it: slashes and blanks otherwise, and what is unreserved as it is.
fn form(canary: &str) -> String {
    const RESERVED: &AsciiSet =
        &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    utf8_percent_encode(canary, RESERVED).to_string()
}

/// The letters of base64 that are the same whatever stands before, `offset` bytes beyond a multiple of three, and after.
fn within(engine: &impl Engine, canary: &str, offset: usize) -> Vec<u8> {
    let text = engine.encode([&b"xxx"[..offset], canary.as_bytes()].concat());
    let begin = (offset * 8).div_ceil(6);
    let end = (offset + canary.len()) * 8 / 6;
    text.into_bytes()[begin..end].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canary;

    #[track_caller]
    fn found(text: &str) -> bool {
        !Search::of(&[canary::BMC]).text(text.as_bytes()).is_empty()
    }

    #[test]
    fn a_canary_is_found_however_it_is_spelled() {
        let canary = canary::BMC;
        for text in [
            format!("password={canary}&x"),
            format!("at {}", hex::encode(canary)),
            "https://u:canary%20bmc%2F9f3%2BQx7@host/".to_owned(),
        ] {
            assert!(found(&text), "{text}");
        }
        for before in ["", "a", "ab", "abc", "admin:"] {
            for after in ["", "x", "yz"] {
                let text = format!("{before}{canary}{after}");
                assert!(found(&format!("Basic {}", STANDARD.encode(&text))), "{text}");
                assert!(found(&URL_SAFE.encode(&text)), "{text}");
            }
        }
        assert!(!found("canary") && !found(&STANDARD.encode("canary bmc")));
    }

    #[test]
    fn a_canary_is_found_across_chunks_and_deep_in_folders() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("a/b");
        fs::create_dir_all(&deep).unwrap();
        let text = format!("{}{}{}", "x".repeat(CHUNK - 5), canary::BMC, "y".repeat(CHUNK));
        fs::write(deep.join("log"), text).unwrap();
        fs::write(deep.join("other"), "nothing").unwrap();
        let mut finds = Vec::new();
        let looked = Search::of(&canary::ALL).path(folder.path(), &mut finds).unwrap();
        let want = Find { canary: canary::BMC, how: "plain", file: deep.join("log") };
        assert_eq!((looked, finds), (2, vec![want]));
    }
}
