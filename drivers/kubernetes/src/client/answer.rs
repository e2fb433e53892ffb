//! An answer of the API server, read up to a size limit.

use jiff::Timestamp;
use reqwest::header::{DATE, HeaderMap};
use reqwest::{Response, StatusCode};
use serde::de::DeserializeOwned;

use crate::error::{KubernetesError, Request, Result};

/// The largest body that is read, in bytes: a page of 250 large objects stays well below.
const LARGEST_BODY: usize = 32 * 1024 * 1024;

/// An answer that was read to its end.
pub(crate) struct Answer {
    pub(super) request: Request,
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

/// The reasons why an answer could not be read to its end.
pub(super) enum ReadError {
    Broken(reqwest::Error),
    TooLarge(KubernetesError),
}

impl Answer {
    /// Reads `response` to its end, or up to the size limit.
    pub(super) async fn read(
        request: Request,
        mut response: Response,
    ) -> Result<Answer, ReadError> {
        let headers = std::mem::take(response.headers_mut());
        let status = response.status();
        let mut answer = Answer { request, status, headers, body: Vec::new() };
        while let Some(chunk) = response.chunk().await.map_err(ReadError::Broken)? {
            if answer.body.len() + chunk.len() > LARGEST_BODY {
                return Err(ReadError::TooLarge(answer.malformed("it is larger than 32 MiB")));
            }
            answer.body.extend_from_slice(&chunk);
        }
        Ok(answer)
    }

    /// The time of the answer by the API server's clock.
    pub(crate) fn date(&self) -> Option<Timestamp> {
        let date = self.headers.get(DATE)?.to_str().ok()?;
        Some(jiff::fmt::rfc2822::parse(date).ok()?.timestamp())
    }

    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_slice(&self.body).map_err(|error| {
            // The parser's error quotes the text, which may be a secret.
            let (line, column) = (error.line(), error.column());
            self.malformed(format!("it is not as expected at line {line} column {column}"))
        })
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Makes an error that says that the answer breaks the API.
    pub(crate) fn malformed(&self, reason: impl Into<String>) -> KubernetesError {
        KubernetesError::Malformed { request: self.request.clone(), reason: reason.into() }
    }
}
