//! Protection against cross-site request forgery: form tokens, and checks of the page that a request comes from.

use http::HeaderMap;
use http::header::{HOST, ORIGIN};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};

/// The purpose of the key that makes the tokens of forms.
const PURPOSE: &[u8] = b"bedplate console form";

/// Makes cookies, and tokens of forms that derive from a cookie: each of several consoles knows the tokens of the others.
pub(crate) struct Guard {
    random: SystemRandom,
}

/// The operating system provides no randomness.
#[derive(Debug, thiserror::Error)]
#[error("the operating system provides no randomness")]
pub(crate) struct NoRandomness;

impl Guard {
    pub(crate) fn new() -> Self {
        Guard { random: SystemRandom::new() }
    }

    /// Makes a cookie value of 256 random bits.
    pub(crate) fn cookie(&self) -> Result<String, NoRandomness> {
        let mut bytes = [0; 32];
        self.random.fill(&mut bytes).map_err(|_| NoRandomness)?;
        Ok(hex::encode(bytes))
    }

    /// The token that a form from the browser with this cookie has to contain.
    pub(crate) fn token(&self, cookie: &str) -> String {
        hex::encode(hmac::sign(&key(cookie), PURPOSE))
    }

    /// Whether a form shows the right token for the cookie.
    pub(crate) fn is_token(&self, cookie: &str, shown: &str) -> bool {
        let Ok(shown) = hex::decode(shown) else { return false };
        hmac::verify(&key(cookie), PURPOSE, &shown).is_ok()
    }
}

/// The cookie is a secret of 256 random bits, which only its browser and the consoles have.
fn key(cookie: &str) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, cookie.as_bytes())
}

/// Whether a page of this console sent the request, as far as the browser tells (Fetch Standard, "Origin header").
pub(crate) fn is_own(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|it: &http::HeaderValue| it.to_str().ok());
    if headers.get("sec-fetch-site").is_some_and(|site| site != "same-origin" && site != "none") {
        return false;
    }
    match headers.get(ORIGIN) {
        None => true,
        Some(_) => {
            let origin = text(ORIGIN).and_then(|origin| origin.split_once("://"));
            origin.is_some_and(|(_, host)| Some(host) == text(HOST))
        }
    }
}

/// Whether `Host` is `localhost` or a loopback address. Any other name may belong to an attacker whose DNS server answers with 127.0.0.1.
pub(crate) fn is_loopback(headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.chars().all(|c| c.is_ascii_digit()) => name,
        Some(_) | None => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']');
    name == "localhost" || address.parse::<std::net::IpAddr>().is_ok_and(|it| it.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| ((*name).parse().unwrap(), value.parse().unwrap()))
            .collect()
    }

    #[test]
    fn a_token_is_good_for_its_cookie_alone() {
        let guard = Guard::new();
        let (mine, other) = (guard.cookie().unwrap(), guard.cookie().unwrap());
        assert!(guard.is_token(&mine, &guard.token(&mine)));
        assert!(!guard.is_token(&mine, &guard.token(&other)));
        assert!(!guard.is_token(&mine, ""));
        assert!(!guard.is_token(&mine, "zz"));
        assert!(Guard::new().is_token(&mine, &guard.token(&mine)), "at another console");
    }

    #[test]
    fn a_request_from_another_site_is_recognised_by_its_headers() {
        for (pairs, own) in [
            (&[("host", "c:1")][..], true),
            (&[("host", "c:1"), ("origin", "http://c:1")], true),
            (&[("host", "c:1"), ("origin", "http://c:2")], false),
            (&[("host", "c:1"), ("origin", "null")], false),
            (&[("host", "c:1"), ("sec-fetch-site", "same-origin")], true),
            (&[("host", "c:1"), ("sec-fetch-site", "cross-site")], false),
        ] {
            assert_eq!(is_own(&headers(pairs)), own, "{pairs:?}");
        }
    }

    #[test]
    fn only_localhost_and_loopback_addresses_are_this_computer() {
        for (host, is_here) in [
            ("127.0.0.1:9510", true),
            ("localhost", true),
            ("[::1]:9510", true),
            ("evil.example:9510", false),
            ("localhost.evil.example", false),
            ("10.0.0.1", false),
        ] {
            assert_eq!(is_loopback(&headers(&[("host", host)])), is_here, "{host}");
        }
    }
}
