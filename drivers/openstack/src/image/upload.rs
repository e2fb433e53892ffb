//! The data of an image: uploaded by us, or downloaded by Glance.

use bytes::Bytes;
use futures::TryStream;
use serde_json::json;
use url::Url;

use super::SERVICE;
use super::images::{self, Image, ImageStatus};
use crate::error::CloudError;
use crate::session::{Body, Session};

/// Uploads the data of an image as a stream, and returns the image.
///
/// If the image has data already, nothing is sent. The stream can be read only once: after an error, delete the image and start again. An
/// incomplete image never becomes active.
pub async fn upload<S>(session: &Session, id: &str, bytes: S) -> Result<Option<Image>, CloudError>
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

/// Makes Glance download the data of a queued image from a URL that Glance can reach. Glance works in the background: the image's status
/// shows the progress.
///
/// Image API v2, "Interoperable image import", method `web-download`, which a cloud may have disabled.
pub async fn fetch_from(session: &Session, id: &str, url: &Url) -> Result<(), CloudError> {
    let body = json!({"method": {"name": "web-download", "uri": url.as_str()}});
    session.post(SERVICE, &["images", id, "import"], body).done().await
}

/// Returns the import methods of this cloud.
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
