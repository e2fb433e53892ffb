//! Serializes a cluster's certificate authorities for the store, where they are sealed.

use cluster_bootstrap::{CertificateAuthority, KeyPair, Pki};
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};

/// Returns the name of the secret that holds the certificate authorities of a generation, which are counted from 0.
pub(crate) fn name(generation: u32) -> String {
    match generation {
        0 => "pki".to_owned(),
        later => format!("pki/{later}"),
    }
}

#[derive(Serialize, Deserialize)]
struct StoredAuthorities {
    cluster: KeptAuthority,
    etcd: KeptAuthority,
    front_proxy: KeptAuthority,
    service_account_public: String,
    service_account_private: String,
}

#[derive(Serialize, Deserialize)]
struct KeptAuthority {
    certificate: String,
    key: String,
    public_key_sha256: String,
}

impl KeptAuthority {
    fn of(authority: &CertificateAuthority) -> Self {
        KeptAuthority {
            certificate: authority.certificate.clone(),
            key: authority.key.expose_secret().to_owned(),
            public_key_sha256: authority.public_key_sha256.clone(),
        }
    }

    fn read(self) -> CertificateAuthority {
        CertificateAuthority {
            certificate: self.certificate,
            key: self.key.into(),
            public_key_sha256: self.public_key_sha256,
        }
    }
}

/// Serializes the CAs, to be sealed.
pub(crate) fn write(pki: &Pki) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec(&StoredAuthorities {
        cluster: KeptAuthority::of(&pki.cluster),
        etcd: KeptAuthority::of(&pki.etcd),
        front_proxy: KeptAuthority::of(&pki.front_proxy),
        service_account_public: pki.service_account.public.clone(),
        service_account_private: pki.service_account.private.expose_secret().to_owned(),
    })
}

/// Reads the CAs that were unsealed.
pub(crate) fn read(opened: &[u8]) -> Result<Pki, serde_json::Error> {
    let kept: StoredAuthorities = serde_json::from_slice(opened)?;
    Ok(Pki {
        cluster: kept.cluster.read(),
        etcd: kept.etcd.read(),
        front_proxy: kept.front_proxy.read(),
        service_account: KeyPair {
            public: kept.service_account_public,
            private: kept.service_account_private.into(),
        },
    })
}
