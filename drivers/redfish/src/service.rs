//! Requests to one BMC: one at a time, with a login, and limited in size and time.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bmc::{BmcError, Result};
use reqwest::header::{ACCEPT, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, IF_MATCH};
use reqwest::{Client, Method, RequestBuilder, StatusCode};
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use tokio::time::Instant;
use tracing::debug;
use url::Url;
use websocket::Socket;

use crate::answer::{self, Answer, LARGEST_BODY, ReadError, X_AUTH_TOKEN};
use crate::clients::Clients;
use crate::document::Document;
use crate::links::{Links, Root};
use crate::origin::Origin;
use crate::session::{LoginOutcome, OpenSessions, Session};
use crate::target::{Auth, Target, Trust};
use crate::unanswered::unreachable;
use crate::upload::Upload;

/// How long the task of a change is watched for a failure, if the change happens later than the answer.
pub(crate) const TASK_PATIENCE: Duration = Duration::from_secs(3);

/// The longest wait that a BMC's `Retry-After` can impose.
const LONGEST_QUIET: Duration = Duration::from_secs(120);

/// The size limit of an attribute registry. Registries of servers have up to 2 MiB.
const LARGEST_REGISTRY: usize = 8 * 1024 * 1024;

/// The timeout of an upload of an image.
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(1800);

const ODATA_VERSION: HeaderName = HeaderName::from_static("odata-version");

pub(crate) struct Service {
    pub(crate) origin: Origin,
    pub(crate) target: Target,
    clients: Arc<Clients>,
    /// The client of a pinned BMC, which other BMCs cannot use.
    pinned: OnceLock<Client>,
    ledger: OpenSessions,
    turn: tokio::sync::Mutex<RequestSlot>,
    links: Mutex<Links>,
}

/// The right to send the next request, with the login to use.
#[derive(Debug, Default)]
struct RequestSlot {
    login: Login,
    quiet_until: Option<Instant>,
}

#[derive(Debug, Default)]
enum Login {
    #[default]
    Out,
    Basic,
    Session(Session),
}

/// A request without its login.
struct Request {
    method: Method,
    url: Url,
    body: Option<Value>,
    if_match: Option<String>,
    /// The most bytes of the answer's body.
    largest: usize,
    after: ConnectionUse,
}

/// The fate of the connection after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionUse {
    /// The connection is kept for a while, because more requests follow soon.
    Keep,
    Close,
}

/// A resource as it was read, with the data needed to change it.
#[derive(Clone, Debug)]
pub(crate) struct Resource {
    pub(crate) url: Url,
    pub(crate) etag: Option<String>,
    pub(crate) body: Value,
}

impl Service {
    pub(crate) fn new(target: Target, clients: Arc<Clients>, ledger: OpenSessions) -> Self {
        Service {
            origin: Origin::of(&target.address),
            target,
            clients,
            pinned: OnceLock::new(),
            ledger,
            turn: tokio::sync::Mutex::default(),
            links: Mutex::default(),
        }
    }

    /// Reads a resource.
    pub(crate) async fn get(&self, url: &Url) -> Result<Resource> {
        let answer = self.fetch(url).await?;
        self.found(url, answer)
    }

    /// Reads a resource, and closes the connection.
    pub(crate) async fn get_and_close(&self, url: &Url) -> Result<Resource> {
        let answer = self.fetch_and_close(url).await?;
        self.found(url, answer)
    }

    fn found(&self, url: &Url, answer: Answer) -> Result<Resource> {
        if answer.status == StatusCode::NOT_FOUND {
            // A firmware update may have moved the resources that were discovered earlier.
            *self.links() = Links::default();
        }
        self.resource(url, answer)
    }

    /// Returns the resource in `answer`, if the status is a success.
    pub(crate) fn resource(&self, url: &Url, answer: Answer) -> Result<Resource> {
        let answer = answer.accepted(&self.origin.host())?;
        let body = answer.document()?;
        // DSP0266 §6.5: a service that sends no `ETag` header has the tag in the body.
        let etag = answer.etag.clone().or_else(|| body.text("@odata.etag"));
        Ok(Resource { url: url.clone(), etag, body })
    }

    /// Requests a resource, and returns the answer whatever its status.
    pub(crate) async fn fetch(&self, url: &Url) -> Result<Answer> {
        self.send(Request::get(url.clone())).await
    }

    /// Like [`Service::fetch`], and closes the connection.
    pub(crate) async fn fetch_and_close(&self, url: &Url) -> Result<Answer> {
        self.send(Request { after: ConnectionUse::Close, ..Request::get(url.clone()) }).await
    }

    /// Requests a resource that may be as large as an attribute registry.
    pub(crate) async fn fetch_large(&self, url: &Url) -> Result<Answer> {
        self.send(Request { largest: LARGEST_REGISTRY, ..Request::get(url.clone()) }).await
    }

    /// Calls an action, and returns the answer whatever its status.
    pub(crate) async fn post(&self, url: &Url, body: Value) -> Result<Answer> {
        let method = Method::POST;
        self.send(Request { method, body: Some(body), ..Request::get(url.clone()) }).await
    }

    /// Deletes a resource, and returns the answer whatever its status.
    pub(crate) async fn delete_resource(&self, url: &Url, body: Option<Value>) -> Result<Answer> {
        self.send(Request { method: Method::DELETE, body, ..Request::get(url.clone()) }).await
    }

    /// Changes `resource` unless it has changed since it was read. If it has, reads it again and retries once.
    pub(crate) async fn patch(&self, resource: &Resource, body: Value) -> Result<()> {
        let answer = self.accepted_patch(resource, body).await?;
        self.finish(answer).await
    }

    /// Like [`Service::patch`], for a change that takes effect at the next start of the machine: the task that some BMCs make of the change
    /// ends only then, so the task is watched for a failure for a short time only.
    pub(crate) async fn patch_for_next_start(
        &self,
        resource: &Resource,
        body: Value,
    ) -> Result<()> {
        let answer = self.accepted_patch(resource, body).await?;
        self.watch_for_next_start(answer).await
    }

    /// Watches for a short time whether an accepted change fails, which takes effect at the next start of the machine.
    pub(crate) async fn watch_for_next_start(&self, answer: Answer) -> Result<()> {
        self.watch(answer, TASK_PATIENCE).await.map(|_| ())
    }

    async fn accepted_patch(&self, resource: &Resource, body: Value) -> Result<Answer> {
        self.answer_to_patch(resource, body).await?.accepted(&self.origin.host())
    }

    /// Changes `resource` as [`Service::patch`] does, and returns the answer whatever its status.
    pub(crate) async fn answer_to_patch(&self, resource: &Resource, body: Value) -> Result<Answer> {
        let mut answer = self.patch_if(&resource.url, resource.etag.clone(), body.clone()).await?;
        if matches!(
            answer.status,
            StatusCode::PRECONDITION_FAILED | StatusCode::PRECONDITION_REQUIRED
        ) {
            // RFC 9110 §13.1.1: If-Match compares strongly, so a weak tag may never match.
            let fresh = self.get(&resource.url).await?;
            let strong = fresh.etag.map(|tag| tag.trim_start_matches("W/").to_owned());
            answer = self.patch_if(&resource.url, strong, body).await?;
        }
        Ok(answer)
    }

    async fn patch_if(&self, url: &Url, if_match: Option<String>, body: Value) -> Result<Answer> {
        let method = Method::PATCH;
        self.send(Request { method, body: Some(body), if_match, ..Request::get(url.clone()) }).await
    }

    /// The links that were discovered so far.
    pub(crate) fn links(&self) -> MutexGuard<'_, Links> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the service root, reading it if needed.
    pub(crate) async fn root(&self) -> Result<Arc<Root>> {
        let turn = self.turn.lock().await;
        turn.may_speak(&self.origin)?;
        self.read_root().await
    }

    /// Ends the session, so that the next request logs in.
    pub(crate) async fn log_out(&self) {
        self.turn.lock().await.login = Login::Out;
    }

    /// Waits for earlier requests to end, logs in if needed, and sends the request.
    async fn send(&self, ask: Request) -> Result<Answer> {
        let mut turn = self.turn.lock().await;
        turn.may_speak(&self.origin)?;
        if matches!(turn.login, Login::Out) {
            turn.login = self.log_in().await?;
        }
        let mut answer = self.exchange(&ask, &turn.login).await?;
        if answer.status == StatusCode::UNAUTHORIZED
            && let Login::Session(expired) = std::mem::take(&mut turn.login)
        {
            expired.forget();
            turn.login = self.log_in().await?;
            answer = self.exchange(&ask, &turn.login).await?;
        }
        turn.heed(&answer);
        Ok(answer)
    }

    /// Sends a body that cannot be sent twice. The caller has just read something, so the session is valid.
    pub(crate) async fn upload(&self, url: &Url, upload: Upload) -> Result<Answer> {
        let mut turn = self.turn.lock().await;
        turn.may_speak(&self.origin)?;
        if matches!(turn.login, Login::Out) {
            turn.login = self.log_in().await?;
        }
        let request = self
            .client()?
            .post(url.clone())
            .timeout(UPLOAD_TIMEOUT)
            .header(ACCEPT, "application/json")
            .header(ODATA_VERSION, "4.0")
            .header(CONTENT_TYPE, upload.content_type)
            .header(CONTENT_LENGTH, upload.length)
            .body(upload.body);
        let request = self.with_login(request, &turn.login);
        let name = answer::name(&Method::POST, url);
        let answer = self.answer_to(name, request, LARGEST_BODY, UPLOAD_TIMEOUT).await?;
        if answer.status == StatusCode::UNAUTHORIZED
            && let Login::Session(expired) = std::mem::take(&mut turn.login)
        {
            expired.forget();
            let reason = "it ended the session during the upload".to_owned();
            return Err(BmcError::Busy { host: self.origin.host(), reason });
        }
        turn.heed(&answer);
        Ok(answer)
    }

    /// Opens a WebSocket. The caller has just read something, so the session is valid.
    pub(crate) async fn open_socket(&self, url: &Url) -> Result<Socket> {
        let mut turn = self.turn.lock().await;
        turn.may_speak(&self.origin)?;
        if matches!(turn.login, Login::Out) {
            turn.login = self.log_in().await?;
        }
        let request = self.with_login(self.client()?.get(url.clone()), &turn.login);
        let (request, asked) = websocket::upgrade_request(request);
        let name = answer::name(&Method::GET, url);
        // A timeout of the request itself would also end the WebSocket.
        let sent = tokio::time::timeout(self.target.timeout, request.send()).await;
        let response = match sent {
            Ok(response) => {
                response.map_err(|source| unreachable(&self.origin, self.target.timeout, source))?
            }
            Err(_) => {
                let source = std::io::ErrorKind::TimedOut.into();
                return Err(BmcError::Unreachable { host: self.origin.host(), source });
            }
        };
        if websocket::is_open(&response) {
            let malformed = |why: websocket::UpgradeError| BmcError::Malformed {
                request: name,
                reason: why.to_string(),
            };
            return asked.open(response).await.map_err(malformed);
        }
        let answer =
            Answer::read(name, response, LARGEST_BODY).await.map_err(|unread| match unread {
                ReadError::Broken(source) => unreachable(&self.origin, self.target.timeout, source),
                ReadError::TooLarge(error) => error,
            })?;
        turn.heed(&answer);
        let answer = answer.accepted(&self.origin.host())?;
        Err(answer.malformed("it opens no WebSocket"))
    }

    async fn log_in(&self) -> Result<Login> {
        let host = self.origin.host();
        if self.target.auth == Auth::Basic {
            return Ok(Login::Basic);
        }
        let answer = match self.find_sessions().await? {
            Some(sessions) => Some(self.post_session(sessions).await?),
            None => None,
        };
        let outcome = answer.as_ref().map_or(LoginOutcome::Unavailable, LoginOutcome::of);
        match (outcome, self.target.auth) {
            (LoginOutcome::Opened, _) => self.hold_session(answer),
            (LoginOutcome::Rejected, _) => Err(BmcError::Unauthorized { host }),
            (LoginOutcome::Full, Auth::Session) => {
                Err(BmcError::Busy { host, reason: "every session slot is taken".to_owned() })
            }
            (LoginOutcome::Unavailable, Auth::Session) => {
                Err(BmcError::Unsupported { what: "open a session".to_owned() })
            }
            (LoginOutcome::Full | LoginOutcome::Unavailable, Auth::Auto | Auth::Basic) => {
                debug!("the BMC at {host} opens no session ({outcome:?}): using HTTP Basic");
                Ok(Login::Basic)
            }
        }
    }

    /// DSP0266 §13.3.4: the root links to the sessions, so that a client can log in without being logged in.
    async fn find_sessions(&self) -> Result<Option<Url>> {
        let root = self.read_root().await?;
        if let Some(sessions) = &root.sessions {
            return Ok(Some(sessions.clone()));
        }
        let Some(service) = root.session_service.clone() else { return Ok(None) };
        let answer = self.exchange(&Request::get(service), &Login::Basic).await?;
        if !answer.status.is_success() {
            return Ok(None);
        }
        let service = answer.document()?;
        service.link("Sessions").map(|link| self.origin.follow(link)).transpose()
    }

    async fn post_session(&self, url: Url) -> Result<Answer> {
        let account = json!({
            "UserName": self.target.username,
            "Password": self.target.password.expose_secret(),
        });
        let ask = Request { method: Method::POST, body: Some(account), ..Request::get(url) };
        self.exchange(&ask, &Login::Out).await
    }

    fn hold_session(&self, answer: Option<Answer>) -> Result<Login> {
        let opened = answer.and_then(|answer| Some((answer.token.clone()?, answer)));
        let Some((token, answer)) = opened else { return Ok(Login::Basic) };
        let body = answer.document().unwrap_or_default();
        // Some BMCs build the location with their own host name instead of the one we used.
        let reported = [answer.location.as_deref(), body.id()];
        let url = reported.into_iter().flatten().find_map(|link| self.origin.follow(link).ok());
        let client = self.client()?;
        let timeout = self.target.timeout;
        Ok(Login::Session(Session::open(&self.ledger, client, url, token, timeout)))
    }

    async fn read_root(&self) -> Result<Arc<Root>> {
        if let Some(root) = self.links().root.clone() {
            return Ok(root);
        }
        // DSP0266 §13.3.1: the root needs no login, but some BMCs demand one.
        let ask = Request::get(self.origin.root()?);
        let mut answer = self.exchange(&ask, &Login::Out).await?;
        if answer.status == StatusCode::UNAUTHORIZED {
            answer = self.exchange(&ask, &Login::Basic).await?;
        }
        let answer = answer.accepted(&self.origin.host())?;
        let root = Arc::new(Root::read(&answer.document()?, &self.origin));
        self.links().root = Some(root.clone());
        Ok(root)
    }

    /// Sends one request and reads its answer.
    async fn exchange(&self, ask: &Request, login: &Login) -> Result<Answer> {
        let mut request = self
            .client()?
            .request(ask.method.clone(), ask.url.clone())
            .timeout(self.target.timeout)
            .header(ACCEPT, "application/json")
            .header(ODATA_VERSION, "4.0");
        if let Some(body) = &ask.body {
            request = request.json(body);
        }
        if ask.after == ConnectionUse::Close {
            // RFC 9112 §9.6: the server closes the connection after the answer, and so does the client.
            request = request.header(CONNECTION, "close");
        }
        if let Some(etag) = &ask.if_match {
            request = request.header(IF_MATCH, etag);
        }
        let request = self.with_login(request, login);
        let name = answer::name(&ask.method, &ask.url);
        self.answer_to(name, request, ask.largest, self.target.timeout).await
    }

    fn with_login(&self, request: RequestBuilder, login: &Login) -> RequestBuilder {
        match login {
            Login::Out => request,
            Login::Basic => {
                let password = self.target.password.expose_secret();
                request.basic_auth(&self.target.username, Some(password))
            }
            Login::Session(session) => request.header(X_AUTH_TOKEN, session.token.clone()),
        }
    }

    /// Sends a request and reads its answer, up to a size limit. The timeout is only for the error.
    async fn answer_to(
        &self,
        name: String,
        request: RequestBuilder,
        largest: usize,
        timeout: Duration,
    ) -> Result<Answer> {
        let failed = |source| unreachable(&self.origin, timeout, source);
        let response = request.send().await.map_err(failed)?;
        let answer =
            Answer::read(name, response, largest).await.map_err(|unread| match unread {
                ReadError::Broken(source) => failed(source),
                ReadError::TooLarge(error) => error,
            })?;
        debug!("{} at {}: {}", answer.request, self.origin.host(), answer.status);
        Ok(answer)
    }

    fn client(&self) -> Result<Client> {
        // If the host is a name, the resolver checks its addresses.
        self.origin.check(self.clients.allowed())?;
        let client = match self.target.trust {
            Trust::Authorities => self.clients.authorities(),
            Trust::Pinned(pin) => self.clients.pinned(&self.pinned, pin),
            Trust::Unverified => self.clients.unverified(),
        };
        client.map_err(|source| unreachable(&self.origin, self.target.timeout, source))
    }
}

impl RequestSlot {
    /// Sends nothing for as long as a busy BMC asks.
    fn heed(&mut self, answer: &Answer) {
        let busy = [StatusCode::SERVICE_UNAVAILABLE, StatusCode::TOO_MANY_REQUESTS];
        if let Some(wait) = answer.retry_after.filter(|_| busy.contains(&answer.status)) {
            self.quiet_until = Some(Instant::now() + wait.min(LONGEST_QUIET));
        }
    }

    fn may_speak(&self, origin: &Origin) -> Result<()> {
        let left = self.quiet_until.and_then(|at| at.checked_duration_since(Instant::now()));
        match left.filter(|left| !left.is_zero()) {
            None => Ok(()),
            Some(left) => Err(BmcError::Busy {
                host: origin.host(),
                reason: format!(
                    "the BMC asked to send no requests for another {} s",
                    left.as_secs() + 1
                ),
            }),
        }
    }
}

impl Request {
    fn get(url: Url) -> Self {
        Request {
            method: Method::GET,
            url,
            body: None,
            if_match: None,
            largest: LARGEST_BODY,
            after: ConnectionUse::Keep,
        }
    }
}
