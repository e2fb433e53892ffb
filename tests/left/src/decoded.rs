//! Decodes base64, percent-encoding and lists of bytes in a text, so that the decoded text can be searched too.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Shorter runs of base64 letters are ignored: no secret is that short.
const LETTERS: usize = 16;
/// Decoded base64 counts only if it contains this many printable characters in a row; otherwise the run was an ordinary word.
const TEXT: usize = 10;
/// Shorter lists of numbers are ignored.
const BYTES: usize = 8;

/// Decodes every encoded part of `text`, one line for each; empty if `text` has no encoded parts.
pub(crate) fn decoded(text: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    base64(text, &mut all);
    percent(text, &mut all);
    lists(text, &mut all);
    all
}

/// Decodes runs of base64 letters at each of the four offsets, because a preceding path consists of the same letters.
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

/// Decodes words that contain percent-encoding.
fn percent(text: &[u8], all: &mut Vec<u8>) {
    let ends = |byte: &u8| byte.is_ascii_whitespace() || b"\"'<>".contains(byte);
    let encodes = |part: &[u8]| part[0] == b'%' && part[1..].iter().all(u8::is_ascii_hexdigit);
    for word in text.split(ends) {
        if word.windows(3).any(encodes) {
            line(&percent_encoding::percent_decode(word).collect::<Vec<u8>>(), all);
        }
    }
}

/// Decodes lists of numbers, the format in which JSON and Rust's `Debug` write bytes.
fn lists(text: &[u8], all: &mut Vec<u8>) {
    for (at, _) in text.iter().enumerate().filter(|(_, byte)| **byte == b'[') {
        let listed = |byte: &u8| byte.is_ascii_digit() || b", \n\r\t".contains(byte);
        let rest = &text[at + 1..];
        let length = rest.iter().take_while(|byte| listed(byte)).count();
        let number = |word: &[u8]| std::str::from_utf8(word).ok()?.trim().parse::<u8>().ok();
        // A list that is printed over several lines ends with a comma.
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

/// Decodes the base64 letters at the start of `text`, in the standard or the URL-safe alphabet.
pub(crate) fn from_base64(text: &[u8]) -> Vec<u8> {
    const EITHER: GeneralPurpose = GeneralPurpose::new(
        &STANDARD,
        GeneralPurposeConfig::new()
            .with_decode_padding_mode(DecodePaddingMode::Indifferent)
            .with_decode_allow_trailing_bits(true),
    );
    let plain = |letter: &u8| match letter {
        b'-' => Some(b'+'),
        b'_' => Some(b'/'),
        b'+' | b'/' => Some(*letter),
        _ => letter.is_ascii_alphanumeric().then_some(*letter),
    };
    let mut letters: Vec<u8> = text.iter().map_while(plain).collect();
    // A single letter after the last full group encodes no byte.
    if letters.len() % 4 == 1 {
        letters.pop();
    }
    EITHER.decode(letters).unwrap_or_default()
}
