//! Downloads the image over HTTP, and resumes after short interruptions of the network.

mod hosts;
mod pieces;
mod ranges;

use std::error::Error as _;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use agent_protocol::ImageInfo;
use bytes::{Bytes, BytesMut};
use reqwest::header::{ACCEPT_ENCODING, ETAG, HeaderMap, HeaderValue, IF_RANGE, LAST_MODIFIED};
use reqwest::{Certificate, Client, Response, StatusCode};
use tokio::sync::mpsc::Sender;
use tracing::{info, warn};
use url::Url;

use self::ranges::{range_header, range_start};
use super::ImageError;

/// Certificates of the CAs that may have signed an image server's certificate.
#[derive(Clone, Default)]
pub struct TrustAnchors(Vec<Certificate>);

impl TrustAnchors {
    /// Reads certificates from PEM.
    pub fn from_pem(pem: &[u8]) -> Result<Self, reqwest::Error> {
        Certificate::from_pem_bundle(pem).map(TrustAnchors)
    }

    /// Returns a copy of the certificates.
    pub fn certificates(&self) -> Vec<Certificate> {
        self.0.clone()
    }
}

/// Timeouts and retries of a download.
#[derive(Clone, Copy, Debug)]
pub struct DownloadPolicy {
    /// Timeout of connecting.
    pub connect: Duration,
    /// Timeout between two chunks.
    pub read: Duration,
    /// How often a URL is tried, and how often a broken download is resumed, without any progress in between.
    pub tries: u32,
    /// Pause before the second try; doubled before each further try.
    pub pause: Duration,
}

impl Default for DownloadPolicy {
    fn default() -> Self {
        DownloadPolicy {
            connect: Duration::from_secs(10),
            read: Duration::from_secs(60),
            tries: 4,
            pause: Duration::from_secs(1),
        }
    }
}

/// The URLs that an image can be downloaded from.
pub(super) struct Source {
    client: Client,
    urls: Vec<Url>,
    patience: DownloadPolicy,
}

/// A download whose response has begun.
pub(super) struct Opened {
    url: Url,
    response: Response,
    length: Option<u64>,
    /// ETag or date by which the server recognizes an unchanged file.
    validator: Option<HeaderValue>,
    /// The first bytes, which were read for inspection and still have to be passed on.
    peeked: Bytes,
}

/// Enough bytes to recognize every format, and a whole qcow2 header.
const PEEK: usize = 512;

impl Opened {
    /// Reads the first bytes.
    pub(super) async fn peek(mut self) -> Result<Self, ImageError> {
        let mut peeked = BytesMut::new();
        while peeked.len() < PEEK {
            match self.response.chunk().await {
                Ok(Some(chunk)) => peeked.extend_from_slice(&chunk),
                Ok(None) => break,
                Err(_) if !peeked.is_empty() => break,
                Err(source) => return Err(broken(&self.url, source)),
            }
        }
        self.peeked = peeked.freeze();
        Ok(self)
    }

    /// The first bytes of the file.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.peeked
    }

    /// The length of the file, if the server reports it.
    pub(super) fn length(&self) -> Option<u64> {
        self.length
    }
}

impl Source {
    pub(super) fn new(
        image: &ImageInfo,
        anchors: &TrustAnchors,
        patience: DownloadPolicy,
    ) -> Result<Self, ImageError> {
        let useless = |field, value: &str, reason: &str| ImageError::Description {
            field,
            value: value.chars().take(200).collect(),
            reason: reason.to_owned(),
        };
        let parse = |raw: &String| match Url::parse(raw) {
            Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(url),
            Ok(_) => Err(useless("url", raw, "only http and https are fetched")),
            Err(error) => Err(useless("url", raw, &error.to_string())),
        };
        let urls: Vec<Url> = image.urls.iter().map(parse).collect::<Result<_, _>>()?;
        if urls.is_empty() {
            return Err(useless("urls", "[]", "it has no URL"));
        }
        let mut certificates = anchors.certificates();
        if let Some(pem) = &image.image_ca {
            let own = Certificate::from_pem_bundle(pem.as_bytes())
                .map_err(|_| useless("image_ca", "…", "it is not a PEM certificate"))?;
            certificates.extend(own);
        }
        for url in &urls {
            hosts::check(&image.image_hosts, url)
                .map_err(|source| ImageError::HostRefused { url: url.to_string(), source })?;
        }
        let client = Client::builder()
            .no_proxy()
            .redirect(hosts::redirects(image.image_hosts.clone()))
            .dns_resolver(Arc::new(hosts::Resolver(image.image_hosts.clone())))
            .connect_timeout(patience.connect)
            .read_timeout(patience.read)
            .tls_certs_only(certificates)
            .build()
            .map_err(|error| useless("image_ca", "…", &crate::error::chain(&error)))?;
        Ok(Source { client, urls, patience })
    }

    /// Starts the download from the first URL that has the image.
    pub(super) async fn open(&self) -> Result<Opened, ImageError> {
        let mut last = None;
        for url in &self.urls {
            match self.open_at(url).await {
                Ok(opened) => return Ok(opened),
                Err(error) => {
                    warn!(image.url = %url, "cannot get the image: {}", crate::error::chain(&error));
                    last = Some(error);
                }
            }
        }
        // `new` refuses an empty list, so there is always an error to return.
        Err(last.unwrap_or(ImageError::Panicked))
    }

    async fn open_at(&self, url: &Url) -> Result<Opened, ImageError> {
        let response = self.ask(url, HeaderMap::new()).await?;
        if response.status() != StatusCode::OK {
            return Err(refused(url, response.status()));
        }
        let header = |name| response.headers().get(name).cloned();
        // A weak validator does not guarantee equal bytes (RFC 9110 §13.1.5).
        let strong = header(ETAG).filter(|tag| !tag.as_bytes().starts_with(b"W/"));
        let validator = strong.or_else(|| header(LAST_MODIFIED));
        let length = response.content_length();
        Ok(Opened { url: url.clone(), length, validator, response, peeked: Bytes::new() })
    }

    /// Sends one request, and retries while the server cannot be reached.
    async fn ask(&self, url: &Url, headers: HeaderMap) -> Result<Response, ImageError> {
        let mut pause = self.patience.pause;
        let mut tries = 1;
        loop {
            let request = self.client.get(url.clone()).headers(headers.clone());
            // The checksum covers the file itself, so the server must not encode it for the transfer.
            match request.header(ACCEPT_ENCODING, "identity").send().await {
                Ok(response) => return Ok(response),
                Err(source) => {
                    let error = broken(url, source);
                    let is_final =
                        matches!(error, ImageError::Tls { .. } | ImageError::HostRefused { .. });
                    if tries >= self.patience.tries || is_final {
                        return Err(error);
                    }
                }
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
            tries += 1;
        }
    }

    /// Sends every byte of the image to each of `queues`, and resumes after an interruption. Ends early without an error if a receiver has
    /// ended, because that receiver reports its own error.
    pub(super) async fn stream(
        &self,
        opened: Opened,
        queues: [Sender<Bytes>; 2],
    ) -> Result<(), ImageError> {
        let Opened { url, mut response, length, validator, peeked } = opened;
        let mut received = peeked.len() as u64;
        if !pass_on(&queues, peeked).await {
            return Ok(());
        }
        let mut failures = 0;
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) => {
                    received += chunk.len() as u64;
                    failures = 0;
                    if !pass_on(&queues, chunk).await {
                        return Ok(());
                    }
                }
                Ok(None) if length.is_none_or(|length| received >= length) => return Ok(()),
                broken => {
                    failures += 1;
                    let why = broken.err().map(|error| crate::error::chain(&error));
                    warn!(image.url = %url, image.received = received, "the download broke off: {why:?}");
                    let truncated =
                        ImageError::Truncated { url: url.to_string(), received, expected: length };
                    let Some(validator) =
                        validator.as_ref().filter(|_| failures < self.patience.tries)
                    else {
                        return Err(truncated);
                    };
                    tokio::time::sleep(self.patience.pause * failures).await;
                    response = match self.resume(&url, received, validator).await? {
                        Some(rest) => rest,
                        None => return Err(truncated),
                    };
                    info!(image.received = received, "resuming the download at byte {received}");
                }
            }
        }
    }

    /// Requests the rest of the file from `at`; `None` if the server has no ranges or the file has changed.
    async fn resume(
        &self,
        url: &Url,
        at: u64,
        validator: &HeaderValue,
    ) -> Result<Option<Response>, ImageError> {
        let mut headers = range_header(at..u64::MAX);
        headers.insert(IF_RANGE, validator.clone());
        let response = self.ask(url, headers).await?;
        Ok((range_start(&response) == Some(at)).then_some(response))
    }
}

async fn pass_on(queues: &[Sender<Bytes>; 2], chunk: Bytes) -> bool {
    for queue in queues {
        if queue.send(chunk.clone()).await.is_err() {
            return false;
        }
    }
    true
}

fn refused(url: &Url, status: StatusCode) -> ImageError {
    ImageError::Status { url: url.to_string(), status: status.as_u16() }
}

/// Classifies a failed request: a forbidden host, an untrusted certificate, or no connection.
fn broken(url: &Url, source: reqwest::Error) -> ImageError {
    let url = url.to_string();
    let source = source.without_url();
    if let Some(why) = hosts::refusal(&source) {
        return ImageError::HostRefused { url, source: why.clone() };
    }
    match is_about_trust(&source) {
        true => ImageError::Tls { url, source },
        false => ImageError::Unreachable { url, source },
    }
}

fn is_about_trust(error: &reqwest::Error) -> bool {
    let mut next = error.source();
    while let Some(cause) = next {
        if cause.is::<rustls::Error>() {
            return true;
        }
        // `io::Error::source` skips the wrapped error itself, which may be another `io::Error`.
        next = match cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(wrapped) => Some(wrapped),
            None => cause.source(),
        };
    }
    false
}
