//! The `[traces]` section of a configuration file, and the HTTP client that it describes.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use reqwest::Client;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use serde::Deserialize;
use spans::SampleRatio;
use url::Url;

/// How long a request to the collector may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Where spans are sent to. Without the section, nothing is traced.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "RawTraces")]
pub struct TracesConfig {
    /// The whole URL of the collector, with its path `/v1/traces`.
    pub endpoint: Url,
    /// The part of the traces without a caller's decision that is recorded.
    pub sample: SampleRatio,
    /// A file with further headers for the collector, one `name: value` in each line.
    pub headers_file: Option<PathBuf>,
    /// A PEM file with further certificate authorities that may sign the collector's certificate.
    pub ca_file: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTraces {
    endpoint: Url,
    #[serde(default = "all")]
    sample: f64,
    headers_file: Option<PathBuf>,
    ca_file: Option<PathBuf>,
}

const fn all() -> f64 {
    1.0
}

impl TryFrom<RawTraces> for TracesConfig {
    type Error = String;

    fn try_from(raw: RawTraces) -> Result<Self, String> {
        let RawTraces { endpoint, sample, headers_file, ca_file } = raw;
        if !endpoint.username().is_empty() || endpoint.password().is_some() {
            return Err(
                "endpoint: must not contain a password, which would appear in logs; use headers_file"
                    .to_owned(),
            );
        }
        match endpoint.scheme() {
            "https" => {}
            "http" if headers_file.is_none() => {}
            "http" => {
                return Err(
                    "endpoint: must begin with https://, because headers_file has a secret"
                        .to_owned(),
                );
            }
            _ => return Err("endpoint: must begin with https:// or http://".to_owned()),
        }
        let sample = SampleRatio::try_from(sample).map_err(|error| format!("sample: {error}"))?;
        Ok(TracesConfig { endpoint, sample, headers_file, ca_file })
    }
}

/// Why spans cannot be sent with this configuration.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error("cannot read {}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("line {line} of {} is not `name: value`", path.display())]
    BadHeader { path: PathBuf, line: usize },
    #[error("{} contains no CA certificate", path.display())]
    NoCertificate { path: PathBuf },
    #[error("cannot set up TLS")]
    Tls(#[from] rustls::Error),
    #[error("cannot set up the client for the collector")]
    Client(#[from] reqwest::Error),
}

impl TracesConfig {
    /// Reads the files that the section names, and changes nothing.
    ///
    /// # Errors
    ///
    /// A file cannot be read or used.
    pub fn check(&self) -> Result<(), SetupError> {
        self.client().map(drop)
    }

    /// Makes the client for the collector. It follows no redirect, which could lead to another host.
    pub(crate) fn client(&self) -> Result<Client, SetupError> {
        let headers = match &self.headers_file {
            Some(path) => headers(path)?,
            None => HeaderMap::new(),
        };
        let client = Client::builder()
            .tls_backend_preconfigured(tls(self.ca_file.as_deref())?)
            .user_agent("bedplate")
            .default_headers(headers)
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .no_proxy()
            .retry(reqwest::retry::never())
            .pool_max_idle_per_host(1)
            .timeout(TIMEOUT)
            .build()?;
        Ok(client)
    }
}

fn read(path: &Path) -> Result<Vec<u8>, SetupError> {
    std::fs::read(path).map_err(|source| SetupError::Unreadable { path: path.to_owned(), source })
}

/// Reads headers. Their values never appear in an error or a log.
fn headers(path: &Path) -> Result<HeaderMap, SetupError> {
    let mut headers = HeaderMap::new();
    let bytes = read(path)?;
    for (at, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        let wrong = || SetupError::BadHeader { path: path.to_owned(), line: at + 1 };
        let colon = line.iter().position(|byte| *byte == b':').ok_or_else(wrong)?;
        let (name, value) = line.split_at(colon);
        let name = HeaderName::from_bytes(name.trim_ascii()).map_err(|_| wrong())?;
        let value = value.get(1..).unwrap_or_default().trim_ascii();
        let mut value = HeaderValue::from_bytes(value).map_err(|_| wrong())?;
        value.set_sensitive(true);
        headers.append(name, value);
    }
    Ok(headers)
}

/// A TLS client that trusts the system's certificate authorities and the certificates of a PEM file.
fn tls(ca_file: Option<&Path>) -> Result<ClientConfig, SetupError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = ca_file {
        let pem = read(path)?;
        let before = roots.len();
        for certificate in CertificateDer::pem_slice_iter(&pem).flatten() {
            roots.add(certificate)?;
        }
        if roots.len() == before {
            return Err(SetupError::NoCertificate { path: path.to_owned() });
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: Result<(), &str>) {
        let read = toml::from_str::<TracesConfig>(text);
        let read = read.map(drop).map_err(|error| error.message().to_owned());
        assert_eq!(read, want.map_err(str::to_owned));
    }

    #[test]
    fn the_section_is_checked() {
        check("endpoint = 'http://[::1]:4318/v1/traces'", Ok(()));
        check("endpoint = 'https://c/v1/traces'\nsample = 0\nheaders_file = 'h'", Ok(()));
        check("endpoint = 'https://c'\nsample = 2.0", Err("sample: must be between 0 and 1"));
        check("endpoint = 'ftp://c'", Err("endpoint: must begin with https:// or http://"));
        check(
            "endpoint = 'http://c'\nheaders_file = 'h'",
            Err("endpoint: must begin with https://, because headers_file has a secret"),
        );
        check(
            "endpoint = 'https://a:b@c'",
            Err(
                "endpoint: must not contain a password, which would appear in logs; use headers_file",
            ),
        );
    }

    #[test]
    fn headers_are_read_and_never_shown() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("headers");
        std::fs::write(&file, "Authorization: Bearer abc\r\n\nx-scope-orgid:  7 \n").unwrap();
        let read = headers(&file).unwrap();
        assert_eq!(
            (read["authorization"].to_str().unwrap(), &read["x-scope-orgid"]),
            ("Bearer abc", &HeaderValue::from_static("7"))
        );
        assert!(!format!("{read:?}").contains("abc"));
        std::fs::write(&file, "a: b\nsecret\n").unwrap();
        let error = headers(&file).unwrap_err().to_string();
        assert_eq!(error, format!("line 2 of {} is not `name: value`", file.display()));
    }
}
