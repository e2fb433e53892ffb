//! The API's requests for the certificates of a cluster.

use std::time::Duration;

use cluster_bootstrap::{CertificateAuthority, Pki};
use cluster_core::{CertificateUuid, Cluster};
use cluster_pki::Validity;
use cluster_store::{Certificate, StoreError};
use jiff::{SignedDuration, Timestamp};

use crate::Conductor;
use crate::cluster_secrets::{KeysError, Result};

/// The lifetime of a certificate that is signed for a user.
const LIFETIME: Duration = Duration::from_secs(365 * 24 * 3600);

/// One of the certificate authorities of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthorityKind {
    /// Of the API server and its clients.
    Kubernetes,
    Etcd,
    /// Of the proxies through which the API server reaches its extensions.
    FrontProxy,
}

impl AuthorityKind {
    fn of(self, pki: &Pki) -> &CertificateAuthority {
        match self {
            AuthorityKind::Kubernetes => &pki.cluster,
            AuthorityKind::Etcd => &pki.etcd,
            AuthorityKind::FrontProxy => &pki.front_proxy,
        }
    }

    fn subject(self) -> &'static str {
        match self {
            AuthorityKind::Kubernetes => "as requested",
            AuthorityKind::Etcd => "as requested, by the CA of etcd",
            AuthorityKind::FrontProxy => "as requested, by the CA of the front proxy",
        }
    }
}

impl Conductor {
    /// Returns the certificate of this certificate authority of the cluster in PEM; the CAs are made on first use. During a CA rotation both are
    /// returned, the signing CA first.
    pub async fn authority_of(&self, cluster: &Cluster, kind: AuthorityKind) -> Result<String> {
        let pki = self.context.secrets.pki(cluster).await?;
        Ok(kind.of(&pki).certificate.clone())
    }

    /// Signs a certificate request in PEM with this certificate authority of the cluster, and records for whom.
    pub async fn sign(
        &self,
        cluster: &Cluster,
        kind: AuthorityKind,
        request: &str,
        user: &str,
    ) -> Result<String> {
        let pki = self.context.secrets.pki(cluster).await?;
        let now = (self.context.settings.clock)();
        let validity = Validity { now, lifetime: LIFETIME };
        let certificate =
            cluster_pki::sign(kind.of(&pki), request, validity).map_err(KeysError::Sign)?;
        self.note_certificate(cluster, kind.subject(), user, now).await?;
        Ok(certificate)
    }

    /// Makes a kubeconfig for an administrator, and records that `user` got it. `None` while the address of the cluster's API is unknown.
    pub async fn kubeconfig(&self, cluster: &Cluster, user: &str) -> Result<Option<String>> {
        let Some(address) = &cluster.api_address else { return Ok(None) };
        let now = (self.context.settings.clock)();
        let validity = Validity { now, lifetime: LIFETIME };
        let config = self.context.secrets.admin_kubeconfig(cluster, address, validity).await?;
        let Some(config) = config else { return Ok(None) };
        self.note_certificate(cluster, "O=system:masters, CN=bedplate-admin", user, now).await?;
        Ok(Some(config.expose().to_owned()))
    }

    async fn note_certificate(
        &self,
        cluster: &Cluster,
        subject: &str,
        user: &str,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let lasts = SignedDuration::try_from(LIFETIME).unwrap_or(SignedDuration::MAX);
        let line = Certificate {
            id: CertificateUuid::new_v4(),
            cluster: cluster.id,
            subject: subject.to_owned(),
            issued_to: user.to_owned(),
            created_at: now,
            not_after: now.saturating_add(lasts).unwrap_or(Timestamp::MAX),
        };
        self.context.store.insert_certificate(&line).await
    }
}
