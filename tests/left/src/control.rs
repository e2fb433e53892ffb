//! Texts that the search must find. If the search misses one of them, it looked at nothing or cannot decode.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// Planted in plain text.
pub const PLAIN: &str = "control plain/3k8+Rw5";
/// Planted in base64, inside JSON that is base64-encoded itself.
pub const NESTED: &str = "control nested/7m2+Lc9";
/// Planted with double percent-encoding.
pub const PERCENT: &str = "control percent/1v6+Fg4";
/// Planted as a list of numbers.
pub const BYTES: &str = "control bytes/9d5+Xt2";

/// The texts that must be found in everything that was kept or printed.
pub const ALL: [&str; 4] = [PLAIN, NESTED, PERCENT, BYTES];

/// A line with all texts, each in its encoding.
pub fn planted() -> String {
    let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let within = format!("{{\"secret\": \"{}\"}}", STANDARD.encode(NESTED));
    let (nested, percent) = (STANDARD.encode(within), encoded(&encoded(PERCENT)));
    format!("{PLAIN} {nested} {percent} {:?}", BYTES.as_bytes())
}
