//! What a text spells in base64, percent-encoded and as lists of bytes, so that it is looked through as well.

use crate::search::from_base64;

/// Of base64 no shorter run of letters is taken for it: it spells no secret that is looked for.
const LETTERS: usize = 16;
/// Of what base64 spells, so many characters in a row have to be text: else it was another word.
const TEXT: usize = 10;
/// Shorter lists of numbers are no secret.
const BYTES: usize = 8;

/// All that `text` spells in any of these ways, a line for each; nothing, where it spells nothing.
pub(crate) fn decoded(text: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    base64(text, &mut all);
    percent(text, &mut all);
    lists(text, &mut all);
    all
}

/// Runs of base64's letters. Where it begins in a run is not known: a path before it has the same letters.
fn base64(text: &[u8], all: &mut Vec<u8>) {
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(byte);
    for run in text.split(|byte| !is_letter(byte)).filter(|run| run.len() >= LETTERS) {
        for offset in 0..4 {
            let bytes = from_base64(&run[offset..]);
            let is_text = |byte: &u8| !byte.is_ascii_control() || byte.is_ascii_whitespace();
            for part in bytes.split(|byte| !is_text(byte)).filter(|part| part.len() >= TEXT) {
                line(part, all);
            }
        }
    }
}

/// Words in which something is percent-encoded, whatever else in them is.
fn percent(text: &[u8], all: &mut Vec<u8>) {
    let ends = |byte: &u8| byte.is_ascii_whitespace() || b"\"'<>".contains(byte);
    let encodes = |part: &[u8]| part[0] == b'%' && part[1..].iter().all(u8::is_ascii_hexdigit);
    for word in text.split(ends) {
        if word.windows(3).any(encodes) {
            line(&percent_encoding::percent_decode(word).collect::<Vec<u8>>(), all);
        }
    }
}

/// Lists of numbers, as JSON and Rust's `Debug` write bytes.
fn lists(text: &[u8], all: &mut Vec<u8>) {
    for (at, _) in text.iter().enumerate().filter(|(_, byte)| **byte == b'[') {
        let listed = |byte: &u8| byte.is_ascii_digit() || b", \n\r\t".contains(byte);
        let rest = &text[at + 1..];
        let length = rest.iter().take_while(|byte| listed(byte)).count();
        let number = |word: &[u8]| std::str::from_utf8(word).ok()?.trim().parse::<u8>().ok();
        // What is printed over many lines ends with a comma.
        let listed = rest[..length].trim_ascii();
        let listed = listed.strip_suffix(b",").unwrap_or(listed);
        let bytes: Option<Vec<u8>> = listed.split(|byte| *byte == b',').map(number).collect();
        if let Some(bytes) = bytes.filter(|bytes| bytes.len() >= BYTES) {
            line(&bytes, all);
        }
    }
}

fn line(part: &[u8], all: &mut Vec<u8>) {
    all.extend_from_slice(part);
    all.push(b'\n');
}
