//! The upload of the data of an image.

use bytes::Bytes;
use futures::TryStream;
use serde_json::json;

use super::SERVICE;
use super::images::{self, Image, ImageStatus};
use crate::error::Result;
use crate::session::{Body, Session};

/// Uploads the data of an image as a stream, and returns the image.
///
/// If the image has data already, nothing is sent. The stream can be read only once: after an error, delete the image and start again. An
/// incomplete image never becomes active.
pub async fn upload<S>(session: &Session, id: &str, bytes: S) -> Result<Option<Image>>
where
    S: TryStream + Send + 'static,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    Bytes: From<S::Ok>,
{
    // The request also validates our token, because the upload itself cannot be repeated with a new one.
    let Some(image) = images::show(session, id).await? else { return Ok(None) };
    if image.status != ImageStatus::Queued {
        return Ok(Some(image));
    }
    let body = Body::Stream(reqwest::Body::wrap_stream(bytes));
    let path = ["images", id, "file"];
    session.put(SERVICE, &path, json!(null)).body(body).done().await?;
    images::show(session, id).await
}
