//! `[nodes]`: the listener at which members fetch their configs and report.

use std::net::SocketAddr;
use std::path::PathBuf;

use cluster_conductor::SourceAddress;
use daemon::ConnectionLimits;
use jiff::SignedDuration;
use serde::Deserialize;
use url::Url;

/// The listener for members.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, try_from = "RawNodes")]
pub struct MemberListenerConfig {
    pub listen: SocketAddr,
    /// The HTTPS URL at which members reach the listener. The URL ends with a slash.
    pub url: Url,
    /// The listener's certificate; `None` means that clusterd makes the certificate itself.
    pub certificate: Option<CertificateFiles>,
    /// The addresses from which a claim may be redeemed.
    pub source: SourceAddress,
    /// The lifetime of a claim.
    pub claim_lasts: SignedDuration,
    /// The maximum number of connections, and the timeouts for slow clients.
    pub connections: ConnectionLimits,
}

/// A certificate that clusterd did not make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate and its intermediate certificates, PEM.
    pub certificate: PathBuf,
    /// The private key, PEM.
    pub key: PathBuf,
    /// The certificate authority that members trust, PEM.
    pub ca_file: PathBuf,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawNodes {
    listen: SocketAddr,
    url: Url,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    ca_file: Option<PathBuf>,
    #[serde(default)]
    source_address: RawSource,
    #[serde(default = "an_hour")]
    claim_lasts: SignedDuration,
    #[serde(default)]
    connections: ConnectionLimits,
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

impl TryFrom<RawNodes> for MemberListenerConfig {
    type Error = &'static str;

    fn try_from(raw: RawNodes) -> Result<Self, Self::Error> {
        let mut url = raw.url;
        if url.scheme() != "https" || url.host_str().is_none_or(str::is_empty) {
            return Err(
                "url: must be https://HOST:PORT/, the address at which members reach this listener",
            );
        }
        if url.query().is_some() || url.fragment().is_some() || !url.username().is_empty() {
            return Err("url: must not have a user, query or fragment");
        }
        if !url.path().ends_with('/') {
            url.set_path(&format!("{}/", url.path()));
        }
        let certificate = match (raw.certificate, raw.key, raw.ca_file) {
            (None, None, None) => None,
            (Some(certificate), Some(key), Some(ca_file)) => {
                Some(CertificateFiles { certificate, key, ca_file })
            }
            _ => return Err("set all of certificate, key and ca_file, or none of them"),
        };
        let (least, most) = (SignedDuration::from_mins(1), SignedDuration::from_hours(4));
        if !(least..=most).contains(&raw.claim_lasts) {
            return Err("claim_lasts: must be between 1m and 4h");
        }
        let source = match raw.source_address {
            RawSource::Machine => SourceAddress::Machine,
            RawSource::Any => SourceAddress::Any,
        };
        Ok(MemberListenerConfig {
            listen: raw.listen,
            url,
            certificate,
            source,
            claim_lasts: raw.claim_lasts,
            connections: raw.connections.for_one_request(),
        })
    }
}
