//! Sends a call, with retries where they are useful.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Method, RequestBuilder, Response};
use secrecy::ExposeSecret;
use spans::{Span, SpanKind};
use tokio::time::{Instant, sleep, timeout_at};
use tracing::debug;
use url::Url;

use super::answer::{Answer, ReadError};
use super::behalf::request_id;
use super::call::{Body, Call, CallToken};
use super::clients::no_answer;
use super::patience::{self, Failure};
use super::token::Token;
use crate::error::{CloudError, Refusal, Request, Result};
use crate::refusal;
use crate::service::Service;

const X_AUTH_TOKEN: HeaderName = HeaderName::from_static("x-auth-token");
/// The id that is sent as the "global" id, so that a service's logs contain a request whose answer was lost: the id of the request on whose
/// behalf the call is made, or a new id.
const X_OPENSTACK_REQUEST_ID: HeaderName = HeaderName::from_static("x-openstack-request-id");
const OPENSTACK_API_VERSION: HeaderName = HeaderName::from_static("openstack-api-version");

/// The limit for an upload or a download.
const LONGEST_TRANSFER: Duration = Duration::from_secs(12 * 3600);

impl Call<'_> {
    /// Sends the call, with retries where they are useful and harmless; returns the answer if its status is a success.
    pub(crate) async fn send(self) -> Result<Answer> {
        // Token requests use their own semaphore: the caller may already hold a service permit, and waiting for another would deadlock.
        let _leave = match &self.speaker {
            CallToken::Session | CallToken::Bearer(_) | CallToken::Another(_) => {
                self.session.service_permit(self.service).await
            }
            CallToken::Anonymous => self.session.token_permit().await,
        };
        // The future of sending takes KiB, and thousands may wait for a permit, so it is boxed and created after the wait.
        let call = self.session.shared.observer.begin(self.service);
        let mut span = self.span();
        let answer = Box::pin(span.run(self.send_now())).await;
        call.ended(answer.as_ref().err());
        match &answer {
            Ok(answer) => span.set("http.response.status_code", answer.status.as_u16()),
            Err(error) => span.fail(error.kind()),
        }
        answer
    }

    /// Begins the span of the call with its retries. The path is no attribute, because it may have names of users.
    fn span(&self) -> Span {
        let mut span =
            Span::child(SpanKind::Client, || format!("{} {}", self.method, self.service));
        if span.is_recorded() {
            span.set("http.request.method", self.method.to_string());
            span.set("bedplate.cloud.service", self.service.as_str());
        }
        span
    }

    async fn send_now(mut self) -> Result<Answer> {
        let patience = self.session.config().patience;
        let deadline = Instant::now() + patience.call_timeout;
        let (mut attempt, mut renewed) = (1, false);
        loop {
            let token = match &self.speaker {
                CallToken::Session | CallToken::Another(_) => {
                    Some(self.token_until(deadline).await?)
                }
                CallToken::Bearer(_) | CallToken::Anonymous => None,
            };
            let failure = match self.attempt(token.as_deref(), deadline).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            if let (CloudError::Unauthorized(_), Some(token)) = (&failure.error, &token)
                && matches!(self.speaker, CallToken::Session)
                && !renewed
            {
                renewed = true;
                self.session.forget(token).await;
                debug!("the {} service does not take our token any more", self.service);
                if !matches!(self.body, Body::Spent) {
                    continue;
                }
            }
            let repeat = failure.may_repeat(self.repeat) && !matches!(self.body, Body::Spent);
            let asked = failure.error.retry_after();
            let wait = asked.unwrap_or_else(|| patience::pause(&patience, attempt));
            if !repeat || attempt >= patience.attempts || Instant::now() + wait >= deadline {
                return Err(failure.error);
            }
            debug!("asking again in {} ms, for {}", wait.as_millis(), failure.error);
            attempt += 1;
            sleep(wait).await;
        }
    }

    async fn token_until(&self, deadline: Instant) -> Result<Arc<Token>> {
        timeout_at(deadline, self.session.token()).await.unwrap_or_else(|_| {
            let path = self.session.keystone().path().to_owned() + "/auth/tokens";
            let request = Request { method: Method::POST, path, id: "none".to_owned() };
            let reason = "no token in the time that the call has".to_owned();
            Err(CloudError::Unreachable { service: Service::Identity, request, reason })
        })
    }

    async fn attempt(
        &mut self,
        token: Option<&Token>,
        deadline: Instant,
    ) -> Result<Answer, Failure> {
        let timeout = self.timeout(deadline);
        let (response, sent) = self.respond(token, timeout).await?;
        let answer = match Answer::read(sent.service, sent.request.clone(), response).await {
            Ok(answer) => answer,
            Err(ReadError::Broken(error)) => {
                return Err(Failure { unsent: false, ..sent.lost(&error) });
            }
            Err(ReadError::TooLarge(error)) => return Err(Failure { error, unsent: false }),
        };
        if answer.status.is_success() {
            return Ok(answer);
        }
        Err(Failure { error: refused(answer), unsent: false })
    }

    /// Sends the call once, and returns the answer before its body is read, whatever its status.
    async fn respond(
        &mut self,
        token: Option<&Token>,
        timeout: Duration,
    ) -> Result<(Response, SentCall), Failure> {
        let sure = |error| Failure { error, unsent: true };
        let url = self.url(token).map_err(sure)?;
        let request = Request {
            method: self.method.clone(),
            path: url.path().chars().take(200).collect(),
            id: request_id().unwrap_or_else(|| format!("req-{}", uuid::Uuid::new_v4())),
        };
        let host = url.host_str().unwrap_or_default().to_owned();
        let builder = self.session.client().request(self.method.clone(), url).timeout(timeout);
        let builder = self.with_headers(builder, token, &request).map_err(sure)?;
        let builder = self.with_body(builder);
        let sent = SentCall { service: self.service, host, request, timeout };
        let response = builder.send().await.map_err(|error| sent.lost(&error))?;
        Ok((response, sent))
    }

    /// Sends a call whose answer is read as a stream, and returns the answer before its body is read. The call has one attempt, and another
    /// one if the service refuses the token. The limit of concurrent calls covers it until then.
    pub(crate) async fn open(mut self) -> Result<Response> {
        let _leave = self.session.service_permit(self.service).await;
        let deadline = Instant::now() + self.session.config().patience.call_timeout;
        let call = self.session.shared.observer.begin(self.service);
        let opened = self.open_until(deadline).await;
        call.ended(opened.as_ref().err());
        opened
    }

    async fn open_until(&mut self, deadline: Instant) -> Result<Response> {
        let token = self.token_until(deadline).await?;
        match self.open_with(&token).await {
            Err(CloudError::Unauthorized(_)) => {
                self.session.forget(&token).await;
                let token = self.token_until(deadline).await?;
                self.open_with(&token).await
            }
            opened => opened,
        }
    }

    async fn open_with(&mut self, token: &Token) -> Result<Response> {
        let opened = self.respond(Some(token), LONGEST_TRANSFER).await;
        let (response, sent) = opened.map_err(|failure| failure.error)?;
        if response.status().is_success() {
            return Ok(response);
        }
        match Answer::read(sent.service, sent.request.clone(), response).await {
            Ok(answer) => Err(refused(answer)),
            Err(ReadError::Broken(error)) => Err(sent.lost(&error).error),
            Err(ReadError::TooLarge(error)) => Err(error),
        }
    }

    fn timeout(&self, deadline: Instant) -> Duration {
        if matches!(self.body, Body::Stream(_)) {
            // The duration of an upload depends on the image; a dead connection is ended by the client's own timeouts.
            return LONGEST_TRANSFER;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        left.min(self.session.config().patience.attempt_timeout)
    }

    fn with_headers(
        &self,
        mut builder: RequestBuilder,
        token: Option<&Token>,
        request: &Request,
    ) -> Result<RequestBuilder> {
        builder = builder.header(ACCEPT, "application/json");
        builder = builder.header(X_OPENSTACK_REQUEST_ID, &request.id);
        for (name, value) in spans::current_headers() {
            builder = builder.header(name, value);
        }
        if let Some(version) = self.microversion {
            let name = self.service.microversion_name();
            builder = builder.header(OPENSTACK_API_VERSION, format!("{name} {version}"));
        }
        let speaker = match &self.speaker {
            CallToken::Session => token.map(|token| &token.secret),
            CallToken::Bearer(own) | CallToken::Another(own) => Some(own),
            CallToken::Anonymous => None,
        };
        let own = self.header.as_ref().map(|(name, value)| (name.clone(), value));
        for (name, secret) in speaker.map(|token| (X_AUTH_TOKEN, token)).into_iter().chain(own) {
            let mut value = HeaderValue::from_str(secret.expose_secret()).map_err(|_| {
                CloudError::Malformed {
                    service: Service::Identity,
                    request: request.clone(),
                    reason: format!("{name} cannot be sent in a header"),
                }
            })?;
            value.set_sensitive(true);
            builder = builder.header(name, value);
        }
        Ok(builder)
    }

    fn with_body(&mut self, builder: RequestBuilder) -> RequestBuilder {
        match &self.body {
            // Some proxies refuse a PUT without a length (RFC 9110 §8.6).
            Body::None if self.method == Method::PUT => builder.header(CONTENT_LENGTH, "0"),
            Body::None | Body::Spent => builder,
            Body::Json(value) => builder.json(value),
            Body::Typed(kind, value) => builder.header(CONTENT_TYPE, *kind).body(value.to_string()),
            Body::Stream(_) => {
                let builder = builder.header(CONTENT_TYPE, "application/octet-stream");
                match std::mem::replace(&mut self.body, Body::Spent) {
                    Body::Stream(stream) => builder.body(stream),
                    Body::None | Body::Spent | Body::Json(_) | Body::Typed(..) => builder,
                }
            }
        }
    }

    fn url(&self, token: Option<&Token>) -> Result<Url> {
        let service = self.service;
        let invalid =
            |text: &str| CloudError::InvalidId { service, text: text.chars().take(64).collect() };
        // An empty id would list all objects instead of one, and two dots would leave the path.
        let bad = self.path.iter().find(|it| matches!(**it, "" | "." | "..") || it.contains('/'));
        if let Some(bad) = bad {
            return Err(invalid(bad));
        }
        let mut url = match token {
            Some(token) => self.session.endpoint_by(token, service)?,
            None => self.session.keystone(),
        };
        let whole = url.to_string();
        url.path_segments_mut().map_err(|()| invalid(&whole))?.pop_if_empty().extend(&self.path);
        if !self.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&self.query);
        }
        Ok(url)
    }
}

/// A call that was sent, as the error of a lost connection describes it.
struct SentCall {
    service: Service,
    host: String,
    request: Request,
    timeout: Duration,
}

impl SentCall {
    fn lost(&self, error: &reqwest::Error) -> Failure {
        Failure {
            unsent: error.is_connect(),
            error: no_answer(self.service, &self.host, &self.request, self.timeout, error),
        }
    }
}

fn refused(answer: Answer) -> CloudError {
    let wait = answer.header(RETRY_AFTER.as_str());
    let wait = wait.and_then(|raw| patience::retry_after(raw, Timestamp::now()));
    let Answer { service, request, status, body, .. } = answer;
    let message = String::new();
    refusal::error(Refusal { service, request, status, message }, &body, wait)
}
