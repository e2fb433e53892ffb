//! Roles, and who has which where. To give or take one needs an administrator.

use serde_json::Value;

use super::SERVICE;
pub use super::application_credentials::Role;
use crate::error::CloudError;
use crate::session::{Body, Session};

/// The role of this name that is of no domain.
pub async fn find(session: &Session, name: &str) -> Result<Option<Role>, CloudError> {
    let call = session.get(SERVICE, &["roles"]).query("name", name);
    let found: Vec<Role> = call.all("roles").await?;
    Ok(found.into_iter().find(|role| role.name == name))
}

/// Whether a user was given a role in a project; what comes by groups or other roles does not count.
pub async fn is_given(
    session: &Session,
    (user, project): (&str, &str),
    role: &str,
) -> Result<bool, CloudError> {
    let path = ["projects", project, "users", user, "roles"];
    let given: Vec<Role> = session.get(SERVICE, &path).all("roles").await?;
    Ok(given.iter().any(|it| it.id == role))
}

/// Gives a user a role in a project. To give it twice changes nothing.
pub async fn give(
    session: &Session,
    (user, project): (&str, &str),
    role: &str,
) -> Result<(), CloudError> {
    let path = ["projects", project, "users", user, "roles", role];
    // Keystone refuses a body that is no object, and wants none.
    session.put(SERVICE, &path, Value::Null).body(Body::None).done().await
}

/// Takes a role in a project from a user, and with it what rests on it: tokens, and application credentials in that project.
pub async fn take(
    session: &Session,
    (user, project): (&str, &str),
    role: &str,
) -> Result<(), CloudError> {
    session.delete(SERVICE, &["projects", project, "users", user, "roles", role]).await
}
