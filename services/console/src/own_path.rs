//! Checks paths that come from outside: the page after the log-in, and the page to follow.

use percent_encoding::percent_decode_str;

/// The first segment of every page that the console may redirect a user to.
const SECTIONS: [&str; 14] = [
    "",
    "audit",
    "bring-up",
    "clusters",
    "discoveries",
    "hosts",
    "images",
    "nodes",
    "profiles",
    "project",
    "quotas",
    "racks",
    "vms",
    "where",
];
/// The maximum length of a path with its query.
const LONGEST: usize = 2048;

/// Returns `given` if it is a path of this console, with or without a query; otherwise `None`.
///
/// A browser removes tabs and line breaks from an address and reads `\` as `/`, so `/<tab>/host`, `/\host` and `//host` lead to another
/// host (WHATWG URL, 4.4 "URL parsing"). Only the characters that RFC 3986 allows in a path and a query pass, and no segment of the path is
/// empty, `.` or `..`.
pub(crate) fn find(given: &str) -> Option<&str> {
    let (path, query) = given.split_once('?').unwrap_or((given, ""));
    let rest = path.strip_prefix('/')?;
    let is_short = given.len() <= LONGEST;
    let segments: Vec<&str> = rest.split('/').collect();
    let is_ours = segments.first().is_some_and(|section| SECTIONS.contains(section));
    let is_whole = rest.is_empty() || segments.iter().all(|segment| is_segment(segment));
    (is_short && is_ours && is_whole && is_text(query, b"/?")).then_some(given)
}

/// Returns `given` if it is a path of this console, and otherwise the path of the overview.
pub(crate) fn or_front(given: &str) -> &str {
    find(given).unwrap_or("/")
}

fn is_segment(segment: &str) -> bool {
    let decoded: Vec<u8> = percent_decode_str(segment).collect();
    is_text(segment, b"") && !matches!(decoded.as_slice(), b"" | b"." | b"..")
}

/// RFC 3986 §3.3 and §3.4: whether `text` consists of `pchar` and the characters in `more`. An encoded byte must not be a control character
/// or `\`.
fn is_text(text: &str, more: &[u8]) -> bool {
    let is_plain = |byte: &u8| {
        byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(byte) || more.contains(byte)
    };
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if is_plain(first) {
            continue;
        }
        let [high, low, after @ ..] = after else { return false };
        let Some(byte) = (*first == b'%').then(|| byte_of(*high, *low)).flatten() else {
            return false;
        };
        if byte.is_ascii_control() || byte == b'\\' {
            return false;
        }
        rest = after;
    }
    true
}

fn byte_of(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_of_this_console_are_accepted() {
        for own in [
            "/",
            "/?x=1",
            "/nodes",
            "/nodes?state=clean+failed&marker=0b",
            "/nodes/r1u7/console",
            "/nodes/gr%C3%BCn",
            "/racks/a%2Fb",
            "/where?resource=a/b",
            "/discoveries",
            "/project",
        ] {
            assert_eq!(or_front(own), own);
        }
        for elsewhere in [
            "",
            "nodes",
            "//evil.example",
            "///evil.example",
            "/\t/evil.example",
            "/\n/evil.example",
            "/\r/evil.example",
            "\t//evil.example",
            " /nodes",
            "/\\evil.example",
            "\\\\evil.example",
            "/nodes\\x",
            "/nodes/%5Cx",
            "/%09/evil.example",
            "/%2F/evil.example",
            "/\0",
            "/nodes/%00",
            "/nodes/%0d%0aset-cookie:x",
            "/nodes?x=%00",
            "/nodes?x=\u{7f}",
            "/nodes/..//evil.example",
            "/nodes/%2e%2e/x",
            "/nodes//x",
            "/nodes/",
            "/nodes#x",
            "/nodes/gr\u{fc}n",
            "/nodes/%",
            "/nodes/%4",
            "/nodes/%zz",
            "/nodes/%+1",
            "/login",
            "/login?next=/nodes",
            "/logout",
            "/live?page=/nodes",
            "/assets/x/console.css",
            "https://evil.example",
            "javascript:alert(1)",
            "/nowhere",
        ] {
            assert_eq!(or_front(elsewhere), "/", "{elsewhere:?}");
        }
        assert_eq!(find(&format!("/nodes/{}", "x".repeat(LONGEST))), None);
    }

    #[test]
    fn every_page_of_the_navigation_is_accepted() {
        let base = include_str!("../templates/base.html");
        let links: Vec<&str> =
            base.split("parts::link(to=\"").skip(1).filter_map(|it| it.split('"').next()).collect();
        assert!(links.len() >= 12, "{links:?}");
        for link in links {
            assert_eq!(find(link), Some(link));
        }
    }
}
