//! The encodings in which a secret may appear in a text.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Each encoding of the secret, with the name of the encoding.
pub(crate) fn spellings(secret: &str) -> Vec<(&'static str, Vec<u8>)> {
    let mut all = vec![
        ("plain", secret.as_bytes().to_vec()),
        ("hexadecimal", hex::encode(secret).into_bytes()),
        ("hexadecimal", hex::encode_upper(secret).into_bytes()),
        ("URL-encoded", utf8_percent_encode(secret, NON_ALPHANUMERIC).to_string().into()),
        ("URL-encoded", reserved(secret).into_bytes()),
        ("URL-encoded", reserved(secret).replace("%20", "+").into_bytes()),
    ];
    for engine in [&STANDARD, &URL_SAFE] {
        all.extend((0..3).map(|offset| ("base64", base64_core(engine, secret, offset))));
    }
    // For a secret without special characters several encodings are equal.
    all.sort_by(|a, b| a.1.cmp(&b.1));
    all.dedup_by(|a, b| a.1 == b.1);
    all
}

/// Percent-encodes all but the unreserved characters, as most clients do in URLs.
fn reserved(secret: &str) -> String {
    const RESERVED: &AsciiSet =
        &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    utf8_percent_encode(secret, RESERVED).to_string()
}

/// The base64 letters that depend on the secret alone, if `offset` bytes beyond a multiple of three precede it.
fn base64_core(engine: &impl Engine, secret: &str, offset: usize) -> Vec<u8> {
    let text = engine.encode([&b"xxx"[..offset], secret.as_bytes()].concat());
    let begin = (offset * 8).div_ceil(6);
    let end = (offset + secret.len()) * 8 / 6;
    text.into_bytes()[begin..end].to_vec()
}
