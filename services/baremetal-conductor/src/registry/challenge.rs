//! Parses the header `WWW-Authenticate`, by which a registry asks for a login (RFC 9110 §11.6.1).

use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};

/// The kind of login that a registry asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    /// A token of the token server at the URL `realm`.
    Token {
        realm: String,
        /// The name of the registry at the token server.
        service: Option<String>,
    },
    /// A user name and a password.
    Basic,
}

impl Challenge {
    /// Returns the first challenge of a known kind.
    pub(super) fn of(headers: &HeaderMap) -> Option<Challenge> {
        let values = headers.get_all(WWW_AUTHENTICATE).iter();
        values.filter_map(|value| Challenge::parse(value.to_str().ok()?)).next()
    }

    fn parse(text: &str) -> Option<Challenge> {
        let (scheme, rest) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
        if scheme.eq_ignore_ascii_case("basic") {
            return Some(Challenge::Basic);
        }
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let parameters = parameters(rest);
        let value = |name: &str| {
            let found = parameters.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.clone())
        };
        Some(Challenge::Token { realm: value("realm")?, service: value("service") })
    }
}

/// Parses `name=value` pairs, separated by commas. A value is a word, or a text in quotes.
fn parameters(text: &str) -> Vec<(&str, String)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((name, after)) = rest.split_once('=') {
        let name = name.trim_matches([' ', '\t', ',']);
        let (value, left) = match after.trim_start().strip_prefix('"') {
            Some(quoted) => unquoted(quoted),
            None => {
                let (word, left) = after.split_once(',').unwrap_or((after, ""));
                (word.trim().to_owned(), left)
            }
        };
        found.push((name, value));
        rest = left;
    }
    found
}

/// Returns the text before the closing quote, and the rest after it. A backslash makes the next character ordinary.
fn unquoted(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (value, &text[at + 1..]),
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            other => value.push(other),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;

    fn challenge(values: &[&str]) -> Option<Challenge> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(WWW_AUTHENTICATE, HeaderValue::from_str(value).unwrap());
        }
        Challenge::of(&headers)
    }

    fn token(realm: &str, service: Option<&str>) -> Option<Challenge> {
        Some(Challenge::Token { realm: realm.to_owned(), service: service.map(str::to_owned) })
    }

    #[test]
    fn the_first_known_challenge_counts() {
        let realm = "https://auth.example/token?a=b,c";
        let (bearer, basic) = (
            format!(
                r#"Bearer realm="{realm}",service="registry.example",scope="repository:a:pull""#
            ),
            r#"Basic realm="registry""#,
        );
        let want = token(realm, Some("registry.example"));
        assert_eq!(challenge(&[&bearer]), want);
        assert_eq!(challenge(&["Negotiate", &bearer, basic]), want);
        assert_eq!(challenge(&[basic, &bearer]), Some(Challenge::Basic));
        assert_eq!(challenge(&["basic"]), Some(Challenge::Basic));
        for other in
            [&[][..], &["Digest realm=\"x\""], &["Bearer"], &["Bearer service=\"x\""], &[""]]
        {
            assert_eq!(challenge(other), None, "{other:?}");
        }
    }

    #[test]
    fn parameters_are_words_or_quoted() {
        for (text, want) in [
            ("bearer Realm=https://a , SERVICE = \"x y\" ", token("https://a", Some("x y"))),
            (r#"Bearer error="a=b, \"c\"", realm="https://a""#, token("https://a", None)),
            (r#"Bearer realm="https://a"#, token("https://a", None)),
            (r#"Bearer realm="a\"#, token("a", None)),
            ("Bearer realm=", token("", None)),
        ] {
            assert_eq!(challenge(&[text]), want, "{text}");
        }
    }
}
