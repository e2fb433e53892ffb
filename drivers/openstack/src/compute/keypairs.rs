//! Key pairs: public keys that servers let in. Private keys are nobody's to make but their owner's.

use serde::Deserialize;
use serde_json::json;

use super::{MICROVERSION, SERVICE};
use crate::error::CloudError;
use crate::session::Session;

/// A public key that servers let in.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct KeyPair {
    /// Its name, which no other of its user's has.
    pub name: String,
    /// As in `authorized_keys`.
    #[serde(default)]
    pub public_key: String,
    /// Its MD5, or SHA-256 in newer clouds.
    #[serde(default)]
    pub fingerprint: String,
}

/// Makes a public key known. A conflict says that there is one of this name.
pub async fn import(
    session: &Session,
    name: &str,
    public_key: &str,
) -> Result<KeyPair, CloudError> {
    let body = json!({"keypair": {"name": name, "public_key": public_key, "type": "ssh"}});
    let call = session.post(SERVICE, &["os-keypairs"], body).microversion(MICROVERSION);
    call.under("keypair").await
}

/// Ours of this name.
pub async fn find(session: &Session, name: &str) -> Result<Option<KeyPair>, CloudError> {
    let call = session.get(SERVICE, &["os-keypairs", name]).microversion(MICROVERSION);
    call.find_under("keypair").await
}

/// Forgets a key. Servers that have it keep it.
pub async fn delete(session: &Session, name: &str) -> Result<(), CloudError> {
    let call = session.deleting(SERVICE, &["os-keypairs", name]).microversion(MICROVERSION);
    call.done_or_gone().await
}
