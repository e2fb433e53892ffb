//! Roles and their assignments. Only administrators can change assignments.

use serde_json::Value;

use super::SERVICE;
pub use super::application_credentials::Role;
use crate::error::Result;
use crate::session::{Body, Session};

/// Returns the global role of this name, which belongs to no domain.
pub async fn find(session: &Session, name: &str) -> Result<Option<Role>> {
    let call = session.get(SERVICE, &["roles"]).query("name", name);
    let found: Vec<Role> = call.all("roles").await?;
    Ok(found.into_iter().find(|role| role.name == name))
}

/// Whether a user has a role in a project by a direct assignment; groups and implied roles do not count.
pub async fn is_given(
    session: &Session,
    (user, project): (&str, &str),
    role: &str,
) -> Result<bool> {
    let path = ["projects", project, "users", user, "roles"];
    let given: Vec<Role> = session.get(SERVICE, &path).all("roles").await?;
    Ok(given.iter().any(|it| it.id == role))
}

/// Assigns a role in a project to a user. Repeating this changes nothing.
pub async fn assign(session: &Session, (user, project): (&str, &str), role: &str) -> Result<()> {
    let path = ["projects", project, "users", user, "roles", role];
    // Keystone refuses a body that is not an object, so none is sent.
    session.put(SERVICE, &path, Value::Null).body(Body::None).done().await
}

/// Removes a role in a project from a user. The user's tokens and application credentials that depend on the role become invalid.
pub async fn unassign(session: &Session, (user, project): (&str, &str), role: &str) -> Result<()> {
    session.delete(SERVICE, &["projects", project, "users", user, "roles", role]).await
}
