//! Containers of objects.

use serde_json::json;

use super::SERVICE;
use crate::error::Result;
use crate::session::{Body, Session};

/// Creates a container; an existing one is no error.
pub async fn create(session: &Session, name: &str) -> Result<()> {
    session.put(SERVICE, &[name], json!(null)).body(Body::None).done().await
}

/// Deletes a container, which must be empty; a container that is gone already is no error.
pub async fn delete(session: &Session, name: &str) -> Result<()> {
    session.delete(SERVICE, &[name]).await
}
