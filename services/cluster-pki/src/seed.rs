//! Makes the certificate authorities of a new cluster.

use std::time::Duration;

use cluster_bootstrap::{CertificateAuthority, KeyPair, Name, Pki};
use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, KeyUsagePurpose,
    PublicKeyData, date_time_ymd,
};
use sha2::{Digest, Sha256};

/// Certificates become valid this much before `now`, because the clock of a server may be slow by as much.
const CLOCK_SKEW: Duration = Duration::from_secs(3600);

/// The period in which a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    pub now: Timestamp,
    /// Counted from `now`.
    pub lifetime: Duration,
}

/// A key or a certificate could not be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot make {what}")]
pub struct PkiError {
    /// The key or certificate in question, as it reads in the message.
    pub what: &'static str,
    pub source: rcgen::Error,
}

/// Makes the keys that all members of a cluster share: three certificate authorities and the key pair of service accounts.
///
/// `generation` counts the CA rotations of the cluster; 0 is a new cluster.
pub fn make_pki(cluster: &Name, generation: u32, validity: Validity) -> Result<Pki, PkiError> {
    // The common names are kubeadm's (kubernetes, cmd/kubeadm/app/phases/certs/certlist.go). The organizational unit holds the cluster's
    // name and the generation: with it a user can tell the CAs of several clusters apart in a trust store, and the old from the new
    // CA during a CA rotation.
    let unit = match generation {
        0 => cluster.to_string(),
        later => format!("{cluster} {later}"),
    };
    let authority = |what, name| authority(what, name, &unit, validity);
    Ok(Pki {
        cluster: authority("the cluster's certificate authority", "kubernetes")?,
        etcd: authority("etcd's certificate authority", "etcd-ca")?,
        front_proxy: authority("the front proxy's certificate authority", "front-proxy-ca")?,
        service_account: service_account()?,
    })
}

fn authority(
    what: &'static str,
    name: &str,
    unit: &str,
    validity: Validity,
) -> Result<CertificateAuthority, PkiError> {
    let error = |source| PkiError { what, source };
    let key = rcgen::KeyPair::generate().map_err(error)?;
    let mut parameters = parameters(validity);
    parameters.distinguished_name.push(DnType::CommonName, name);
    parameters.distinguished_name.push(DnType::OrganizationalUnitName, unit);
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    parameters.key_usages = vec![
        KeyUsagePurpose::DigitalSignature,
        KeyUsagePurpose::KeyEncipherment,
        KeyUsagePurpose::KeyCertSign,
    ];
    let certificate = parameters.self_signed(&key).map_err(error)?;
    Ok(CertificateAuthority {
        certificate: certificate.pem(),
        key: key.serialize_pem().into(),
        public_key_sha256: hex::encode(Sha256::digest(key.subject_public_key_info())),
    })
}

fn service_account() -> Result<KeyPair, PkiError> {
    let what = "the key of service accounts";
    let key = rcgen::KeyPair::generate().map_err(|source| PkiError { what, source })?;
    Ok(KeyPair { public: key.public_key_pem(), private: key.serialize_pem().into() })
}

/// Certificate parameters with the period of validity and no subject yet.
pub(crate) fn parameters(validity: Validity) -> CertificateParams {
    let since_epoch = Duration::from_secs(validity.now.as_second().unsigned_abs());
    let now = date_time_ymd(1970, 1, 1) + since_epoch;
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name = DistinguishedName::new();
    parameters.not_before = now - CLOCK_SKEW;
    parameters.not_after = now + validity.lifetime;
    parameters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cluster_has_keys_of_its_own_and_none_is_printed() {
        let validity = Validity { now: Timestamp::UNIX_EPOCH, lifetime: Duration::from_secs(60) };
        let name = Name::try_from("one").unwrap();
        let (one, other) =
            (make_pki(&name, 0, validity).unwrap(), make_pki(&name, 0, validity).unwrap());
        assert_ne!(one.cluster.public_key_sha256, other.cluster.public_key_sha256);
        assert_ne!(one.cluster.certificate, one.etcd.certificate);
        assert_eq!(one.cluster.public_key_sha256.len(), 64);
        assert!(!format!("{one:?}").contains("PRIVATE"));
        assert!(one.service_account.public.contains("PUBLIC KEY"));
    }
}
