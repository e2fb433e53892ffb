//! The origin (scheme, host, port) of a BMC. Links that lead to another origin are refused.

use bmc::{BmcError, Result};
use hardware::{AllowedHosts, HostRefused};
use url::Url;

/// The longest link that is followed, in bytes; real links stay below a hundred.
const LONGEST_LINK: usize = 2048;

/// Scheme, host and port of one BMC.
#[derive(Clone, Debug)]
pub(crate) struct Origin(Url);

impl Origin {
    /// Returns the origin of `address`, without path, query and user.
    pub(crate) fn of(address: &Url) -> Self {
        let mut base = address.clone();
        base.set_path("/");
        base.set_query(None);
        base.set_fragment(None);
        // Both calls fail only for schemes without a host, which `follow` refuses.
        let _ = base.set_username("");
        let _ = base.set_password(None);
        Origin(base)
    }

    /// Host and port, for error messages.
    pub(crate) fn host(&self) -> String {
        let host = self.0.host_str().unwrap_or("?");
        match self.0.port_or_known_default() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        }
    }

    /// Fails if no connection may go to the address.
    pub(crate) fn check(&self, allowed: &AllowedHosts) -> Result<()> {
        allowed.check(self.0.host_str().unwrap_or_default()).map_err(|why| host_not_allowed(&why))
    }

    /// Returns the URL of the service root, the only well-known path (DSP0266 §6.3).
    pub(crate) fn root(&self) -> Result<Url> {
        self.follow("/redfish/v1/")
    }

    /// Resolves a link that the BMC sent. A link to another origin is refused: otherwise a BMC could have its password sent to another
    /// host.
    pub(crate) fn follow(&self, link: &str) -> Result<Url> {
        if !matches!(self.0.scheme(), "http" | "https") {
            return Err(BmcError::Unsupported {
                what: format!("be reached over {}", self.0.scheme()),
            });
        }
        let malformed = |reason: &str| BmcError::Malformed {
            request: format!("GET {}", link.chars().take(200).collect::<String>()),
            reason: reason.to_owned(),
        };
        if link.is_empty() || link.len() > LONGEST_LINK {
            return Err(malformed("the link is empty or too long"));
        }
        let mut url = self.0.join(link).map_err(|_| malformed("the link is not a path"))?;
        let bare = url.username().is_empty() && url.password().is_none();
        if url.origin() != self.0.origin() || !bare {
            return Err(malformed("the link leads to another host than the BMC"));
        }
        // `/redfish/v1/Chassis/1/Thermal#/Fans/0` points into a document (RFC 6901).
        url.set_fragment(None);
        Ok(url)
    }
}

/// Makes the error for a BMC at a host that is not allowed.
pub(crate) fn host_not_allowed(why: &HostRefused) -> BmcError {
    BmcError::Unsupported { what: format!("be connected to: {why}") }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn origin() -> Origin {
        Origin::of(&"https://user:secret@10.0.0.1:8443/some/path?q#f".parse().unwrap())
    }

    #[track_caller]
    fn check(link: &str, want: Option<&str>) {
        assert_eq!(origin().follow(link).ok().map(String::from).as_deref(), want);
    }

    #[test]
    fn links_within_the_bmc_are_followed() {
        check("/redfish/v1/Systems", Some("https://10.0.0.1:8443/redfish/v1/Systems"));
        check("https://10.0.0.1:8443/a", Some("https://10.0.0.1:8443/a"));
        check("/a#/Fans/0", Some("https://10.0.0.1:8443/a"));
    }

    #[test]
    fn links_that_leave_the_bmc_are_refused() {
        check("https://10.0.0.2:8443/a", None);
        check("https://10.0.0.1/a", None);
        check("http://10.0.0.1:8443/a", None);
        check("//evil.example/a", None);
        check("\\\\evil.example\\a", None);
        check("https://u:p@10.0.0.1:8443/a", None);
        check("javascript:alert(1)", None);
        check("", None);
    }

    #[test]
    fn only_http_and_https_are_supported() {
        let ftp = Origin::of(&"ftp://10.0.0.1/".parse().unwrap());
        assert!(matches!(ftp.follow("/a"), Err(BmcError::Unsupported { .. })));
    }

    proptest! {
        #[test]
        fn no_link_leaves_the_origin(link: String) {
            if let Ok(url) = origin().follow(&link) {
                prop_assert_eq!(url.origin(), origin().0.origin());
            }
        }
    }
}
