//! Searches for secrets in all encodings, including compressed data.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use aho_corasick::AhoCorasick;
use anyhow::Context;
use flate2::read::MultiGzDecoder;

use crate::decoded::{decoded, from_base64};
use crate::encodings::spellings;

/// How much of a file is read at a time; more than the size of any kept file.
const PIECE: usize = 32 << 20;
/// The most bytes that are decompressed from one place.
const UNPACKED: u64 = 64 << 20;
/// How many layers of compression and encoding are searched.
const LAYERS: u8 = 4;

/// The start of gzip data (RFC 1952 §2.3: the magic number and the method, which is always 8), and the same in base64.
const GZIP: &[u8] = &[0x1f, 0x8b, 8];
const GZIP_IN_BASE64: &[u8] = b"H4sI";

/// The patterns to search for: each secret in each of its encodings.
pub struct Search {
    secrets: Vec<String>,
    meanings: Vec<PatternKind>,
    patterns: AhoCorasick,
    longest: usize,
}

#[derive(Clone, Copy)]
enum PatternKind {
    Secret { number: usize, how: &'static str },
    Gzip,
    GzipInBase64,
}

/// A secret that was found, and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Find {
    pub secret: String,
    /// The encoding of the secret.
    pub how: &'static str,
    pub file: PathBuf,
}

impl Search {
    /// Prepares the search for these secrets.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> anyhow::Result<Search> {
        let secrets: BTreeSet<&str> = secrets.into_iter().filter(|it| !it.is_empty()).collect();
        let secrets: Vec<String> = secrets.into_iter().map(str::to_owned).collect();
        let mut meanings = vec![PatternKind::Gzip, PatternKind::GzipInBase64];
        let mut patterns = vec![GZIP.to_vec(), GZIP_IN_BASE64.to_vec()];
        for (number, secret) in secrets.iter().enumerate() {
            for (how, bytes) in spellings(secret) {
                meanings.push(PatternKind::Secret { number, how });
                patterns.push(bytes);
            }
        }
        let longest = patterns.iter().map(Vec::len).max().unwrap_or(0);
        let patterns = AhoCorasick::new(patterns).context("too many patterns to search for")?;
        Ok(Search { secrets, meanings, patterns, longest })
    }

    /// Searches a text; returns each secret found, with its encoding.
    pub fn text(&self, text: &[u8]) -> BTreeSet<(&str, &'static str)> {
        let mut found = BTreeSet::new();
        self.look(text, LAYERS, &mut found);
        found
    }

    fn look<'a>(&'a self, text: &[u8], layers: u8, found: &mut BTreeSet<(&'a str, &'static str)>) {
        for hit in self.patterns.find_overlapping_iter(text) {
            let packed = match self.meanings[hit.pattern().as_usize()] {
                PatternKind::Secret { number, how } => {
                    found.insert((&self.secrets[number], how));
                    continue;
                }
                PatternKind::Gzip => unpacked(&text[hit.start()..]),
                PatternKind::GzipInBase64 => unpacked(&from_base64(&text[hit.start()..])),
            };
            if layers > 1 {
                self.look(&packed, layers - 1, found);
            }
        }
        let spelled = if layers > 1 { decoded(text) } else { Vec::new() };
        if !spelled.is_empty() {
            self.look(&spelled, layers - 1, found);
        }
    }

    /// Searches a file, or every file in a folder, and returns how many files were searched. A missing path counts as no files.
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
        finds.extend(found.into_iter().map(|(secret, how)| Find {
            secret: secret.to_owned(),
            how,
            file: path.to_owned(),
        }));
        Ok(1)
    }

    fn file(&self, path: &Path) -> std::io::Result<BTreeSet<(&str, &'static str)>> {
        let mut file = File::open(path)?;
        let (mut piece, mut found) = (Vec::new(), BTreeSet::new());
        loop {
            let read = Read::by_ref(&mut file).take(PIECE as u64).read_to_end(&mut piece)?;
            if read == 0 {
                return Ok(found);
            }
            self.look(&piece, LAYERS, &mut found);
            // The end of this piece is searched again with the next one, for a secret that spans both.
            piece.drain(..piece.len().saturating_sub(self.longest));
        }
    }
}

/// Decompresses gzip data as far as it is intact.
fn unpacked(packed: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    // The data decompressed before an error is kept.
    let _ = MultiGzDecoder::new(packed).take(UNPACKED).read_to_end(&mut text);
    text
}

#[cfg(test)]
mod tests;
