//! Key pairs: SSH public keys for servers. Private keys stay with their owners.

use secrecy::SecretString;
use serde::Deserialize;
use serde_json::json;

use super::{MICROVERSION, SERVICE};
use crate::error::Result;
use crate::session::Session;

/// A public key that servers accept for login.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct KeyPair {
    /// Unique among the user's key pairs.
    pub name: String,
    /// In the form of `authorized_keys`.
    #[serde(default)]
    pub public_key: String,
    /// MD5 of the key, or SHA-256 in newer clouds.
    #[serde(default)]
    pub fingerprint: String,
}

/// Imports a public key. A conflict means that the name is in use.
pub async fn import(session: &Session, name: &str, public_key: &str) -> Result<KeyPair> {
    let body = json!({"keypair": {"name": name, "public_key": public_key, "type": "ssh"}});
    let call = session.post(SERVICE, &["os-keypairs"], body).microversion(MICROVERSION);
    call.under("keypair").await
}

/// Returns our key pair of this name.
pub async fn find(session: &Session, name: &str) -> Result<Option<KeyPair>> {
    let call = session.get(SERVICE, &["os-keypairs", name]).microversion(MICROVERSION);
    call.find_under("keypair").await
}

/// Returns the key pair of this name of the user whose token is given: Nova keeps key pairs by user, not by project.
pub async fn find_of_user(
    session: &Session,
    token: &SecretString,
    name: &str,
) -> Result<Option<KeyPair>> {
    let call = session.get(SERVICE, &["os-keypairs", name]).microversion(MICROVERSION);
    call.with_token_of_another(token.clone()).find_under("keypair").await
}

/// Deletes a key pair. Existing servers keep the key.
pub async fn delete(session: &Session, name: &str) -> Result<()> {
    let call = session.deleting(SERVICE, &["os-keypairs", name]).microversion(MICROVERSION);
    call.done_or_gone().await
}
