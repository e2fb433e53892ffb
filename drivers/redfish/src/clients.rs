//! HTTP clients, one for each way of verifying certificates.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bmc::{BmcError, Result};
use hardware::AllowedHosts;
use reqwest::Client;
use rustls::client::Resumption;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, ConfigBuilder, RootCertStore, WantsVerifier};
use tracing::warn;
use url::Url;

use crate::origin::Origin;
use crate::resolve::AllowedResolver;
use crate::resumption::LastSessions;
use crate::tls::{Pinned, Unverified};
use crate::unanswered::unreachable;

/// How long an unused connection is kept. BMCs have few sockets and often drop idle connections without notice (sushy stopped keeping
/// connections for this reason), but a burst of requests should not need a handshake each.
const IDLE_TIMEOUT: Duration = Duration::from_secs(5);

/// The clients that all BMCs share. Each is made at its first use, because reading the system's certificate authorities takes longer than
/// the rest of a daemon's start.
pub(crate) struct Clients {
    extra_authorities: Vec<CertificateDer<'static>>,
    allowed: AllowedHosts,
    authorities: OnceLock<Client>,
    unverified: OnceLock<Client>,
}

impl Clients {
    pub(crate) fn new(
        extra_authorities: Vec<CertificateDer<'static>>,
        allowed: AllowedHosts,
    ) -> Self {
        Clients {
            extra_authorities,
            allowed,
            authorities: OnceLock::new(),
            unverified: OnceLock::new(),
        }
    }

    /// The hosts at which BMCs may be.
    pub(crate) fn allowed(&self) -> &AllowedHosts {
        &self.allowed
    }

    /// A client that accepts certificates signed by a CA of the system or by an extra CA.
    pub(crate) fn authorities(&self) -> Result<Client, reqwest::Error> {
        made_once(&self.authorities, || {
            let mut roots = RootCertStore::empty();
            let system = rustls_native_certs::load_native_certs();
            for error in &system.errors {
                warn!("some of the system's certificate authorities are left out: {error}");
            }
            roots.add_parsable_certificates(system.certs);
            roots.add_parsable_certificates(self.extra_authorities.iter().cloned());
            let config = config().with_root_certificates(roots).with_no_client_auth();
            client(config, &self.allowed)
        })
    }

    /// A client that accepts any certificate.
    pub(crate) fn unverified(&self) -> Result<Client, reqwest::Error> {
        made_once(&self.unverified, || client_verifying(Arc::new(Unverified::new()), &self.allowed))
    }

    /// A client that accepts only the certificate with this SHA-256. Each such client costs about 4 KiB of memory.
    pub(crate) fn pinned(
        &self,
        own: &OnceLock<Client>,
        pin: [u8; 32],
    ) -> Result<Client, reqwest::Error> {
        made_once(own, || client_verifying(Arc::new(Pinned::to(pin)), &self.allowed))
    }
}

/// The TLS configuration of a client that accepts only the certificate with this SHA-256. The certificate's signature does not matter; the
/// peer proves that it holds the certificate's key.
pub fn pinned_tls(pin: [u8; 32]) -> ClientConfig {
    verifying(Arc::new(Pinned::to(pin)))
}

/// Fetches the SHA-256 of the certificate that a BMC serves, for an operator who wants to pin it.
///
/// The function verifies nothing and does not log in: the operator has to compare the result with the fingerprint on the BMC's own page.
/// Any address is allowed, because the operator chose it.
pub async fn fingerprint(address: &Url, timeout: Duration) -> Result<[u8; 32]> {
    let origin = Origin::of(address);
    if address.scheme() != "https" {
        return Err(BmcError::Unsupported {
            what: format!("show a certificate over {}", address.scheme()),
        });
    }
    let verifier = Arc::new(Unverified::new());
    let failed = |source: reqwest::Error| unreachable(&origin, timeout, source);
    let client = client_verifying(verifier.clone(), &AllowedHosts::anywhere()).map_err(failed)?;
    // Only the handshake matters; the HTTP answer is ignored.
    let answered = client.get(origin.root()?).timeout(timeout).send().await;
    verifier.seen().ok_or_else(|| match answered {
        Err(source) => failed(source),
        Ok(_) => BmcError::Untrusted {
            host: origin.host(),
            reason: "it shows no certificate".to_owned(),
        },
    })
}

fn made_once(
    cell: &OnceLock<Client>,
    make: impl FnOnce() -> Result<Client, reqwest::Error>,
) -> Result<Client, reqwest::Error> {
    if let Some(client) = cell.get() {
        return Ok(client.clone());
    }
    let client = make()?;
    Ok(cell.get_or_init(|| client).clone())
}

fn client_verifying(
    verifier: Arc<dyn ServerCertVerifier>,
    allowed: &AllowedHosts,
) -> Result<Client, reqwest::Error> {
    client(verifying(verifier), allowed)
}

fn verifying(verifier: Arc<dyn ServerCertVerifier>) -> ClientConfig {
    let config = config().dangerous().with_custom_certificate_verifier(verifier);
    config.with_no_client_auth()
}

fn config() -> ConfigBuilder<ClientConfig, WantsVerifier> {
    let mut provider = rustls::crypto::ring::default_provider();
    // Processors hash SHA-256 several times as fast as SHA-384. The sort is stable, so versions and ciphers keep their order.
    provider
        .cipher_suites
        .sort_by_key(|suite| suite.suite().as_str().is_some_and(|it| it.ends_with("SHA384")));
    ClientConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .expect("ring offers suites for TLS 1.2 and 1.3")
}

fn client(mut config: ClientConfig, allowed: &AllowedHosts) -> Result<Client, reqwest::Error> {
    config.resumption = Resumption::store(Arc::new(LastSessions::default()));
    Client::builder()
        .tls_backend_preconfigured(config)
        .user_agent("bedplate")
        .redirect(reqwest::redirect::Policy::none())
        .dns_resolver(Arc::new(AllowedResolver::new(allowed.clone())))
        .referer(false)
        // BMCs are on a private network, which a proxy for the internet cannot reach.
        .no_proxy()
        .retry(reqwest::retry::never())
        .pool_max_idle_per_host(1)
        .pool_idle_timeout(IDLE_TIMEOUT)
        .build()
}
