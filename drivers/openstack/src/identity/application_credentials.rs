//! Application credentials: secrets of a user's that are good in one project, with some of the user's roles.

use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::SERVICE;
use crate::error::CloudError;
use crate::lenient;
use crate::session::Session;

/// An application credential, without its secret, which nobody can read again.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ApplicationCredential {
    /// Its id.
    pub id: String,
    /// Its name: one of its user's has it.
    pub name: String,
    /// What it is for.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub description: String,
    /// The project it is good in.
    #[serde(default)]
    pub project_id: Option<String>,
    /// What it may.
    #[serde(default)]
    pub roles: Vec<Role>,
    /// When it ends.
    #[serde(default, deserialize_with = "lenient::time")]
    pub expires_at: Option<Timestamp>,
}

/// A role.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Role {
    /// Its id.
    #[serde(default)]
    pub id: String,
    /// Its name.
    #[serde(default)]
    pub name: String,
}

/// An application credential to be made.
#[derive(Clone, Debug)]
pub struct NewApplicationCredential {
    /// Its name, which no other of the user's may have: derive it from what it is for.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Its secret. Chosen by us, so that it is not lost with a lost answer.
    pub secret: SecretString,
    /// The names of the roles it has; all that we have if empty.
    pub roles: Vec<String>,
    /// The requests it may make; all that the roles may if empty.
    pub access_rules: Vec<AccessRule>,
    /// When it ends.
    pub expires_at: Option<Timestamp>,
}

/// A request that an application credential may make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AccessRule {
    /// The service's type: `compute`.
    pub service: String,
    /// The method.
    pub method: String,
    /// The path, with `*`, `**` and `{name}` for what varies.
    pub path: String,
}

/// Makes one for ourselves, in the project our token is valid in. It cannot make others.
///
/// A conflict says that there is one of this name: with the secret that a lost answer's request had, if that is
/// the one we know.
pub async fn create(
    session: &Session,
    new: &NewApplicationCredential,
) -> Result<ApplicationCredential, CloudError> {
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
        // Keystone takes no zone but UTC, and no more than microseconds.
        body["expires_at"] = end.strftime("%Y-%m-%dT%H:%M:%S.000000").to_string().into();
    }
    let body = json!({"application_credential": body});
    let path = ["users", &user, "application_credentials"];
    session.post(SERVICE, &path, body).under("application_credential").await
}

/// Ours of this name.
pub async fn find(
    session: &Session,
    name: &str,
) -> Result<Option<ApplicationCredential>, CloudError> {
    let user = session.identity().await?.user_id;
    let path = ["users", &user, "application_credentials"];
    let call = session.get(SERVICE, &path).query("name", name);
    let found: Vec<ApplicationCredential> = call.all("application_credentials").await?;
    Ok(found.into_iter().find(|one| one.name == name))
}

/// Takes one of ours away; tokens that were got with it end as well.
pub async fn delete(session: &Session, id: &str) -> Result<(), CloudError> {
    let user = session.identity().await?.user_id;
    session.delete(SERVICE, &["users", &user, "application_credentials", id]).await
}
