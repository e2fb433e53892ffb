//! The bytes of an image: sent by us, or fetched by Glance.

use bytes::Bytes;
use futures::TryStream;
use serde_json::json;
use url::Url;

use super::SERVICE;
use super::images::{self, Image, ImageStatus};
use crate::error::CloudError;
use crate::session::{Body, Session};

/// Sends the bytes of an image as they come, and gives it as it is then.
///
/// An image that has its bytes already is given as it is, and nothing is sent. The bytes come once: after an error
/// delete the image and begin again; a half-sent one never becomes active.
pub async fn upload<S>(session: &Session, id: &str, bytes: S) -> Result<Option<Image>, CloudError>
where
    S: TryStream + Send + 'static,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    Bytes: From<S::Ok>,
{
    // It also tells whether our token is still taken: the upload itself could not be repeated.
    let Some(image) = images::show(session, id).await? else { return Ok(None) };
    if image.status != ImageStatus::Queued {
        return Ok(Some(image));
    }
    let body = Body::Stream(reqwest::Body::wrap_stream(bytes));
    let path = ["images", id, "file"];
    session.put(SERVICE, &path, json!(null)).body(body).done().await?;
    images::show(session, id).await
}

/// Has Glance fetch the bytes of a queued image from a URL that it can reach. It goes on by itself: look at the
/// image's status.
///
/// Image API v2, "Interoperable image import", method `web-download`, which a cloud may have switched off.
pub async fn fetch_from(session: &Session, id: &str, url: &Url) -> Result<(), CloudError> {
    let body = json!({"method": {"name": "web-download", "uri": url.as_str()}});
    session.post(SERVICE, &["images", id, "import"], body).done().await
}

/// By which methods this cloud imports images.
pub async fn import_methods(session: &Session) -> Result<Vec<String>, CloudError> {
    #[derive(serde::Deserialize)]
    struct Methods {
        #[serde(default)]
        value: Vec<String>,
    }
    let methods: Methods =
        session.get(SERVICE, &["info", "import"]).under("import-methods").await?;
    Ok(methods.value)
}
