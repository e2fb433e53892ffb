//! What has to be found: a search that finds none of it looked at nothing, or cannot see.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// As it is.
pub const PLAIN: &str = "control plain/3k8+Rw5";
/// In base64, in JSON that is in base64 itself.
pub const NESTED: &str = "control nested/7m2+Lc9";
/// Percent-encoded twice.
pub const PERCENT: &str = "control percent/1v6+Fg4";
/// A list of numbers.
pub const BYTES: &str = "control bytes/9d5+Xt2";

/// Those that are to be found wherever something was kept or printed.
pub const ALL: [&str; 4] = [PLAIN, NESTED, PERCENT, BYTES];

/// All of them, each spelled as it is to be found, in one line.
pub fn planted() -> String {
    let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let within = format!("{{\"secret\": \"{}\"}}", STANDARD.encode(NESTED));
    let (nested, percent) = (STANDARD.encode(within), encoded(&encoded(PERCENT)));
    format!("{PLAIN} {nested} {percent} {:?}", BYTES.as_bytes())
}
