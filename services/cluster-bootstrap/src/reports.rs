//! Where members report, and with which credentials.

use std::fmt;

use secrecy::SecretString;
use url::Url;

/// The URLs and credentials with which a member reports its progress to clusterd.
#[derive(Clone)]
pub struct Reports {
    /// The HTTPS URL that takes reports.
    pub url: Url,
    /// The HTTPS URL at which the member asks for the certificate authorities that it should have.
    pub authorities: Url,
    /// The HTTPS URL to which the member reports its certificates.
    pub certificates: Url,
    /// The HTTPS URL at which the member asks for work on backups of etcd.
    pub backups: Url,
    /// The number of restorations of the cluster that the member need not be told of.
    pub restores: u32,
    /// The revision of the certificate authorities in the member's config.
    pub holds: u32,
    /// The token of the header `Authorization: Bearer TOKEN`.
    pub token: SecretString,
    /// Identifies the member; each report contains this value as `claim`.
    pub claim: String,
    /// The HTTPS URL, with a credential of its own, at which the member asks before it reboots for an update of its operating system. `None`:
    /// the operating system is not updated.
    pub reboots: Option<Url>,
    /// The certificate authority of clusterd's certificate, as PEM. The member trusts no other authority for reports.
    pub authority: String,
}

/// The certificate authority of clusterd's certificate.
pub(crate) const AUTHORITY: &str = "/etc/bedplate/report-authority.pem";

impl fmt::Debug for Reports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reports({})", self.url)
    }
}
