//! An answer of a service, read up to a size limit.

use reqwest::header::{HeaderMap, HeaderName};
use reqwest::{Response, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::{CloudError, Request, Result};
use crate::service::Service;

/// The largest body that is read, in bytes: a page of a thousand full servers stays below half of this size.
const LARGEST_BODY: usize = 16 * 1024 * 1024;

/// The headers with the id of a request, Nova's old one last.
const REQUEST_IDS: [HeaderName; 2] = [
    HeaderName::from_static("x-openstack-request-id"),
    HeaderName::from_static("x-compute-request-id"),
];

/// An answer that was read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) service: Service,
    pub(crate) request: Request,
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

/// The reasons why an answer could not be read to its end.
pub(super) enum ReadError {
    Broken(reqwest::Error),
    TooLarge(CloudError),
}

impl Answer {
    /// Reads `response` to its end, or up to the size limit.
    pub(super) async fn read(
        service: Service,
        mut request: Request,
        mut response: Response,
    ) -> Result<Answer, ReadError> {
        let headers = std::mem::take(response.headers_mut());
        if let Some(id) = REQUEST_IDS.iter().find_map(|name| headers.get(name)?.to_str().ok()) {
            request.id = id.chars().filter(|c| c.is_ascii_graphic()).take(64).collect();
        }
        let status = response.status();
        let mut answer = Answer { service, request, status, headers, body: Vec::new() };
        while let Some(chunk) = response.chunk().await.map_err(ReadError::Broken)? {
            if answer.body.len() + chunk.len() > LARGEST_BODY {
                return Err(ReadError::TooLarge(answer.malformed("it is larger than 16 MiB")));
            }
            answer.body.extend_from_slice(&chunk);
        }
        Ok(answer)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Parses the whole body.
    pub(crate) fn whole<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_slice(&self.body).map_err(|error| self.unreadable("", &error))
    }

    /// Parses the value under `key`, in which most answers are wrapped.
    pub(crate) fn under<T: DeserializeOwned>(&self, key: &str) -> Result<T> {
        let mut body: Value = self.whole()?;
        let inner = body.get_mut(key).map(Value::take);
        let inner = inner.ok_or_else(|| self.malformed(format!("it has no {key:?}")))?;
        serde_json::from_value(inner).map_err(|error| self.unreadable(key, &error))
    }

    /// Makes an error that says that the answer breaks the API.
    pub(crate) fn malformed(&self, reason: impl Into<String>) -> CloudError {
        let (service, request) = (self.service, self.request.clone());
        CloudError::Malformed { service, request, reason: reason.into() }
    }

    fn unreadable(&self, key: &str, error: &serde_json::Error) -> CloudError {
        // The parser's error quotes the text, and Keystone's answers hold secrets.
        if self.service == Service::Identity {
            return self.malformed(format!("{key} is not of the form it should be"));
        }
        self.malformed(format!("{key} {error}").chars().take(300).collect::<String>())
    }
}
