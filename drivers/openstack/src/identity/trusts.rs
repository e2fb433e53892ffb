//! Trusts: a user lets another user act in a project on their behalf.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;

use super::SERVICE;
use super::application_credentials::Role;
use crate::error::Result;
use crate::lenient;
use crate::session::Session;

/// A trust between two users.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Trust {
    /// The id that a token's scope names.
    pub id: String,
    /// The user who delegates.
    #[serde(default)]
    pub trustor_user_id: String,
    /// The user who acts.
    #[serde(default)]
    pub trustee_user_id: String,
    #[serde(default)]
    pub project_id: Option<String>,
    /// The delegated roles; lists leave them out.
    #[serde(default)]
    pub roles: Vec<Role>,
    #[serde(default, deserialize_with = "lenient::time")]
    pub expires_at: Option<Timestamp>,
}

/// A trust to create, from our user, in the project of our token.
#[derive(Clone, Debug)]
pub struct NewTrust {
    /// The user who acts.
    pub trustee_user_id: String,
    /// The names of the delegated roles.
    pub roles: Vec<String>,
    pub expires_at: Option<Timestamp>,
}

/// Creates a trust. The trustee acts as our user and cannot pass the trust on.
///
/// A trust has no name: use a separate trustee for each purpose, see [`find`].
pub async fn create(session: &Session, new: &NewTrust) -> Result<Trust> {
    let own = session.identity().await?;
    let roles: Vec<_> = new.roles.iter().map(|name| json!({"name": name})).collect();
    let body = json!({"trust": {
        "trustor_user_id": own.user_id,
        "trustee_user_id": new.trustee_user_id,
        "project_id": own.project_id,
        "impersonation": true,
        "allow_redelegation": false,
        "roles": roles,
        "expires_at": new.expires_at.map(|end| end.strftime("%Y-%m-%dT%H:%M:%S.000000Z").to_string()),
    }});
    session.post(SERVICE, &["OS-TRUST", "trusts"], body).under("trust").await
}

/// Lists the trusts from our user to this user in the project of our token.
pub async fn find(session: &Session, trustee_user_id: &str) -> Result<Vec<Trust>> {
    let own = session.identity().await?;
    let call = session.get(SERVICE, &["OS-TRUST", "trusts"]);
    let call = call.query("trustor_user_id", own.user_id.as_str());
    let mut trusts: Vec<Trust> = call.all("trusts").await?;
    trusts.retain(|one| one.trustee_user_id == trustee_user_id && one.project_id == own.project_id);
    Ok(trusts)
}

/// Returns the trust with this id.
pub async fn show(session: &Session, id: &str) -> Result<Option<Trust>> {
    session.get(SERVICE, &["OS-TRUST", "trusts", id]).find_under("trust").await
}

/// Deletes a trust; its tokens become invalid too.
pub async fn delete(session: &Session, id: &str) -> Result<()> {
    session.delete(SERVICE, &["OS-TRUST", "trusts", id]).await
}
