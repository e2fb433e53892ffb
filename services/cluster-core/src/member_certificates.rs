//! The certificates that a member holds, as the member reports them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A certificate that a member shows to others. Certificates of certificate authorities are not among them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeafCertificate {
    /// kubeadm's name of the certificate, such as `apiserver` or `etcd/peer`.
    pub name: String,
    pub issued_at: Timestamp,
    pub ends_at: Timestamp,
}

/// The record of a member's certificates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberCertificates {
    /// The certificate whose renewal is due first.
    pub first: LeafCertificate,
    /// Since when the member may renew its certificates and restart what reads them; `None`: it may not.
    #[serde(default)]
    pub renewing_since: Option<Timestamp>,
    /// When the member last completed a renewal.
    #[serde(default)]
    pub renewed_at: Option<Timestamp>,
}

impl LeafCertificate {
    /// Makes a certificate from its period of validity and the time when its file was written.
    ///
    /// kubeadm lets each certificate begin when its CA begins, so the start of the period does not tell when the certificate was issued
    /// (kubernetes, cmd/kubeadm/app/util/pkiutil: NewSignedCert).
    pub fn new(
        name: String,
        begins_at: Timestamp,
        written_at: Timestamp,
        ends_at: Timestamp,
    ) -> Self {
        let issued_at = begins_at.max(written_at).min(ends_at);
        LeafCertificate { name, issued_at, ends_at }
    }

    /// Returns when the certificate has to be renewed: after two fifths of its life.
    pub fn renew_at(&self) -> Timestamp {
        self.after(2, 5)
    }

    /// Returns from when on it is a fault that nothing renewed the certificate: after half of its life.
    pub fn overdue_at(&self) -> Timestamp {
        self.after(1, 2)
    }

    fn after(&self, parts: i32, of: i32) -> Timestamp {
        let life = self.ends_at.duration_since(self.issued_at);
        self.issued_at.saturating_add(life / of * parts).unwrap_or(self.ends_at)
    }
}
