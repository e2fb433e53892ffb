//! Prevents pages of other websites from acting through the browser of a user.
//!
//! A browser sends the request of a foreign page to any address the page names, together with a remembered password. The page can also
//! point its own domain name to the address of this machine (DNS rebinding); then the browser treats the API as a part of that website.
//! `Sec-Fetch-Site` and `Origin` (Fetch Standard) reveal the first attack, `Host` reveals the second.

use std::net::IpAddr;

use axum::extract::Request;
use http::header::{HOST, ORIGIN};
use http::uri::Authority;
use http::{HeaderName, StatusCode};
use serde::Deserialize;

use crate::socket_tickets::OpenedByTicket;
use crate::{ApiError, Auth};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// A host as a client names it: a DNS name in lower case or an IP address, without a port.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct HostName(String);

impl TryFrom<String> for HostName {
    type Error = String;

    fn try_from(raw: String) -> Result<Self, String> {
        let bare = raw.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = bare.parse::<IpAddr>() {
            return Ok(HostName(address.to_canonical().to_string()));
        }
        let legal = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        if raw.is_empty() || raw.len() > 253 || !raw.chars().all(legal) {
            return Err(format!(
                "{raw:?} is neither a host name nor an IP address (without a port)"
            ));
        }
        Ok(HostName(raw.trim_end_matches('.').to_ascii_lowercase()))
    }
}

/// The hosts under which clients may reach an API.
#[derive(Clone, Debug)]
pub struct AllowedHostNames {
    listen: IpAddr,
    named: Vec<HostName>,
}

impl AllowedHostNames {
    /// Allows the names and addresses of this machine, the address that the API listens on, and the configured hosts `named`.
    pub fn new(listen: IpAddr, named: Vec<HostName>) -> Self {
        AllowedHostNames { listen: listen.to_canonical(), named }
    }

    /// Whether a client may name this host in `Host` or in the request line.
    fn permit(&self, asked: &str) -> bool {
        let Ok(asked) = asked.parse::<Authority>() else { return false };
        if asked.as_str().contains('@') {
            return false;
        }
        let Ok(asked) = HostName::try_from(asked.host().to_owned()) else { return false };
        if self.named.contains(&asked) {
            return true;
        }
        match asked.0.parse::<IpAddr>() {
            // An IP address cannot be rebound to another site. If the API listens on every address, each address that reaches it belongs to
            // this machine.
            Ok(address) => {
                address.is_loopback() || address == self.listen || self.listen.is_unspecified()
            }
            Err(_) => asked.0 == "localhost",
        }
    }
}

/// Decides which requests of browsers an API refuses.
#[derive(Clone, Debug)]
pub struct BrowserCheck {
    hosts: AllowedHostNames,
    proof: BrowserCredential,
}

/// The credential that a browser would add to the request of a foreign page without asking the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BrowserCredential {
    /// The API needs no credential.
    Needless,
    /// A password of HTTP basic authentication, which a browser remembers.
    Password,
    /// None: a browser does not know the Keystone token.
    None,
}

impl BrowserCheck {
    /// Makes the check for an API with this authentication and these hosts.
    pub fn new(auth: &Auth, hosts: AllowedHostNames) -> Self {
        let proof = match auth {
            Auth::None => BrowserCredential::Needless,
            Auth::HttpBasic(_) => BrowserCredential::Password,
            Auth::Keystone(_) => BrowserCredential::None,
        };
        BrowserCheck { hosts, proof }
    }

    /// Refuses a request that the page of another website may have sent.
    ///
    /// Without authentication every request is checked and must name an allowed host. With basic authentication only requests of browsers
    /// that may change something are checked: other programs send a password only if the user gave it to them, so they may use any host
    /// name.
    ///
    /// # Errors
    ///
    /// 403.
    pub(crate) fn check(&self, request: &Request) -> Result<(), ApiError> {
        let headers = request.headers();
        if request.extensions().get::<OpenedByTicket>().is_some() {
            return Ok(());
        }
        match self.proof {
            BrowserCredential::None => return Ok(()),
            BrowserCredential::Password if request.method().is_safe() => return Ok(()),
            BrowserCredential::Password
                if !headers.contains_key(ORIGIN) && !headers.contains_key(SEC_FETCH_SITE) =>
            {
                return Ok(());
            }
            BrowserCredential::Password | BrowserCredential::Needless => {}
        }
        let refuse = |why: String| Err(ApiError::protocol(StatusCode::FORBIDDEN, why));
        if headers
            .get_all(SEC_FETCH_SITE)
            .iter()
            .any(|from| from != "same-origin" && from != "none")
        {
            return refuse("Sec-Fetch-Site: requests from other websites are refused".to_owned());
        }
        let host = headers.get(HOST).map(|host| host.to_str().unwrap_or_default());
        let authority = request.uri().authority().map(Authority::as_str);
        if let Some(other) =
            [host, authority].into_iter().flatten().find(|it| !self.hosts.permit(it))
        {
            let other: String = other.chars().take(64).collect();
            return refuse(format!(
                "Host: {other:?} is not a known name of this service: if it is one, add it to api.hosts"
            ));
        }
        let own = |origin: &http::HeaderValue| {
            let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
            origin.zip(host).is_some_and(|((_, from), host)| from.eq_ignore_ascii_case(host))
        };
        match headers.get_all(ORIGIN).iter().all(own) {
            true => Ok(()),
            false => refuse("Origin: requests from other websites are refused".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::body::Body;
    use http::Method;

    use super::*;
    use crate::Htpasswd;

    const OWN: &str = "127.0.0.1:6385";

    fn hosts(listen: &str) -> AllowedHostNames {
        let named = ["Cloud.Example", "192.0.2.1"].map(|name| name.to_owned().try_into().unwrap());
        AllowedHostNames::new(listen.parse().unwrap(), named.into())
    }

    fn basic() -> Auth {
        let hash = "$2b$04$9PJhBhcXWIeBYt0sOo1NUea2mu/VB2IenebDIUfWQvvcJAumssJmy";
        Auth::HttpBasic(Arc::new(Htpasswd::parse(&format!("admin:{hash}")).unwrap()))
    }

    /// The header that caused the refusal of such a request, or `passes`.
    fn asked(auth: &Auth, method: Method, uri: &str, headers: &[(&str, &str)]) -> String {
        let request = Request::builder().method(method).uri(uri);
        let request = headers.iter().fold(request, |it, (name, value)| it.header(*name, *value));
        let browsers = BrowserCheck::new(auth, hosts("127.0.0.1"));
        match browsers.check(&request.body(Body::empty()).unwrap()) {
            Ok(()) => "passes".to_owned(),
            Err(why) => {
                assert_eq!(why.status, StatusCode::FORBIDDEN);
                why.message.split(':').next().unwrap().to_owned()
            }
        }
    }

    #[track_caller]
    fn check(auth: &Auth, method: Method, headers: &[(&str, &str)], want: &str) {
        assert_eq!(asked(auth, method, "/", headers), want, "{headers:?}");
    }

    #[test]
    fn a_foreign_name_that_resolves_to_this_machine_is_refused() {
        for (host, want) in [
            (OWN, "passes"),
            ("localhost:6385", "passes"),
            ("LOCALHOST", "passes"),
            ("[::1]:6385", "passes"),
            ("[::ffff:127.0.0.1]", "passes"),
            ("cloud.example:443", "passes"),
            ("cloud.example.", "passes"),
            ("192.0.2.1", "passes"),
            ("evil.example:6385", "Host"),
            ("localhost.evil.example", "Host"),
            ("127.0.0.1.evil.example", "Host"),
            ("evil.example@127.0.0.1", "Host"),
            ("10.0.0.1:6385", "Host"),
            ("", "Host"),
            ("a b", "Host"),
        ] {
            for method in [Method::GET, Method::POST] {
                check(&Auth::None, method, &[("host", host)], want);
            }
        }
        // HTTP/1.0 without `Host`; no browser speaks HTTP/1.0.
        check(&Auth::None, Method::POST, &[], "passes");
        let absolute = asked(&Auth::None, Method::GET, "http://evil.example/", &[("host", OWN)]);
        assert_eq!(absolute, "Host");
    }

    #[test]
    fn an_api_that_listens_everywhere_accepts_every_address() {
        assert!(hosts("0.0.0.0").permit("10.0.0.1:6385") && hosts("::").permit("[2001:db8::1]"));
        assert!(!hosts("0.0.0.0").permit("evil.example"));
        assert!(hosts("10.0.0.1").permit("10.0.0.1") && !hosts("10.0.0.1").permit("10.0.0.2"));
    }

    #[test]
    fn another_sites_page_is_refused_without_authentication() {
        for method in [Method::GET, Method::POST, Method::PUT, Method::DELETE] {
            for (name, value, want) in [
                ("sec-fetch-site", "cross-site", "Sec-Fetch-Site"),
                ("sec-fetch-site", "same-site", "Sec-Fetch-Site"),
                ("sec-fetch-site", "same-origin", "passes"),
                ("sec-fetch-site", "none", "passes"),
                ("origin", "http://evil.example", "Origin"),
                ("origin", "http://127.0.0.1:3000", "Origin"),
                ("origin", "null", "Origin"),
                ("origin", "http://127.0.0.1:6385", "passes"),
            ] {
                check(&Auth::None, method.clone(), &[("host", OWN), (name, value)], want);
            }
            check(&Auth::None, method, &[("host", OWN), ("user-agent", "curl/8")], "passes");
        }
    }

    #[test]
    fn a_remembered_password_does_not_let_another_site_change_anything() {
        let cross = [("host", "any.example"), ("sec-fetch-site", "cross-site")];
        let origin = [("host", "any.example"), ("origin", "http://evil.example")];
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            check(&basic(), method.clone(), &cross, "Sec-Fetch-Site");
            check(&basic(), method.clone(), &origin, "Host");
            let named = [("host", "cloud.example"), ("origin", "http://evil.example")];
            check(&basic(), method.clone(), &named, "Origin");
            let rebound = [("host", "evil.example"), ("origin", "http://evil.example")];
            check(&basic(), method.clone(), &rebound, "Host");
            // Programs that are not browsers may use any host name.
            check(&basic(), method, &[("host", "any.example")], "passes");
        }
        check(&basic(), Method::GET, &cross, "passes");
    }

    #[test]
    fn a_host_of_the_configuration_is_a_name_or_an_address() {
        let read = |raw: &str| HostName::try_from(raw.to_owned()).map(|HostName(name)| name);
        assert_eq!(read("API.example."), Ok("api.example".to_owned()));
        assert_eq!(read("[2001:DB8::1]"), Ok("2001:db8::1".to_owned()));
        for raw in ["", "http://a", "a:6385", "*", "a b"] {
            assert!(read(raw).is_err(), "{raw:?} passed");
        }
    }
}
