//! Writes the kubeconfig file with which `kubectl` reaches a cluster.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cluster_bootstrap::{CertificateAuthority, Endpoint, Name};
use rcgen::{DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair, KeyUsagePurpose};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;

use crate::seed::{PkiError, Validity, parameters};

/// A kubeconfig that contains a private key, as JSON (every JSON document is YAML). `Debug` prints no part of the file.
#[derive(Clone)]
pub struct Kubeconfig(SecretString);

impl Kubeconfig {
    /// Returns the text of the file, including the private key.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl fmt::Debug for Kubeconfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Kubeconfig(…)")
    }
}

/// Makes a kubeconfig for the cluster's administrator: a new key, and a client certificate in the group `system:masters`, which may do
/// everything.
pub fn admin_kubeconfig(
    cluster: &Name,
    endpoint: &Endpoint,
    authority: &CertificateAuthority,
    validity: Validity,
) -> Result<Kubeconfig, PkiError> {
    let error = |source| PkiError { what: "the administrator's certificate", source };
    let key = KeyPair::generate().map_err(error)?;
    let mut parameters = parameters(validity);
    parameters.distinguished_name.push(DnType::OrganizationName, "system:masters");
    parameters.distinguished_name.push(DnType::CommonName, "bedplate-admin");
    parameters.key_usages =
        vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let certificate =
        parameters.signed_by(&key, &issuer(authority).map_err(error)?).map_err(error)?;
    let user = json!({
        "client-certificate-data": STANDARD.encode(certificate.pem()),
        "client-key-data": STANDARD.encode(key.serialize_pem()),
    });
    Ok(Kubeconfig(text(cluster, endpoint, authority, "admin", user).into()))
}

fn text(
    cluster: &Name,
    endpoint: &Endpoint,
    authority: &CertificateAuthority,
    user: &str,
    credentials: serde_json::Value,
) -> String {
    let context = format!("{user}@{cluster}");
    let document = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": context,
        "clusters": [{"name": cluster.as_str(), "cluster": {
            "server": format!("https://{}", endpoint.authority()),
            "certificate-authority-data": STANDARD.encode(&authority.certificate),
        }}],
        "users": [{"name": user, "user": credentials}],
        "contexts": [{"name": context, "context": {"cluster": cluster.as_str(), "user": user}}],
    });
    format!("{document:#}\n")
}

pub(crate) fn issuer(
    authority: &CertificateAuthority,
) -> Result<Issuer<'static, KeyPair>, rcgen::Error> {
    let key = KeyPair::from_pem(authority.key.expose_secret())?;
    Issuer::from_ca_cert_pem(&authority.certificate, key)
}
