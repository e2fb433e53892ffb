//! `[nodes]`: where machines fetch their configs, and report.

use std::net::SocketAddr;
use std::path::PathBuf;

use cluster_conductor::SourceAddress;
use daemon::Connections;
use jiff::SignedDuration;
use serde::Deserialize;
use url::Url;

/// The machines' listener.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, try_from = "RawNodes")]
pub struct NodesConfig {
    /// Address and port.
    pub listen: SocketAddr,
    /// As machines reach it: HTTPS, ending with a slash.
    pub url: Url,
    /// What it shows, where clusterd is not to make it itself.
    pub certificate: Option<CertificateFiles>,
    /// From where a machine's claim may be redeemed.
    pub source: SourceAddress,
    /// How long a claim is good.
    pub claim_lasts: SignedDuration,
    /// How many machines are connected, and how long the slow are waited for.
    pub connections: Connections,
}

/// A certificate that somebody else made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate and those between it and its authority, PEM.
    pub certificate: PathBuf,
    /// Its key, PEM.
    pub key: PathBuf,
    /// The authority that machines are told to believe, PEM.
    pub authority: PathBuf,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawNodes {
    listen: SocketAddr,
    url: Url,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    authority: Option<PathBuf>,
    #[serde(default)]
    source_address: RawSource,
    #[serde(default = "an_hour")]
    claim_lasts: SignedDuration,
    #[serde(default)]
    connections: Connections,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawSource {
    #[default]
    Machine,
    Any,
}

fn an_hour() -> SignedDuration {
    SignedDuration::from_hours(1)
}

impl TryFrom<RawNodes> for NodesConfig {
    type Error = &'static str;

    fn try_from(raw: RawNodes) -> Result<Self, Self::Error> {
        let mut url = raw.url;
        if url.scheme() != "https" || url.host_str().is_none_or(str::is_empty) {
            return Err("url: it must be https://HOST:PORT/, as machines reach this listener");
        }
        if url.query().is_some() || url.fragment().is_some() || !url.username().is_empty() {
            return Err("url: it must have no user, query or fragment");
        }
        if !url.path().ends_with('/') {
            url.set_path(&format!("{}/", url.path()));
        }
        let certificate = match (raw.certificate, raw.key, raw.authority) {
            (None, None, None) => None,
            (Some(certificate), Some(key), Some(authority)) => {
                Some(CertificateFiles { certificate, key, authority })
            }
            _ => return Err("certificate, key and authority are given together or not at all"),
        };
        let (least, most) = (SignedDuration::from_mins(1), SignedDuration::from_hours(4));
        if !(least..=most).contains(&raw.claim_lasts) {
            return Err("claim_lasts: it must be from 1m to 4h");
        }
        let source = match raw.source_address {
            RawSource::Machine => SourceAddress::Machine,
            RawSource::Any => SourceAddress::Any,
        };
        Ok(NodesConfig {
            listen: raw.listen,
            url,
            certificate,
            source,
            claim_lasts: raw.claim_lasts,
            connections: raw.connections.for_one_request(),
        })
    }
}
