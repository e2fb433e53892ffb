//! Allow-lists of hosts and networks, for connections whose target a caller or an image server chooses.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use serde::{Deserialize, Serialize};

/// A network as address and prefix length: `10.0.0.0/8`. Text without a prefix length is one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Network(IpNet);

/// The text is not a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{raw:?} is not a network: write an address and a prefix length, such as 10.0.0.0/8")]
pub struct InvalidNetwork {
    /// The text, cut to 64 characters.
    pub raw: String,
}

impl FromStr for Network {
    type Err = InvalidNetwork;

    fn from_str(raw: &str) -> Result<Self, InvalidNetwork> {
        let invalid = || InvalidNetwork { raw: raw.chars().take(64).collect() };
        let Some((address, prefix)) = raw.split_once('/') else {
            return raw
                .parse()
                .map(|address: IpAddr| Network(address.into()))
                .map_err(|_| invalid());
        };
        // The parser of `IpNet` reads 010.0.0.0 as 10.0.0.0, which other programs read as 8.0.0.0.
        let address: IpAddr = address.parse().map_err(|_| invalid())?;
        let is_number = prefix.bytes().all(|byte| byte.is_ascii_digit());
        let prefix = prefix.parse().ok().filter(|_| is_number).ok_or_else(invalid)?;
        IpNet::new(address, prefix).map(Network).map_err(|_| invalid())
    }
}

words::strings!(Network);

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Network {
    /// Whether the address is in the network. An IPv4-mapped IPv6 address (`::ffff:10.0.0.1`) counts as the IPv4 address.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }
}

/// One entry of an allow-list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum AllowedHost {
    /// A DNS name in lower case, whichever addresses the name resolves to.
    Name(String),
    /// A network, or a single address.
    Network(Network),
}

/// The text is neither a network nor a DNS name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{raw:?} is neither a host name nor a network, such as images.example or 10.0.0.0/8")]
pub struct InvalidHost {
    /// The text, cut to 64 characters.
    pub raw: String,
}

impl TryFrom<String> for AllowedHost {
    type Error = InvalidHost;

    fn try_from(raw: String) -> Result<Self, InvalidHost> {
        if let Ok(network) = raw.parse() {
            return Ok(AllowedHost::Network(network));
        }
        let legal = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        let is_name = !raw.is_empty() && raw.len() <= 253 && raw.chars().all(legal);
        // Digits and dots alone, such as 10.0.0, are a mistyped address and not a name.
        if !is_name || raw.chars().all(|c| c.is_ascii_digit() || c == '.') {
            return Err(InvalidHost { raw: raw.chars().take(64).collect() });
        }
        Ok(AllowedHost::Name(normalize(&raw)))
    }
}

impl From<AllowedHost> for String {
    fn from(host: AllowedHost) -> String {
        match host {
            AllowedHost::Name(name) => name,
            AllowedHost::Network(network) => network.to_string(),
        }
    }
}

/// Normalizes a DNS name for comparison: lower case, no final dot.
fn normalize(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}

/// The hosts that connections may go to: the listed ones, or, without a list, every address of another machine.
///
/// A host is checked twice: once as the URL names the host, and once for each address that the name resolves to when a connection is made.
/// The second check stops a name that resolves to a forbidden address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AllowedHosts(Option<Vec<AllowedHost>>);

/// A connection may not go to this host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{host} {why}")]
pub struct HostRefused {
    /// The host, cut to 64 characters.
    pub host: String,
    /// The reason, as a predicate: `is a loopback address`.
    pub why: &'static str,
}

impl AllowedHosts {
    /// Allows the listed hosts; `None` allows every address that can belong to another machine.
    pub fn new(listed: Option<Vec<AllowedHost>>) -> Self {
        AllowedHosts(listed)
    }

    /// Allows addresses in these networks; `None` allows every address that can belong to another machine.
    pub fn within(networks: Option<Vec<Network>>) -> Self {
        let listed =
            |networks: Vec<Network>| networks.into_iter().map(AllowedHost::Network).collect();
        AllowedHosts(networks.map(listed))
    }

    /// Allows every address, also this machine's own: for a caller whose targets come from an operator and not from a request.
    pub fn anywhere() -> Self {
        let all = [IpNet::V4(Ipv4Net::default()), IpNet::V6(Ipv6Net::default())];
        AllowedHosts::within(Some(all.map(Network).into()))
    }

    /// Checks the host of a URL. If the host is a name, check its addresses too, with [`AllowedHosts::check_resolved`].
    ///
    /// # Errors
    ///
    /// The list does not allow the host.
    pub fn check(&self, host: &str) -> Result<(), HostRefused> {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        // The address may carry a zone: fe80::1%eth0.
        if let Ok(address) = bare.split('%').next().unwrap_or(bare).parse() {
            return self.check_address(address);
        }
        let name = normalize(host);
        let refuse = |why| Err(HostRefused { host: host.chars().take(64).collect(), why });
        match &self.0 {
            // RFC 6761 §6.3: `localhost` names are loopback whatever a resolver says.
            None if name == "localhost" || name.ends_with(".localhost") => refuse(LOOPBACK),
            None => Ok(()),
            Some(listed) => match listed.iter().any(|it| match it {
                AllowedHost::Name(listed) => *listed == name,
                // A name may resolve into the network: `check_resolved` decides that.
                AllowedHost::Network(_) => true,
            }) {
                true => Ok(()),
                false => refuse(UNLISTED),
            },
        }
    }

    /// Checks an address that `name` resolved to.
    ///
    /// # Errors
    ///
    /// The list allows neither the name nor the address.
    pub fn check_resolved(&self, name: &str, address: IpAddr) -> Result<(), HostRefused> {
        let name = AllowedHost::Name(normalize(name));
        let is_named = self.0.as_ref().is_some_and(|listed| listed.contains(&name));
        if is_named { Ok(()) } else { self.check_address(address) }
    }

    /// Checks an address.
    ///
    /// # Errors
    ///
    /// The list does not allow the address.
    pub fn check_address(&self, address: IpAddr) -> Result<(), HostRefused> {
        let why = match &self.0 {
            None => refusal_reason(address.to_canonical()),
            Some(listed) => {
                let holds = |it: &AllowedHost| match it {
                    AllowedHost::Network(network) => network.contains(address),
                    AllowedHost::Name(_) => false,
                };
                (!listed.iter().any(holds)).then_some(UNLISTED)
            }
        };
        match why {
            None => Ok(()),
            Some(why) => Err(HostRefused { host: address.to_string(), why }),
        }
    }
}

const LOOPBACK: &str = "is a loopback address";
const UNLISTED: &str = "is not in the list of allowed hosts";

/// Returns the reason why an address cannot be another machine's (RFC 6890), or `None` for an ordinary address.
fn refusal_reason(address: IpAddr) -> Option<&'static str> {
    let is_link_local = match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    let is_broadcast = match address {
        IpAddr::V4(address) => address.is_broadcast(),
        IpAddr::V6(_) => false,
    };
    match () {
        () if address.is_loopback() => Some(LOOPBACK),
        () if is_link_local => Some("is a link-local address"),
        () if address.is_multicast() => Some("is a multicast address"),
        () if address.is_unspecified() => Some("is the unspecified address"),
        () if is_broadcast => Some("is the broadcast address"),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn listed(hosts: &[&str]) -> AllowedHosts {
        let parse = |host: &&str| AllowedHost::try_from((*host).to_owned()).unwrap();
        AllowedHosts::new(Some(hosts.iter().map(parse).collect()))
    }

    #[track_caller]
    fn check(allowed: &AllowedHosts, host: &str, want: Result<(), &str>) {
        let got = allowed.check(host).map_err(|refused| refused.why);
        assert_eq!(got, want, "{host}");
    }

    #[test]
    fn without_a_list_a_host_has_to_be_another_machine() {
        let any = AllowedHosts::default();
        for host in ["10.0.0.1", "192.0.2.1", "[2001:db8::1]", "fd00::1", "bmc.example"] {
            check(&any, host, Ok(()));
        }
        for (host, why) in [
            ("127.0.0.1", LOOPBACK),
            ("127.9.9.9", LOOPBACK),
            ("[::1]", LOOPBACK),
            ("::ffff:127.0.0.1", LOOPBACK),
            ("localhost", LOOPBACK),
            ("LocalHost.", LOOPBACK),
            ("x.localhost", LOOPBACK),
            ("169.254.169.254", "is a link-local address"),
            ("fe80::1", "is a link-local address"),
            ("fe80::1%eth0", "is a link-local address"),
            ("224.0.0.1", "is a multicast address"),
            ("[ff02::1]", "is a multicast address"),
            ("0.0.0.0", "is the unspecified address"),
            ("::", "is the unspecified address"),
            ("255.255.255.255", "is the broadcast address"),
        ] {
            check(&any, host, Err(why));
        }
    }

    #[test]
    fn a_list_names_all_that_is_allowed() {
        let allowed = listed(&["127.0.0.0/8", "10.1.0.0/16", "2001:db8::/32", "192.0.2.7"]);
        for host in ["127.0.0.1", "10.1.2.3", "[2001:db8:1::1]", "192.0.2.7", "::ffff:10.1.0.1"] {
            check(&allowed, host, Ok(()));
        }
        for host in ["10.2.0.1", "[2001:db9::1]", "192.0.2.8", "169.254.1.1", "::1"] {
            check(&allowed, host, Err(UNLISTED));
        }
        let names = listed(&["Images.Example", "files.example."]);
        check(&names, "images.example", Ok(()));
        check(&names, "FILES.example.", Ok(()));
        check(&names, "evil.images.example", Err(UNLISTED));
        check(&names, "10.0.0.1", Err(UNLISTED));
        check(&listed(&[]), "10.0.0.1", Err(UNLISTED));
    }

    #[test]
    fn a_name_is_allowed_by_itself_or_by_its_addresses() {
        let refused = |allowed: &AllowedHosts, name: &str, address: &str| {
            allowed.check_resolved(name, address.parse().unwrap()).is_err()
        };
        let any = AllowedHosts::default();
        assert!(
            refused(&any, "bmc.example", "127.0.0.1") && !refused(&any, "bmc.example", "10.0.0.1")
        );
        let some = listed(&["images.example", "10.0.0.0/8"]);
        check(&some, "other.example", Ok(()));
        assert!(!refused(&some, "images.example", "192.0.2.1"));
        assert!(!refused(&some, "other.example", "10.9.9.9"));
        assert!(refused(&some, "other.example", "192.0.2.1"));
    }

    #[test]
    fn text_that_is_neither_network_nor_name_is_refused() {
        for raw in [
            "",
            "10.0.0.0/33",
            "::/129",
            "10.0.0.0/",
            "10.0.0.0/+8",
            "10.0.0",
            "a b",
            "http://a",
            "a:80",
        ] {
            assert!(AllowedHost::try_from(raw.to_owned()).is_err(), "{raw:?} passed");
        }
        let name = |length: usize| AllowedHost::try_from("x".repeat(length));
        assert!(name(253).is_ok() && name(254).is_err());
        assert_eq!("10.0.0.0/8".parse::<Network>().map(String::from), Ok("10.0.0.0/8".to_owned()));
        assert!("0.0.0.0/0".parse::<Network>().unwrap().contains([9, 9, 9, 9].into()));
    }

    proptest! {
        #[test]
        fn no_text_panics(raw: String) {
            let _ = AllowedHost::try_from(raw.clone());
            let _ = AllowedHosts::default().check(&raw);
        }

        #[test]
        fn a_network_contains_its_own_addresses(bits: u32, prefix in 0_u8..=32) {
            let address = IpAddr::V4(bits.into());
            let network: Network = format!("{address}/{prefix}").parse().unwrap();
            prop_assert!(network.contains(address));
        }
    }

    #[test]
    fn networks_alone_allow_no_other_address_and_anywhere_allows_all() {
        let inside = AllowedHosts::within(Some(vec!["10.0.0.0/8".parse().unwrap()]));
        check(&inside, "10.1.2.3", Ok(()));
        check(&inside, "192.0.2.1", Err(UNLISTED));
        let any = AllowedHosts::within(None);
        check(&any, "192.0.2.1", Ok(()));
        check(&any, "127.0.0.1", Err(LOOPBACK));
        for host in ["10.1.2.3", "127.0.0.1", "[::1]", "169.254.169.254", "localhost"] {
            check(&AllowedHosts::anywhere(), host, Ok(()));
        }
    }

    #[test]
    fn an_entry_is_written_as_it_is_read() {
        for (raw, written) in [("Images.Example.", "images.example"), ("10.0.0.7", "10.0.0.7/32")] {
            let host = AllowedHost::try_from(raw.to_owned()).unwrap();
            assert_eq!(String::from(host), written);
        }
    }
}
