//! Fetches resources as Ignition does: CAs from the config, headers, retries, verification.

use serde_json::Value;

use crate::object::ReadFields;

use std::io::{self, Read};
use std::time::Duration;

use base64::Engine;
use flate2::read::GzDecoder;
use percent_encoding::percent_decode_str;
use reqwest::{Certificate, Client, ClientBuilder, StatusCode};
use sha2::{Digest, Sha256, Sha512};

/// The pause before the first retry. Each further pause is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause between retries.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How long Ignition waits for the headers of an answer if the config does not say.
const HEADERS: Duration = Duration::from_secs(10);
/// The most bytes of a resource.
const LARGEST: u64 = 64 << 20;

/// The reason why a resource could not be fetched.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unfetched {
    #[error("a certificate authority of the config cannot be read")]
    Authority,
    #[error("no client can be made for the config's certificate authorities")]
    Client { source: reqwest::Error },
    #[error("the source {scheme:?} is not supported")]
    Scheme { scheme: String },
    #[error("the server answers {status}")]
    Refused { status: StatusCode },
    #[error("no answer within {seconds} s")]
    TooLate { seconds: u64, source: Option<reqwest::Error> },
    #[error("the answer breaks off")]
    BrokenOff { source: reqwest::Error },
    #[error("the verification hash does not match")]
    Hash,
    #[error("the verification hash is of a kind that is not supported")]
    HashKind,
    #[error("cannot decompress the fetched data")]
    Compression,
}

/// An HTTP client that trusts only the CAs of a config.
pub(super) struct Fetcher {
    client: Client,
    /// Seconds after which the client gives up. `None` means never.
    total: Option<u64>,
}

/// A builder of clients. Every client comes from this function, because reqwest panics without a TLS provider, and a guest that continues
/// after a restart of the emulator may build the first client of the process.
pub(crate) fn client_builder() -> ClientBuilder {
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().no_proxy()
}

/// A client without CAs, for plain HTTP.
pub(crate) fn plain_client() -> reqwest::Result<Client> {
    client_builder().tls_certs_only([]).build()
}

impl Fetcher {
    /// A client that trusts only `authorities`, which are entries of `ignition.security.tls`.
    pub(super) async fn new(authorities: &[Value], timeouts: &Value) -> Result<Fetcher, Unfetched> {
        let plain = Fetcher {
            client: plain_client().map_err(|source| Unfetched::Client { source })?,
            total: timeouts["httpTotal"].as_u64(),
        };
        let mut trusted = Vec::new();
        for authority in authorities {
            let pem = Box::pin(plain.resource(authority)).await?;
            let bundle = Certificate::from_pem_bundle(&pem).map_err(|_| Unfetched::Authority)?;
            if bundle.is_empty() {
                return Err(Unfetched::Authority);
            }
            trusted.extend(bundle);
        }
        let headers = timeouts["httpResponseHeaders"].as_u64().map_or(HEADERS, Duration::from_secs);
        let client = client_builder()
            .tls_certs_only(trusted)
            .read_timeout(headers)
            .pool_max_idle_per_host(0)
            .build();
        Ok(Fetcher {
            client: client.map_err(|source| Unfetched::Client { source })?,
            total: plain.total,
        })
    }

    /// Fetches a resource of a config (`source`, `compression`, `httpHeaders`, `verification`).
    pub(super) async fn resource(&self, resource: &Value) -> Result<Vec<u8>, Unfetched> {
        let source = resource.text("source");
        let raw = match source.split_once(':').map(|(scheme, _)| scheme) {
            Some("data") => {
                data_url(source).ok_or_else(|| Unfetched::Scheme { scheme: "data".into() })?
            }
            Some("http" | "https") => self.get(source, &resource["httpHeaders"]).await?,
            scheme => {
                return Err(Unfetched::Scheme { scheme: scheme.unwrap_or_default().to_owned() });
            }
        };
        let bytes = if resource["compression"] == "gzip" {
            ungzip(&raw).map_err(|_| Unfetched::Compression)?
        } else {
            raw
        };
        if let Some(wanted) = resource["verification"]["hash"].as_str() {
            verify(wanted, &bytes)?;
        }
        Ok(bytes)
    }

    /// Sends `GET` and retries as Ignition does.
    async fn get(&self, url: &str, headers: &Value) -> Result<Vec<u8>, Unfetched> {
        let begun = tokio::time::Instant::now();
        let mut pause = FIRST_PAUSE;
        loop {
            let mut request = self
                .client
                .get(url)
                .header("Accept", "application/vnd.coreos.ignition+json;version=3.5.0, */*;q=0.1")
                .header("User-Agent", "Ignition/2.20.0");
            for header in headers.as_array().into_iter().flatten() {
                if let (Some(name), Some(value)) =
                    (header["name"].as_str(), header["value"].as_str())
                {
                    request = request.header(name, value);
                }
            }
            let problem = match request.send().await {
                Ok(answer) if answer.status().is_success() => {
                    let body = answer
                        .bytes()
                        .await
                        .map_err(|source| Unfetched::BrokenOff { source: source.without_url() })?;
                    return Ok(body.to_vec());
                }
                // Ignition retries at 429 and at server errors, and at no other status.
                Ok(answer)
                    if answer.status() != StatusCode::TOO_MANY_REQUESTS
                        && !answer.status().is_server_error() =>
                {
                    return Err(Unfetched::Refused { status: answer.status() });
                }
                Ok(_) => None,
                Err(error) => Some(error.without_url()),
            };
            if let Some(seconds) = self.total.filter(|seconds| {
                *seconds > 0 && begun.elapsed() + pause > Duration::from_secs(*seconds)
            }) {
                return Err(Unfetched::TooLate { seconds, source: problem });
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

fn verify(wanted: &str, bytes: &[u8]) -> Result<(), Unfetched> {
    let hex = |digest: &[u8]| digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let (kind, wanted) = wanted.split_once('-').ok_or(Unfetched::HashKind)?;
    let found = match kind {
        "sha512" => hex(&Sha512::digest(bytes)),
        "sha256" => hex(&Sha256::digest(bytes)),
        _ => return Err(Unfetched::HashKind),
    };
    if found == wanted { Ok(()) } else { Err(Unfetched::Hash) }
}

/// The contents of a `data:` URL (RFC 2397).
pub(super) fn data_url(url: &str) -> Option<Vec<u8>> {
    let (kind, data) = url.strip_prefix("data:")?.split_once(',')?;
    let decoded: Vec<u8> = percent_decode_str(data).collect();
    if kind.ends_with(";base64") {
        return base64::engine::general_purpose::STANDARD.decode(decoded).ok();
    }
    Some(decoded)
}

/// Decompresses gzip data. Other data is returned unchanged.
pub(super) fn ungzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return Ok(bytes.to_vec());
    }
    let mut plain = Vec::new();
    GzDecoder::new(bytes).take(LARGEST).read_to_end(&mut plain)?;
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_urls_are_read_with_and_without_base64() {
        assert_eq!(data_url("data:,hello%20there"), Some(b"hello there".to_vec()));
        assert_eq!(data_url("data:text/plain;base64,aGk="), Some(b"hi".to_vec()));
        assert_eq!(data_url("https://example.org/"), None);
    }

    #[test]
    fn a_hash_that_does_not_match_is_refused() {
        let right = "sha256-2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
        assert!(verify(right, b"hello").is_ok());
        assert!(matches!(verify(right, b"hullo"), Err(Unfetched::Hash)));
        assert!(matches!(verify("md5-abc", b"hello"), Err(Unfetched::HashKind)));
    }
}
