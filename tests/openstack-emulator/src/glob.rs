//! Patterns for paths and names.

/// Whether `text` matches `pattern`, in which `*` stands for anything but a slash and `**` for anything.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    if let Some(rest) = pattern.strip_prefix("**") {
        return text.char_indices().any(|(at, _)| matches(rest, &text[at..])) || matches(rest, "");
    }
    if let Some(rest) = pattern.strip_prefix('*') {
        let end = text.find('/').unwrap_or(text.len());
        let mut ends = text[..end].char_indices().map(|(at, _)| at).chain([end]);
        return ends.any(|at| matches(rest, &text[at..]));
    }
    let Some(first) = pattern.chars().next() else { return text.is_empty() };
    text.strip_prefix(first).is_some_and(|text| matches(&pattern[first.len_utf8()..], text))
}

/// The pattern with `*` for each `{name}`, as used in Keystone's access rules.
pub(crate) fn without_names(pattern: &str) -> String {
    let mut parts = pattern.split('{');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        format!("{text}*{}", part.split_once('}').map_or("", |(_, rest)| rest))
    })
}

#[cfg(test)]
mod tests {
    use super::{matches, without_names};

    #[test]
    fn one_star_stays_within_a_segment_and_two_do_not() {
        assert!(matches("/compute/v2.1/servers", "/compute/v2.1/servers"));
        assert!(matches("/compute/v2.1/servers/*", "/compute/v2.1/servers/1"));
        assert!(!matches("/compute/v2.1/servers/*", "/compute/v2.1/servers/1/action"));
        assert!(matches("/compute/**", "/compute/v2.1/servers/1/action"));
        assert!(matches("**/action", "/compute/v2.1/servers/1/action"));
        assert!(matches("/**", "/"));
        assert!(matches("web-*", "web-1"));
        assert!(!matches("web-*", "db-1"));
        assert_eq!(without_names("/v2.1/servers/{id}/ips/{name}"), "/v2.1/servers/*/ips/*");
    }
}
