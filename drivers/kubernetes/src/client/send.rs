//! Sends a call once. There is no retry: the caller's next turn is the retry.

use std::error::Error;

use jiff::Timestamp;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HOST, RETRY_AFTER};
use url::Url;

use super::answer::{Answer, ReadError};
use super::call::{Body, Call};
use crate::error::{KubernetesError, Refusal, Request, Result};
use crate::{lenient, refusal};

impl Call<'_> {
    /// Sends the call; returns the answer if its status is a success.
    pub(crate) async fn send(self) -> Result<Answer> {
        let url = self.url()?;
        let path = url.path().chars().take(300).collect();
        let request = Request { method: self.method.clone(), path };
        let shared = &self.client.shared;
        let mut builder = shared.http.request(self.method.clone(), url);
        builder = builder.header(ACCEPT, "application/json, */*");
        builder = builder.header(HOST, shared.endpoint.to_string());
        let (kind, body) = match &self.body {
            Body::None => ("", None),
            Body::Json(value) => ("application/json", Some(value)),
            Body::Merge(value) => ("application/merge-patch+json", Some(value)),
            Body::Apply(value) => ("application/apply-patch+yaml", Some(value)),
        };
        if let Some(body) = body {
            builder = builder.header(CONTENT_TYPE, kind).body(body.to_string());
        }
        let response =
            builder.send().await.map_err(|error| self.no_answer(request.clone(), &error))?;
        let answer = match Answer::read(request.clone(), response).await {
            Ok(answer) => answer,
            Err(ReadError::Broken(error)) => return Err(self.no_answer(request, &error)),
            Err(ReadError::TooLarge(error)) => return Err(error),
        };
        if answer.status.is_success() { Ok(answer) } else { Err(refused(answer)) }
    }

    fn url(&self) -> Result<Url> {
        let invalid = |text: &str| KubernetesError::InvalidName {
            text: text.chars().take(64).collect(),
            rule: "be part of a path",
        };
        // An empty name would list all objects instead of one, and two dots would leave the path.
        let bad = self.path.iter().find(|it| matches!(**it, "" | "." | "..") || it.contains('/'));
        if let Some(bad) = bad {
            return Err(invalid(bad));
        }
        let mut url = self.client.shared.base.clone();
        url.path_segments_mut().map_err(|()| invalid(""))?.pop_if_empty().extend(&self.path);
        if !self.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&self.query);
        }
        Ok(url)
    }

    /// Makes the error for a request that got no answer.
    fn no_answer(&self, request: Request, error: &reqwest::Error) -> KubernetesError {
        let shared = &self.client.shared;
        let endpoint = shared.endpoint.to_string();
        if error.is_timeout() {
            let limits = shared.timeouts;
            let limit = if error.is_connect() { limits.connect } else { limits.call };
            let reason = format!("none within {} s", limit.as_secs_f32());
            return KubernetesError::Unreachable { endpoint, request, reason };
        }
        let mut reason = None;
        let mut cause = error.source();
        while let Some(error) = cause {
            let io = error.downcast_ref::<std::io::Error>();
            // `io::Error::source` skips the wrapped error itself, so the wrapped error is looked at first.
            let wrapped = io.and_then(std::io::Error::get_ref).map(|wrapped| wrapped as _);
            // Other TLS errors come from a load balancer without a backend, or from a server that is shutting down.
            if let Some(tls @ rustls::Error::InvalidCertificate(_)) = error.downcast_ref() {
                return KubernetesError::Untrusted { endpoint, reason: tls.to_string() };
            }
            reason = Some(error.to_string());
            cause = wrapped.or_else(|| error.source());
        }
        let reason = reason.unwrap_or_else(|| "the request could not be sent".to_owned());
        KubernetesError::Unreachable { endpoint, request, reason }
    }
}

fn refused(answer: Answer) -> KubernetesError {
    let wait = answer.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let wait = wait.and_then(|raw| lenient::retry_after(raw, Timestamp::now()));
    let Answer { request, status, body, .. } = answer;
    refusal::error(Refusal::new(request, status), &body, wait)
}
