//! The front door: from a target to a `Bmc`.

use std::sync::Arc;

use bmc::Bmc;
use hardware::AllowedHosts;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::clients::Clients;
use crate::service::Service;
use crate::session::Ledger;
use crate::target::Target;

/// Holds what all BMCs share, so that ten thousand of them cost little.
pub struct Connector {
    clients: Arc<Clients>,
    ledger: Ledger,
}

/// Why a connector could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ConnectorError {
    /// The extra authorities are not PEM.
    #[error("the extra certificate authorities are not readable as PEM")]
    Pem(#[source] rustls::pki_types::pem::Error),
    /// One of the extra authorities is no certificate that can sign.
    #[error("certificate {number} of the extra certificate authorities cannot be trusted")]
    Authority {
        /// Counted from 1.
        number: usize,
        /// What is wrong with it.
        source: rustls::Error,
    },
}

impl Connector {
    /// A connector that trusts the system's authorities and those in `extra_authorities_pem`,
    /// which may be empty, and connects to BMCs at `allowed` hosts alone.
    pub fn new(
        extra_authorities_pem: &[u8],
        allowed: AllowedHosts,
    ) -> Result<Self, ConnectorError> {
        let clients = Arc::new(Clients::new(authorities(extra_authorities_pem)?, allowed));
        Ok(Connector { clients, ledger: Ledger::default() })
    }

    /// The BMC at `target`. Speaks to nobody yet: what the BMC lacks shows when it is asked for.
    ///
    /// Keep it as long as the machine is managed: it holds the session and what was discovered,
    /// and has the BMC see one request at a time. Dropping it logs out.
    pub fn bmc(&self, target: Target) -> Bmc {
        let service = Service::new(target, self.clients.clone(), self.ledger.clone());
        let service = Arc::new(service);
        Bmc {
            power: service.clone(),
            boot: service.clone(),
            media: Some(service.clone()),
            inspection: Some(service.clone()),
            sensors: Some(service),
            serial: None,
        }
    }

    /// Logs out of every BMC. For the end of the process, when dropping comes too late.
    pub async fn close(&self) {
        self.ledger.close_all().await;
    }
}

/// The certificates in `pem`, each of them fit to be an authority.
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
