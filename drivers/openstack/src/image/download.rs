//! The data of an image, read as a stream.

use bytes::Bytes;
use futures::{Stream, TryStreamExt};
use reqwest::{Response, StatusCode};

use super::SERVICE;
use crate::error::{Result, if_found};
use crate::session::Session;

/// The data of an image, which arrives as it is read.
#[derive(Debug)]
pub struct Download {
    response: Response,
}

/// The connection to Glance broke off.
#[derive(Debug, thiserror::Error)]
#[error("the connection to the image service broke off")]
pub struct DownloadError(#[source] reqwest::Error);

impl Download {
    /// Returns the number of bytes, if Glance tells it.
    pub fn length(&self) -> Option<u64> {
        self.response.content_length()
    }

    /// Returns the bytes as they arrive. Glance is not read faster than the stream.
    pub fn into_stream(self) -> impl Stream<Item = Result<Bytes, DownloadError>> + Send + 'static {
        // The URL could name what the reader may not know.
        self.response.bytes_stream().map_err(|error| DownloadError(error.without_url()))
    }
}

/// Begins to download the data of an image; `None` if the image does not exist or has no data.
pub async fn download(session: &Session, id: &str) -> Result<Option<Download>> {
    let opened = if_found(session.get(SERVICE, &["images", id, "file"]).open().await)?;
    let has_data = |response: &Response| response.status() != StatusCode::NO_CONTENT;
    Ok(opened.filter(has_data).map(|response| Download { response }))
}
