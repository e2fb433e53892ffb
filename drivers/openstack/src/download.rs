//! Data that a service sends as a stream.

use bytes::Bytes;
use futures::{Stream, TryStreamExt};
use reqwest::Response;

use crate::service::Service;

/// The data of an image or an object, which arrives as it is read.
#[derive(Debug)]
pub struct Download {
    service: Service,
    response: Response,
}

/// The connection to the service broke off.
#[derive(Debug, thiserror::Error)]
#[error("the connection to the {service} service broke off")]
pub struct DownloadError {
    service: Service,
    source: reqwest::Error,
}

impl Download {
    pub(crate) fn new(service: Service, response: Response) -> Download {
        Download { service, response }
    }

    /// Returns the number of bytes, if the service tells it.
    pub fn length(&self) -> Option<u64> {
        self.response.content_length()
    }

    /// Returns the bytes as they arrive. The service is not read faster than the stream.
    pub fn into_stream(self) -> impl Stream<Item = Result<Bytes, DownloadError>> + Send + 'static {
        let Download { service, response } = self;
        // The URL could name what the reader may not know.
        response
            .bytes_stream()
            .map_err(move |error| DownloadError { service, source: error.without_url() })
    }
}
