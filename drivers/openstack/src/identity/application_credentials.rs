//! Application credentials: secrets of a user for one project, with some of the user's roles.

use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::SERVICE;
use crate::error::Result;
use crate::lenient;
use crate::session::Session;

/// An application credential without its secret, which cannot be read again.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ApplicationCredential {
    pub id: String,
    /// Unique among the user's credentials.
    pub name: String,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub description: String,
    /// The project that the credential is bound to.
    #[serde(default)]
    pub project_id: Option<String>,
    #[serde(default)]
    pub roles: Vec<Role>,
    #[serde(default, deserialize_with = "lenient::time")]
    pub expires_at: Option<Timestamp>,
}

/// A role in Keystone.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Role {
    #[serde(default)]
    pub id: String,
    #[serde(default)]
    pub name: String,
}

/// An application credential to create.
#[derive(Clone, Debug)]
pub struct NewApplicationCredential {
    /// Must be unique among the user's credentials: derive it from the purpose.
    pub name: String,
    pub description: String,
    /// The secret. We choose it, so that it is not lost with a lost answer.
    pub secret: SecretString,
    /// The names of the credential's roles; empty means all our roles.
    pub roles: Vec<String>,
    /// The requests that the credential allows; empty means all that the roles allow.
    pub access_rules: Vec<AccessRule>,
    pub expires_at: Option<Timestamp>,
}

/// A request that an application credential allows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AccessRule {
    /// The type of the service: `compute`.
    pub service: String,
    pub method: String,
    /// The path, with `*`, `**` and `{name}` as placeholders.
    pub path: String,
}

/// Creates a credential for our user, in the project of our token. The credential cannot create further ones.
///
/// A conflict means that the name is in use. After a lost answer, that credential has the secret of the earlier request.
pub async fn create(
    session: &Session,
    new: &NewApplicationCredential,
) -> Result<ApplicationCredential> {
    let user = session.identity().await?.user_id;
    let mut body = json!({
        "name": new.name,
        "description": new.description,
        "secret": new.secret.expose_secret(),
    });
    if !new.roles.is_empty() {
        let roles = new.roles.iter().map(|name| json!({"name": name}));
        body["roles"] = Value::Array(roles.collect());
    }
    if !new.access_rules.is_empty() {
        body["access_rules"] = json!(new.access_rules);
    }
    if let Some(end) = new.expires_at {
        // Keystone accepts only UTC without a zone, and at most microseconds.
        body["expires_at"] = end.strftime("%Y-%m-%dT%H:%M:%S.000000").to_string().into();
    }
    let body = json!({"application_credential": body});
    let path = ["users", &user, "application_credentials"];
    session.post(SERVICE, &path, body).under("application_credential").await
}

/// Returns our credential of this name.
pub async fn find(session: &Session, name: &str) -> Result<Option<ApplicationCredential>> {
    let user = session.identity().await?.user_id;
    let path = ["users", &user, "application_credentials"];
    let call = session.get(SERVICE, &path).query("name", name);
    let found: Vec<ApplicationCredential> = call.all("application_credentials").await?;
    Ok(found.into_iter().find(|one| one.name == name))
}

/// Deletes one of our credentials; its tokens become invalid too.
pub async fn delete(session: &Session, id: &str) -> Result<()> {
    let user = session.identity().await?.user_id;
    session.delete(SERVICE, &["users", &user, "application_credentials", id]).await
}
