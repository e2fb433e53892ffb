//! Trusts: one user lets another act in a project in the first one's place.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;

use super::SERVICE;
use super::application_credentials::Role;
use crate::error::CloudError;
use crate::lenient;
use crate::session::Session;

/// A trust.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Trust {
    /// Its id: what a scope names.
    pub id: String,
    /// Who trusts.
    #[serde(default)]
    pub trustor_user_id: String,
    /// Who is trusted.
    #[serde(default)]
    pub trustee_user_id: String,
    /// Where.
    #[serde(default)]
    pub project_id: Option<String>,
    /// What the trustee may; lists leave it out.
    #[serde(default)]
    pub roles: Vec<Role>,
    /// When it ends.
    #[serde(default, deserialize_with = "lenient::time")]
    pub expires_at: Option<Timestamp>,
}

/// A trust to be made, of ours, in the project our token is valid in.
#[derive(Clone, Debug)]
pub struct NewTrust {
    /// Who is trusted.
    pub trustee_user_id: String,
    /// The names of the roles that are lent.
    pub roles: Vec<String>,
    /// When it ends.
    pub expires_at: Option<Timestamp>,
}

/// Trusts somebody. The trustee acts as us, and can pass the trust on to nobody.
///
/// A trust has no name: one trustee a purpose is what tells them apart, see [`find`].
pub async fn create(session: &Session, new: &NewTrust) -> Result<Trust, CloudError> {
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

/// Those in which we trust this user in our token's project.
pub async fn find(session: &Session, trustee_user_id: &str) -> Result<Vec<Trust>, CloudError> {
    let own = session.identity().await?;
    let call = session.get(SERVICE, &["OS-TRUST", "trusts"]);
    let call = call.query("trustor_user_id", own.user_id.as_str());
    let mut trusts: Vec<Trust> = call.all("trusts").await?;
    trusts.retain(|one| one.trustee_user_id == trustee_user_id && one.project_id == own.project_id);
    Ok(trusts)
}

/// One of them, if there is one.
pub async fn show(session: &Session, id: &str) -> Result<Option<Trust>, CloudError> {
    session.get(SERVICE, &["OS-TRUST", "trusts", id]).find_under("trust").await
}

/// Trusts no longer; tokens that were got with it end as well.
pub async fn delete(session: &Session, id: &str) -> Result<(), CloudError> {
    session.delete(SERVICE, &["OS-TRUST", "trusts", id]).await
}
