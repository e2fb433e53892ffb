//! Reads manifests and blobs of one repository in an OCI registry.
//!
//! The requests are those of the OCI distribution specification 1.1 ("Pulling manifests", "Pulling blobs"). A registry that asks for a login
//! names the server that gives out tokens, as in the "Token Authentication Specification" of the distribution project.

mod challenge;

use std::time::Duration;

use agent_protocol::ChecksumAlgorithm;
use baremetal_core::{
    LARGEST_OCI_DOCUMENT, OCI_MEDIA_TYPES, OciDigest, OciDocument, OciImage, OciRefused, OciVersion,
};
use hardware::{AllowedHosts, HostRefused};
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, HeaderMap, HeaderName, HeaderValue, RANGE};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, RequestBuilder, Response, StatusCode};
use serde::Deserialize;
use sha2::{Digest, Sha256, Sha512};
use url::Url;

use self::challenge::Challenge;
use crate::image_client::image_client;
use crate::problem::{chain, find_cause};

/// The time limit of a connection, and of each pause between two parts of an answer.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The size limit of the answer of a token server, in bytes.
const LARGEST_TOKEN_ANSWER: usize = 256 << 10;

/// The limit of redirects, equal to reqwest's default.
const MOST_REDIRECTS: usize = 10;

/// One repository of a registry.
pub(crate) struct Registry<'a> {
    client: Client,
    allowed: &'a AllowedHosts,
    image: &'a OciImage,
    base: Url,
    login: Option<Login>,
}

/// How requests to the registry prove who sends them.
enum Login {
    /// The user name and the password themselves.
    Basic,
    /// A token that the registry's token server gave out.
    Token(String),
}

/// Why a registry does not send a manifest or a blob.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RegistryError {
    #[error("{0}; allow the host with images.hosts in the configuration of the service")]
    Host(HostRefused),
    #[error("{host} is not the host of a URL")]
    NoHost { host: String },
    #[error("cannot make a TLS client; check instance_info.image_ca: {cause}")]
    NoClient { cause: String },
    #[error("cannot reach {host}: {cause}")]
    Unreachable { host: String, cause: String },
    #[error("the certificate of {host} is not trusted; set instance_info.image_ca: {cause}")]
    Untrusted { host: String, cause: String },
    #[error("cannot speak TLS with {host}: {cause}")]
    NoTls { host: String, cause: String },
    #[error("{host} redirects to a URL that is not read: {cause}")]
    Redirect { host: String, cause: String },
    #[error("{host} answered {status}")]
    Status { host: String, status: u16 },
    #[error("{host} has no {object}")]
    Missing { host: String, object: String },
    #[error("{host} wants a login, or has no such repository; set instance_info.image_pull_secret")]
    NoSecret { host: String },
    #[error("{host} refused {object}.image_pull_secret")]
    WrongSecret { host: String, object: &'static str },
    #[error("{host} wants a login of an unknown kind")]
    UnknownLogin { host: String },
    #[error("{host} sent no token")]
    NoToken { host: String },
    #[error("{host} sent more than {limit} bytes where a short document was expected")]
    TooLarge { host: String, limit: usize },
    #[error("{host} sent a manifest with another digest than {digest}")]
    OtherDigest { host: String, digest: OciDigest },
    #[error("it is {0}")]
    Refused(OciRefused),
    #[error("{digest} in the index is {why}")]
    EntryRefused { digest: OciDigest, why: OciRefused },
    #[error("{host} did not answer in time")]
    Slow { host: String },
}

impl From<OciRefused> for RegistryError {
    fn from(why: OciRefused) -> RegistryError {
        RegistryError::Refused(why)
    }
}

impl RegistryError {
    /// Whether the same request may succeed later.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            RegistryError::Unreachable { .. } | RegistryError::Slow { .. } => true,
            RegistryError::Status { status, .. } => {
                *status >= 500 || *status == StatusCode::TOO_MANY_REQUESTS.as_u16()
            }
            RegistryError::Host(_)
            | RegistryError::NoHost { .. }
            | RegistryError::NoClient { .. }
            | RegistryError::Untrusted { .. }
            | RegistryError::NoTls { .. }
            | RegistryError::Redirect { .. }
            | RegistryError::Missing { .. }
            | RegistryError::NoSecret { .. }
            | RegistryError::WrongSecret { .. }
            | RegistryError::UnknownLogin { .. }
            | RegistryError::NoToken { .. }
            | RegistryError::TooLarge { .. }
            | RegistryError::OtherDigest { .. }
            | RegistryError::Refused(_)
            | RegistryError::EntryRefused { .. } => false,
        }
    }
}

impl<'a> Registry<'a> {
    /// Makes a client of the registry with `image`. Only `allowed` hosts are asked, and only over TLS.
    pub(crate) fn new(
        allowed: &'a AllowedHosts,
        image: &'a OciImage,
    ) -> Result<Registry<'a>, RegistryError> {
        let host = &image.reference.registry;
        let base = Url::parse(&format!("https://{host}/"));
        let base = base.map_err(|_| RegistryError::NoHost { host: host.clone() })?;
        let client = client(allowed, image.ca.as_deref());
        let client = client.map_err(|error| RegistryError::NoClient { cause: chain(&error) })?;
        Ok(Registry { client, allowed, image, base, login: None })
    }

    /// Reads a manifest or an index.
    pub(crate) async fn document(
        &mut self,
        version: &OciVersion,
    ) -> Result<OciDocument, RegistryError> {
        let path = format!("manifests/{version}");
        let answer =
            self.get(&path, &[(ACCEPT, HeaderValue::from_static(OCI_MEDIA_TYPES))]).await?;
        let host = host_of(answer.url());
        let bytes = body_of(answer, LARGEST_OCI_DOCUMENT).await?;
        match version {
            OciVersion::Digest(digest) if !has_digest(&bytes, digest) => {
                Err(RegistryError::OtherDigest { host, digest: digest.clone() })
            }
            OciVersion::Digest(_) | OciVersion::Tag(_) => Ok(OciDocument::parse(&bytes)?),
        }
    }

    /// Begins to read a blob: the whole blob, or the `range` of it if the registry offers ranges. Nobody has checked the digest of the bytes.
    pub(crate) async fn blob(
        &mut self,
        digest: &OciDigest,
        range: Option<HeaderValue>,
    ) -> Result<Response, RegistryError> {
        // The digest covers the blob itself, so the registry must not encode it for the transfer.
        let mut headers = vec![(ACCEPT_ENCODING, HeaderValue::from_static("identity"))];
        headers.extend(range.map(|range| (RANGE, range)));
        self.get(&format!("blobs/{digest}"), &headers).await
    }

    /// Reads at least the first `length` bytes of a blob, or the whole blob if it is shorter.
    pub(crate) async fn start_of(
        &mut self,
        digest: &OciDigest,
        length: usize,
    ) -> Result<Vec<u8>, RegistryError> {
        let range = HeaderValue::try_from(format!("bytes=0-{}", length.saturating_sub(1))).ok();
        let mut answer = self.blob(digest, range).await?;
        let host = host_of(answer.url());
        let mut start = Vec::new();
        while start.len() < length {
            match answer.chunk().await.map_err(|error| failed(&host, error))? {
                Some(chunk) => start.extend_from_slice(&chunk),
                None => break,
            }
        }
        Ok(start)
    }

    /// Requests an object of the repository, and logs in if the registry asks for a login.
    async fn get(
        &mut self,
        path: &str,
        headers: &[(HeaderName, HeaderValue)],
    ) -> Result<Response, RegistryError> {
        let repository = &self.image.reference.repository;
        let host = host_of(&self.base);
        let object = format!("{repository}/{path}");
        let url = self.base.join(&format!("v2/{object}"));
        let url = url.map_err(|_| RegistryError::NoHost { host: host.clone() })?;
        let mut answer = self.ask(url.clone(), headers).await?;
        let is_own = answer.url().origin() == self.base.origin();
        // A server that the registry redirects to gets no secret.
        if answer.status() == StatusCode::UNAUTHORIZED && self.login.is_none() && is_own {
            self.login = Some(self.log_in(answer.headers()).await?);
            answer = self.ask(url, headers).await?;
        }
        let host = host_of(answer.url());
        match answer.status() {
            StatusCode::OK | StatusCode::PARTIAL_CONTENT => Ok(answer),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(self.login_refused(host)),
            StatusCode::NOT_FOUND => Err(RegistryError::Missing { host, object }),
            status => Err(RegistryError::Status { host, status: status.as_u16() }),
        }
    }

    /// Sends a request with the login, if there is one. A redirect to another host drops the login.
    async fn ask(
        &self,
        url: Url,
        headers: &[(HeaderName, HeaderValue)],
    ) -> Result<Response, RegistryError> {
        let headers = HeaderMap::from_iter(headers.iter().cloned());
        let request = |client: &Client, url: Url| client.get(url).headers(headers);
        match &self.login {
            None => self.send(url, request).await,
            Some(Login::Basic) => {
                self.send(url, |client, url| self.with_secret(request(client, url))).await
            }
            Some(Login::Token(token)) => {
                self.send(url, |client, url| request(client, url).bearer_auth(token)).await
            }
        }
    }

    async fn send(
        &self,
        url: Url,
        request: impl FnOnce(&Client, Url) -> RequestBuilder,
    ) -> Result<Response, RegistryError> {
        self.allowed.check(url.host_str().unwrap_or_default()).map_err(RegistryError::Host)?;
        let host = host_of(&url);
        request(&self.client, url).send().await.map_err(|error| failed(&host, error))
    }

    /// Returns the login that the registry asks for in an answer with these headers.
    async fn log_in(&self, headers: &HeaderMap) -> Result<Login, RegistryError> {
        let host = host_of(&self.base);
        match Challenge::of(headers) {
            Some(Challenge::Token { realm, service }) => {
                self.token(&realm, service.as_deref()).await.map(Login::Token)
            }
            Some(Challenge::Basic) if self.image.secret.is_some() => Ok(Login::Basic),
            Some(Challenge::Basic) => Err(RegistryError::NoSecret { host }),
            None => Err(RegistryError::UnknownLogin { host }),
        }
    }

    /// Gets a token, only for reading this repository, from the token server at `realm`.
    async fn token(&self, realm: &str, service: Option<&str>) -> Result<String, RegistryError> {
        let parsed = Url::parse(realm).ok().filter(|url| url.scheme() == "https");
        let mut url =
            parsed.ok_or_else(|| RegistryError::UnknownLogin { host: host_of(&self.base) })?;
        let host = host_of(&url);
        let scope = format!("repository:{}:pull", self.image.reference.repository);
        url.query_pairs_mut().extend_pairs(service.map(|name| ("service", name)));
        url.query_pairs_mut().append_pair("scope", &scope);
        let answer = self.send(url, |client, url| self.with_secret(client.get(url))).await?;
        match answer.status() {
            StatusCode::OK => {}
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                return Err(self.login_refused(host));
            }
            status => return Err(RegistryError::Status { host, status: status.as_u16() }),
        }
        let bytes = body_of(answer, LARGEST_TOKEN_ANSWER).await?;
        let token = serde_json::from_slice::<TokenAnswer>(&bytes).ok();
        let token = token.and_then(|it| it.token.or(it.access_token));
        let is_legal =
            |token: &String| !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
        token.filter(is_legal).ok_or(RegistryError::NoToken { host })
    }

    fn with_secret(&self, request: RequestBuilder) -> RequestBuilder {
        match &self.image.secret {
            None => request,
            Some(secret) => request.basic_auth(&secret.user, Some(&secret.password)),
        }
    }

    fn login_refused(&self, host: String) -> RegistryError {
        match &self.image.secret {
            None => RegistryError::NoSecret { host },
            Some(secret) => RegistryError::WrongSecret { host, object: secret.object },
        }
    }
}

/// The answer of a token server. `access_token` is the name in OAuth 2.0, which some servers use.
#[derive(Deserialize)]
struct TokenAnswer {
    token: Option<String>,
    access_token: Option<String>,
}

fn client(allowed: &AllowedHosts, ca: Option<&str>) -> Result<Client, reqwest::Error> {
    let authorities = ca.map(|pem| Certificate::from_pem_bundle(pem.as_bytes())).transpose()?;
    image_client(allowed)
        .redirect(redirects(allowed.clone()))
        .https_only(true)
        .connect_timeout(TIMEOUT)
        .read_timeout(TIMEOUT)
        .tls_certs_merge(authorities.unwrap_or_default())
        .build()
}

/// Follows redirects, as registries use them for blobs, to allowed hosts over TLS only.
fn redirects(allowed: AllowedHosts) -> Policy {
    Policy::custom(move |attempt| {
        let host = attempt.url().host_str().unwrap_or_default();
        match allowed.check(host) {
            Err(why) => attempt.error(why),
            Ok(()) if attempt.url().scheme() != "https" => attempt.error("no TLS"),
            Ok(()) if attempt.previous().len() > MOST_REDIRECTS => {
                attempt.error("too many redirects")
            }
            Ok(()) => attempt.follow(),
        }
    })
}

/// Classifies a failed request. The URL is left out of every message: at a storage server, its query may be a credential.
fn failed(host: &str, error: reqwest::Error) -> RegistryError {
    let (host, error) = (host.to_owned(), error.without_url());
    if let Some(refused) = find_cause::<HostRefused>(&error) {
        return RegistryError::Host(refused.clone());
    }
    let cause = chain(&error);
    match find_cause::<rustls::Error>(&error) {
        Some(rustls::Error::InvalidCertificate(_)) => RegistryError::Untrusted { host, cause },
        Some(_) => RegistryError::NoTls { host, cause },
        None if error.is_redirect() => RegistryError::Redirect { host, cause },
        None => RegistryError::Unreachable { host, cause },
    }
}

/// Reads the body of an answer up to a limit.
async fn body_of(mut answer: Response, limit: usize) -> Result<Vec<u8>, RegistryError> {
    let host = host_of(answer.url());
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|error| failed(&host, error))? {
        if body.len() + chunk.len() > limit {
            return Err(RegistryError::TooLarge { host, limit });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

fn has_digest(bytes: &[u8], digest: &OciDigest) -> bool {
    let found = match digest.algorithm() {
        ChecksumAlgorithm::Sha256 => hex::encode(Sha256::digest(bytes)),
        ChecksumAlgorithm::Sha512 => hex::encode(Sha512::digest(bytes)),
    };
    found == digest.hex()
}

/// Returns the host of a URL, with its port, for messages.
fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

#[cfg(test)]
mod tests;
