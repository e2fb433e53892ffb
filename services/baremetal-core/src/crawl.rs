//! Plans the crawl for BMCs: which addresses are asked, and what a found BMC is to the records.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

use hardware::AllowedHosts;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;

use crate::bmc_identity::{Transport, bmc_endpoint};
use crate::{BmcAnswer, BmcIdentity, Discovery, DiscoveryId};

/// The most addresses of a range. Asking all of them takes about an hour at twenty per second.
const MOST_ADDRESSES: u32 = 1 << 16;

/// A range of IPv4 addresses: `10.0.1.0/24` without the address of the network and that of its broadcast, or `10.0.1.10-10.0.1.99`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct CrawlRange {
    first: u32,
    last: u32,
}

/// The text is not a range of addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{raw:?} is not a range of at most 65536 IPv4 addresses, such as 10.0.1.0/24 or 10.0.1.10-10.0.1.99"
)]
pub struct InvalidCrawlRange {
    /// The text, cut to 64 characters.
    pub raw: String,
}

impl FromStr for CrawlRange {
    type Err = InvalidCrawlRange;

    fn from_str(raw: &str) -> Result<Self, InvalidCrawlRange> {
        let invalid = || InvalidCrawlRange { raw: raw.chars().take(64).collect() };
        let address = |text: &str| text.trim().parse::<Ipv4Addr>().map(u32::from).ok();
        let bounds = match (raw.split_once('-'), raw.split_once('/')) {
            (Some((first, last)), _) => address(first).zip(address(last)),
            (None, Some((network, prefix))) => {
                let prefix = prefix.parse().ok().filter(|prefix| *prefix <= 32);
                address(network).zip(prefix).map(|(network, prefix)| hosts(network, prefix))
            }
            (None, None) => address(raw).map(|one| (one, one)),
        };
        let (first, last) = bounds.ok_or_else(invalid)?;
        match last.checked_sub(first) {
            Some(rest) if rest < MOST_ADDRESSES => Ok(CrawlRange { first, last }),
            Some(_) | None => Err(invalid()),
        }
    }
}

impl TryFrom<String> for CrawlRange {
    type Error = InvalidCrawlRange;

    fn try_from(raw: String) -> Result<Self, InvalidCrawlRange> {
        raw.parse()
    }
}

/// The first and the last address of a network that a host may have.
fn hosts(network: u32, prefix: u32) -> (u32, u32) {
    let mask = u32::MAX.checked_shr(prefix).unwrap_or(0);
    let (first, last) = (network & !mask, network | mask);
    // RFC 3021: both addresses of a /31 are hosts.
    if mask > 1 { (first + 1, last - 1) } else { (first, last) }
}

/// Returns the addresses that one crawl asks, each once: those of the ranges and those that DHCP `leased` to BMCs, without those that are
/// not allowed.
pub fn crawl_targets(
    ranges: &[CrawlRange],
    leased: &[IpAddr],
    allowed: &AllowedHosts,
) -> Vec<IpAddr> {
    let numbers = ranges.iter().flat_map(|range| range.first..=range.last);
    let all = numbers.map(|number| IpAddr::from(Ipv4Addr::from(number)));
    let unique: BTreeSet<IpAddr> = all.chain(leased.iter().copied()).collect();
    unique.into_iter().filter(|at| allowed.check_address(*at).is_ok()).collect()
}

/// A BMC that answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundBmc {
    pub answer: BmcAnswer,
    /// The socket of its Redfish service.
    pub redfish: Option<SocketAddr>,
    pub ipmi: Option<SocketAddr>,
}

impl FoundBmc {
    /// Returns the identities that a node with this BMC may have, whatever system the node names.
    pub fn identities(&self) -> Vec<BmcIdentity> {
        let redfish = self.redfish.map(|at| bmc_endpoint(at, Transport::Tcp));
        let ipmi = self.ipmi.map(|at| bmc_endpoint(at, Transport::Udp));
        let endpoints: BTreeSet<String> = redfish.into_iter().chain(ipmi).collect();
        let identity = |endpoint| BmcIdentity { endpoint, system: None };
        endpoints.into_iter().map(identity).collect()
    }

    /// Returns the ids that discoveries of this BMC may have. The first is that of the proposal; the others are outdated.
    pub fn ids(&self) -> Vec<DiscoveryId> {
        self.redfish.iter().chain(&self.ipmi).map(|at| DiscoveryId::Bmc(*at)).collect()
    }

    /// Returns the proposal; `None` if nothing answered.
    pub fn proposal(&self, now: Timestamp) -> Option<Discovery> {
        let id = *self.ids().first()?;
        let data = Some(json!({ "bmc": self.answer }));
        Some(Discovery { id, first_seen_at: now, last_seen_at: now, data, node: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{IpmiAnswer, RedfishAnswer};

    #[track_caller]
    fn check(raw: &str, want: Option<(&str, &str)>) {
        let text = |at: u32| Ipv4Addr::from(at).to_string();
        let got = raw.parse::<CrawlRange>().ok().map(|it| (text(it.first), text(it.last)));
        assert_eq!(got, want.map(|(first, last)| (first.to_owned(), last.to_owned())), "{raw}");
    }

    #[test]
    fn a_range_is_a_network_or_two_addresses() {
        check("10.0.1.0/24", Some(("10.0.1.1", "10.0.1.254")));
        check("10.0.1.77/24", Some(("10.0.1.1", "10.0.1.254")));
        check("10.0.1.6/31", Some(("10.0.1.6", "10.0.1.7")));
        check("10.0.1.6/32", Some(("10.0.1.6", "10.0.1.6")));
        check("10.0.1.6", Some(("10.0.1.6", "10.0.1.6")));
        check("10.0.1.10 - 10.0.2.9", Some(("10.0.1.10", "10.0.2.9")));
        check("10.0.0.0/16", Some(("10.0.0.1", "10.0.255.254")));
        check("10.0.0.0-10.0.255.255", Some(("10.0.0.0", "10.0.255.255")));
        check("10.0.0.0-10.1.0.0", None);
        for raw in ["", "10.0.0.0/15", "10.0.0.0/33", "10.0.0.9-10.0.0.8", "fd00::/120", "a-b"] {
            check(raw, None);
        }
    }

    #[test]
    fn each_allowed_address_is_asked_once() {
        let ranges = ["10.0.1.0/30", "10.0.1.2-10.0.1.4"].map(|raw| raw.parse().unwrap());
        let inside = AllowedHosts::within(Some(vec!["10.0.1.2/31".parse().unwrap()]));
        let at = |last| IpAddr::from([10, 0, 1, last]);
        let targets = crawl_targets(&ranges, &[at(9), at(3)], &AllowedHosts::anywhere());
        assert_eq!(targets, [1, 2, 3, 4, 9].map(at));
        let targets = crawl_targets(&ranges, &[at(9)], &inside);
        assert_eq!(targets, [2, 3].map(at));
    }

    #[test]
    fn a_bmc_that_speaks_both_protocols_is_one_proposal() {
        let [redfish, ipmi] = ["10.0.1.7:443", "10.0.1.7:623"].map(|at| at.parse().unwrap());
        let answer = BmcAnswer {
            redfish: Some(RedfishAnswer::default()),
            ipmi: Some(IpmiAnswer::default()),
        };
        let found = FoundBmc { answer, redfish: Some(redfish), ipmi: Some(ipmi) };
        let endpoints: Vec<String> = found.identities().into_iter().map(|it| it.endpoint).collect();
        assert_eq!(endpoints, ["10.0.1.7"]);
        let proposal = found.proposal(Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(proposal.id, DiscoveryId::Bmc(redfish));
        assert_eq!(found.ids()[1..], [DiscoveryId::Bmc(ipmi)]);
        // Servers behind one address, each with a port of its own, may have the same number for either protocol.
        let [redfish, ipmi] = ["10.0.1.7:6230"; 2].map(|at| at.parse().ok());
        let found = FoundBmc { redfish, ipmi, ..found };
        let endpoints: Vec<String> = found.identities().into_iter().map(|it| it.endpoint).collect();
        assert_eq!(endpoints, ["10.0.1.7:6230", "10.0.1.7:6230/udp"]);
        let silent = FoundBmc { answer: BmcAnswer::default(), redfish: None, ipmi: None };
        assert_eq!(silent.proposal(Timestamp::UNIX_EPOCH), None);
    }
}
