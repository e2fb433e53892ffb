//! Objects in containers, written and read as streams. The name of an object may have slashes.

use bytes::Bytes;
use futures::TryStream;
use serde_json::json;

use super::SERVICE;
use crate::download::Download;
use crate::error::{Result, if_found};
use crate::session::{Body, Session};

/// Writes an object as a stream, and replaces an existing one. Swift keeps nothing of a stream that breaks off.
///
/// The stream can be read only once, so that a token which Swift does not take any more fails the call. A call before it, such as
/// [`super::containers::create`], renews the token.
pub async fn write<S>(session: &Session, container: &str, name: &str, bytes: S) -> Result<()>
where
    S: TryStream + Send + 'static,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    Bytes: From<S::Ok>,
{
    let body = Body::Stream(reqwest::Body::wrap_stream(bytes));
    session.put(SERVICE, &path(container, name), json!(null)).body(body).done().await
}

/// Begins to read an object; `None` if it does not exist.
pub async fn read(session: &Session, container: &str, name: &str) -> Result<Option<Download>> {
    let opened = if_found(session.get(SERVICE, &path(container, name)).open().await)?;
    Ok(opened.map(|response| Download::new(SERVICE, response)))
}

/// Deletes an object; an object that is gone already is no error.
pub async fn delete(session: &Session, container: &str, name: &str) -> Result<()> {
    session.delete(SERVICE, &path(container, name)).await
}

fn path<'n>(container: &'n str, name: &'n str) -> Vec<&'n str> {
    [container].into_iter().chain(name.split('/')).collect()
}
