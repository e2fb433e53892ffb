//! The proxies that may tell who the client is.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::Deserialize;

use crate::Forwarded;

/// The most entries: a site has few load balancers.
const MOST: usize = 8;

/// The addresses and networks of proxies that may tell who the client is: `10.0.0.5` or `10.0.0.0/24`. The default trusts nobody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Vec<String>")]
pub struct TrustedProxies([Option<IpNet>; MOST]);

impl TrustedProxies {
    /// Whether a proxy at this address is trusted.
    pub fn contain(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().flatten().any(|network| network.contains(&address))
    }

    /// Whether the headers of a request from this address are trusted.
    pub fn forwarded(&self, peer: Option<IpAddr>) -> Forwarded {
        let is_trusted = peer.is_some_and(|peer| self.contain(peer));
        if is_trusted { Forwarded::Believed } else { Forwarded::Ignored }
    }
}

impl TryFrom<Vec<String>> for TrustedProxies {
    type Error = String;

    fn try_from(raw: Vec<String>) -> Result<Self, String> {
        if raw.len() > MOST {
            return Err(format!("more than {MOST} proxies; name their network instead"));
        }
        let mut networks = [None; MOST];
        for (place, text) in networks.iter_mut().zip(&raw) {
            let address = || text.parse::<IpAddr>().map(IpNet::from);
            let network = text.parse::<IpNet>().or_else(|_| address());
            let invalid = |_| format!("{text:?} is neither an IP address nor a network");
            *place = Some(network.map_err(invalid)?);
        }
        Ok(TrustedProxies(networks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(raw: &[&str]) -> Result<TrustedProxies, String> {
        raw.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>().try_into()
    }

    #[test]
    fn headers_are_trusted_from_these_addresses_only() {
        let proxies = proxies(&["10.0.0.5", "2001:db8::/32"]).unwrap();
        for (address, want) in [
            ("10.0.0.5", Forwarded::Believed),
            ("::ffff:10.0.0.5", Forwarded::Believed),
            ("10.0.0.6", Forwarded::Ignored),
            ("2001:db8::9", Forwarded::Believed),
        ] {
            assert_eq!(proxies.forwarded(address.parse().ok()), want, "{address}");
        }
        assert_eq!(proxies.forwarded(None), Forwarded::Ignored);
        let nobody = TrustedProxies::default();
        assert_eq!(nobody.forwarded("127.0.0.1".parse().ok()), Forwarded::Ignored);
    }

    #[test]
    fn an_invalid_proxy_is_named() {
        let why = proxies(&["10.0.0.5", "balancer"]).unwrap_err();
        assert_eq!(why, r#""balancer" is neither an IP address nor a network"#);
        assert!(proxies(&["10.0.0.1"; 9]).is_err());
    }
}
