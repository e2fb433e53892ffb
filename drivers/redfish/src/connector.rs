//! The entry point of the crate: makes a `Bmc` for a target.

use std::sync::Arc;

use bmc::Bmc;
use hardware::AllowedHosts;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::clients::Clients;
use crate::service::Service;
use crate::session::OpenSessions;
use crate::target::Target;

/// The state that all BMCs share, so that ten thousand BMCs need little memory.
pub struct Connector {
    clients: Arc<Clients>,
    ledger: OpenSessions,
}

/// The reasons why a connector could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ConnectorError {
    /// The extra CAs are not PEM.
    #[error("the extra certificate authorities are not readable as PEM")]
    Pem(#[source] rustls::pki_types::pem::Error),
    /// One of the extra certificates cannot be used as an authority.
    #[error("certificate {number} of the extra certificate authorities cannot be trusted")]
    Authority {
        /// Position in the PEM file, counted from 1.
        number: usize,
        source: rustls::Error,
    },
}

impl Connector {
    /// Makes a connector that trusts the system's certificate authorities and those in `extra_authorities_pem`, which may be empty. The
    /// connector connects only to `allowed` hosts.
    pub fn new(
        extra_authorities_pem: &[u8],
        allowed: AllowedHosts,
    ) -> Result<Self, ConnectorError> {
        let clients = Arc::new(Clients::new(authorities(extra_authorities_pem)?, allowed));
        Ok(Connector { clients, ledger: OpenSessions::default() })
    }

    /// Makes a `Bmc` for `target` without sending a request. A capability that the BMC lacks shows at its first use.
    ///
    /// Keep the value as long as the machine is managed: it holds the session and the discovered links, and lets the BMC see one request at
    /// a time. Dropping the value logs out.
    pub fn bmc(&self, target: Target) -> Bmc {
        let service = Service::new(target, self.clients.clone(), self.ledger.clone());
        let service = Arc::new(service);
        Bmc {
            power: service.clone(),
            interrupt: Some(service.clone()),
            boot: service.clone(),
            boot_settings: Some(service.clone()),
            bios: Some(service.clone()),
            clock: Some(service.clone()),
            firmware: Some(service.clone()),
            raid: Some(service.clone()),
            media: Some(service.clone()),
            inspection: Some(service.clone()),
            sensors: Some(service.clone()),
            indicators: Some(service.clone()),
            events: Some(service.clone()),
            serial: Some(service.clone()),
            account: Some(service),
        }
    }

    /// Returns a client that accepts any certificate.
    pub(crate) fn unverified(&self) -> Result<reqwest::Client, reqwest::Error> {
        self.clients.unverified()
    }

    /// Logs out of every BMC. Call this at the end of the process, where the log-outs of dropped `Bmc`s would no longer be sent.
    pub async fn close(&self) {
        self.ledger.close_all().await;
    }
}

/// Reads the certificates in `pem` and checks that each can be a certificate authority.
fn authorities(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, ConnectorError> {
    let mut authorities = Vec::new();
    for (index, authority) in CertificateDer::pem_slice_iter(pem).enumerate() {
        let authority = authority.map_err(ConnectorError::Pem)?;
        let number = index + 1;
        RootCertStore::empty()
            .add(authority.clone())
            .map_err(|source| ConnectorError::Authority { number, source })?;
        authorities.push(authority);
    }
    Ok(authorities)
}
