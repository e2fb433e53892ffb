//! The data of an image, read as a stream.

use reqwest::{Response, StatusCode};

use super::SERVICE;
use crate::error::{Result, if_found};
use crate::session::Session;

pub use crate::download::{Download, DownloadError};

/// Begins to download the data of an image; `None` if the image does not exist or has no data.
pub async fn download(session: &Session, id: &str) -> Result<Option<Download>> {
    let opened = if_found(session.get(SERVICE, &["images", id, "file"]).open().await)?;
    let has_data = |response: &Response| response.status() != StatusCode::NO_CONTENT;
    Ok(opened.filter(has_data).map(|response| Download::new(SERVICE, response)))
}
