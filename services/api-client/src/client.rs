//! The client of one service.

use std::time::Duration;

use openstack::CloudError;
use reqwest::header::{ACCEPT, HeaderValue};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use secrecy::ExposeSecret;
use serde::Serialize;
use serde::de::DeserializeOwned;
use url::Url;
use websocket::Socket;

use crate::credentials::Credentials;
use crate::error::ClientError;
use crate::refusal::Refusal;
use crate::service::Service;

/// The default timeout of a request.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// The maximum duration of an event stream. The caller opens a new stream afterwards.
const STREAM_TIMEOUT: Duration = Duration::from_hours(1);
/// The largest response that is read, in bytes.
const LARGEST_ANSWER: usize = 32 << 20;

/// A client of one service with the credentials of one caller.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    service: Service,
    base: Url,
    credentials: Credentials,
    microversion: Option<&'static str>,
    timeout: Duration,
}

impl Client {
    /// Makes a client of the service at `base`, which may end in `/v1` as catalogues write it. Sends no request.
    pub fn new(
        http: reqwest::Client,
        service: Service,
        base: Url,
        credentials: Credentials,
    ) -> Client {
        let (_, newest) = service.microversion();
        let microversion = Some(newest);
        Client { http, service, base, credentials, microversion, timeout: ANSWER_TIMEOUT }
    }

    /// Finds the service at `url`, or in the catalogue of the session's cloud. Calls go through the session's HTTP client.
    ///
    /// # Errors
    ///
    /// Returns the error of Keystone, or [`CloudError::NoEndpoint`] if the catalogue does not have the service.
    pub async fn by_keystone(
        session: openstack::Session,
        service: Service,
        url: Option<Url>,
    ) -> Result<Client, CloudError> {
        let base = match url {
            Some(url) => url,
            None => session.endpoint(service.in_catalogues()).await?,
        };
        let http = session.client().clone();
        Ok(Client::new(http, service, base, Credentials::Keystone(session)))
    }

    /// Changes the timeout of requests.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Client {
        Client { timeout, ..self }
    }

    /// Changes the requested microversion. `None` requests none, and the service answers as in its lowest one.
    #[must_use]
    pub fn with_microversion(self, microversion: Option<&'static str>) -> Client {
        Client { microversion, ..self }
    }

    /// Returns the service that this client calls.
    pub fn service(&self) -> Service {
        self.service
    }

    /// Returns the URL of the service.
    pub fn base(&self) -> &Url {
        &self.base
    }

    /// Returns the credentials of the caller.
    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// Returns the URL of a path of the API.
    ///
    /// # Errors
    ///
    /// Returns an error if the path cannot be part of a URL.
    pub fn url(&self, path: &str) -> Result<Url, ClientError> {
        let base = self.base.as_str().trim_end_matches('/').trim_end_matches("/v1");
        let url = Url::parse(&format!("{base}{path}"));
        url.map_err(|source| ClientError::InvalidPath { path: path.to_owned(), source })
    }

    /// Sends a `GET`.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.send(self.request(Method::GET, path).await?).await
    }

    /// Sends a `GET`. Returns `None` if the resource does not exist.
    pub async fn find<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>, ClientError> {
        match self.get(path).await {
            Ok(found) => Ok(Some(found)),
            Err(why) if why.status() == Some(StatusCode::NOT_FOUND) => Ok(None),
            Err(why) => Err(why),
        }
    }

    /// Sends a `GET` and returns the response as text.
    pub async fn text(&self, path: &str) -> Result<String, ClientError> {
        let response = self.respond(self.request(Method::GET, path).await?).await?;
        let body = self.body(response).await?;
        String::from_utf8(body).map_err(|source| ClientError::NotText { source })
    }

    /// Sends a `POST` with a JSON body.
    pub async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &(impl Serialize + ?Sized),
    ) -> Result<T, ClientError> {
        self.send(self.request(Method::POST, path).await?.json(body)).await
    }

    /// Sends a `PUT` with a JSON body.
    pub async fn put<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &(impl Serialize + ?Sized),
    ) -> Result<T, ClientError> {
        self.send(self.request(Method::PUT, path).await?.json(body)).await
    }

    /// Sends a `PATCH` with a JSON body.
    pub async fn patch<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &(impl Serialize + ?Sized),
    ) -> Result<T, ClientError> {
        self.send(self.request(Method::PATCH, path).await?.json(body)).await
    }

    /// Sends a `DELETE` without a body.
    pub async fn delete<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.send(self.request(Method::DELETE, path).await?).await
    }

    /// Makes a request with the credentials, the microversion and the timeout of this client.
    pub async fn request(&self, method: Method, path: &str) -> Result<RequestBuilder, ClientError> {
        let mut request = self.http.request(method, self.url(path)?).timeout(self.timeout);
        if let Some(version) = self.microversion {
            let (header, _) = self.service.microversion();
            request = request.header(header, version);
        }
        Ok(match &self.credentials {
            Credentials::Anonymous => request,
            Credentials::Password(user, password) => {
                request.basic_auth(user, Some(password.expose_secret()))
            }
            Credentials::Token(token) => {
                request.header("X-Auth-Token", header(token.expose_secret())?)
            }
            Credentials::Keystone(session) => {
                let token = session.bearer().await;
                let token = token.map_err(|source| ClientError::NoToken { source })?;
                request.header("X-Auth-Token", header(token.expose_secret())?)
            }
        })
    }

    /// Sends a request and parses the response as JSON. An empty response counts as `null`.
    pub async fn send<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
    ) -> Result<T, ClientError> {
        let request = request.header(ACCEPT, "application/json");
        let request = spans::current_headers()
            .into_iter()
            .fold(request, |request, (name, value)| request.header(name, value));
        let response = self.respond(request).await?;
        let body = self.body(response).await?;
        let body = if body.is_empty() { b"null" } else { &body[..] };
        serde_json::from_slice(body).map_err(ClientError::of_json)
    }

    /// Sends a request. Returns a refusal as an error, and the body unread.
    pub async fn respond(&self, request: RequestBuilder) -> Result<Response, ClientError> {
        let response = self.exchange(request).await?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(self.refusal(response).await)
    }

    /// Sends a request, and returns a refusal like any other answer.
    pub async fn exchange(&self, request: RequestBuilder) -> Result<Response, ClientError> {
        request.send().await.map_err(|source| self.unreachable(source))
    }

    /// Opens a WebSocket.
    pub async fn socket(&self, path: &str) -> Result<Socket, ClientError> {
        let (request, asked) = websocket::upgrade_request(self.request(Method::GET, path).await?);
        let response = self.exchange(request).await?;
        if websocket::is_open(&response) || response.status().is_success() {
            return asked.open(response).await.map_err(Into::into);
        }
        Err(self.refusal(response).await)
    }

    /// Opens an event stream that starts after the event `last`.
    pub async fn follow(&self, path: &str, last: Option<&str>) -> Result<Response, ClientError> {
        let mut request = self.request(Method::GET, path).await?.timeout(STREAM_TIMEOUT);
        request = request.header(ACCEPT, "text/event-stream");
        if let Some(last) = last {
            request = request.header("Last-Event-ID", last);
        }
        self.respond(request).await
    }

    async fn refusal(&self, response: Response) -> ClientError {
        let (status, path) = (response.status(), response.url().path().to_owned());
        let headers = response.headers().clone();
        match self.body(response).await {
            Ok(body) => ClientError::Refused(Box::new(Refusal::new(status, path, &headers, &body))),
            Err(why) => why,
        }
    }

    /// Reads the body of an answer.
    pub async fn body(&self, mut response: Response) -> Result<Vec<u8>, ClientError> {
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|source| self.unreachable(source))? {
            if body.len() + chunk.len() > LARGEST_ANSWER {
                return Err(ClientError::TooLarge);
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    fn unreachable(&self, source: reqwest::Error) -> ClientError {
        ClientError::Unreachable { base: self.base.clone(), source }
    }
}

fn header(token: &str) -> Result<HeaderValue, ClientError> {
    let mut token = HeaderValue::from_str(token).map_err(|_| ClientError::InvalidToken)?;
    token.set_sensitive(true);
    Ok(token)
}
