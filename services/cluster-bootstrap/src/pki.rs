//! Keys and certificates of a cluster. The caller makes them and hands them in.

use secrecy::SecretString;

/// A key pair. `Debug` does not print the private key.
#[derive(Clone, Debug)]
pub struct KeyPair {
    /// PEM.
    pub public: String,
    /// PEM, PKCS #8.
    pub private: SecretString,
}

/// A certificate authority: its certificate and its private key.
#[derive(Clone, Debug)]
pub struct CertificateAuthority {
    /// PEM.
    pub certificate: String,
    /// PEM, PKCS #8.
    pub key: SecretString,
    /// SHA-256 of the certificate's public key (SubjectPublicKeyInfo, DER), in hexadecimal, which kubeadm pins.
    pub public_key_sha256: String,
}

/// The keys and certificate authorities that all members have to share, so that no member can make its own.
#[derive(Clone, Debug)]
pub struct Pki {
    /// Signs the certificates of the API server, of its clients and of kubelets.
    pub cluster: CertificateAuthority,
    /// Signs the certificates of etcd's members and clients.
    pub etcd: CertificateAuthority,
    /// Signs the certificate that the API server shows to extension API servers.
    pub front_proxy: CertificateAuthority,
    /// Signs the tokens of service accounts.
    pub service_account: KeyPair,
}
