//! Keys and certificates of a cluster, as they are handed in.

use secrecy::SecretString;

/// A private key with its public half. Prints nothing of the private one.
#[derive(Clone, Debug)]
pub struct KeyPair {
    /// PEM.
    pub public: String,
    /// PEM, PKCS #8.
    pub private: SecretString,
}

/// A certificate that signs others, with its key.
#[derive(Clone, Debug)]
pub struct Authority {
    /// PEM.
    pub certificate: String,
    /// PEM, PKCS #8.
    pub key: SecretString,
    /// SHA-256 of the certificate's public key (SubjectPublicKeyInfo, DER), in hexadecimal: what kubeadm pins.
    pub public_key_sha256: String,
}

/// All that a cluster's machines cannot make for themselves, for they have to agree on it.
#[derive(Clone, Debug)]
pub struct Pki {
    /// Signs what is shown to and by the API server.
    pub cluster: Authority,
    /// Signs what etcd's members and clients show.
    pub etcd: Authority,
    /// Signs what the API server shows to extension servers.
    pub front_proxy: Authority,
    /// Signs service accounts' tokens.
    pub service_account: KeyPair,
}
