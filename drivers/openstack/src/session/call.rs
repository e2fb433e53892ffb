//! A call under construction.

use reqwest::Method;
use reqwest::header::HeaderName;
use secrecy::SecretString;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Session;
use super::patience::Repeat;
use crate::error::{Result, if_found, ignore_not_found};
use crate::service::Service;

/// A call that is not sent yet.
#[must_use]
pub(crate) struct Call<'c> {
    pub(super) session: &'c Session,
    pub(super) service: Service,
    pub(super) method: Method,
    pub(super) path: Vec<&'c str>,
    pub(super) query: Vec<(String, String)>,
    pub(super) body: Body,
    pub(super) microversion: Option<&'static str>,
    pub(super) header: Option<(HeaderName, SecretString)>,
    pub(super) speaker: CallToken,
    pub(super) repeat: Repeat,
}

/// The token that is sent with a call.
pub(super) enum CallToken {
    /// The session's token, replaced by a new one if a service refuses it.
    Session,
    /// This token, without replacement.
    Bearer(SecretString),
    /// The token of another user, without replacement. The session's catalogue has the endpoint.
    Another(SecretString),
    /// No token: the call requests one.
    Anonymous,
}

pub(crate) enum Body {
    None,
    Json(Value),
    /// A JSON document of another media type than `application/json`.
    Typed(&'static str, Value),
    /// A stream of bytes. It can be read only once, so such a call has one attempt.
    Stream(reqwest::Body),
    /// A stream that was read already.
    Spent,
}

impl Session {
    pub(crate) fn get<'c>(&'c self, service: Service, path: &[&'c str]) -> Call<'c> {
        Call::new(self, service, Method::GET, path)
    }

    pub(crate) fn post<'c>(&'c self, service: Service, path: &[&'c str], body: Value) -> Call<'c> {
        Call::new(self, service, Method::POST, path).body(Body::Json(body))
    }

    pub(crate) fn put<'c>(&'c self, service: Service, path: &[&'c str], body: Value) -> Call<'c> {
        Call::new(self, service, Method::PUT, path).body(Body::Json(body))
    }

    pub(crate) fn patch<'c>(&'c self, service: Service, path: &[&'c str], body: Value) -> Call<'c> {
        Call::new(self, service, Method::PATCH, path).body(Body::Json(body))
    }

    /// Deletes an object; an object that is gone already is no error.
    pub(crate) async fn delete(&self, service: Service, path: &[&str]) -> Result<()> {
        self.deleting(service, path).done_or_gone().await
    }

    pub(crate) fn deleting<'c>(&'c self, service: Service, path: &[&'c str]) -> Call<'c> {
        Call::new(self, service, Method::DELETE, path)
    }
}

impl<'c> Call<'c> {
    pub(super) fn new(
        session: &'c Session,
        service: Service,
        method: Method,
        path: &[&'c str],
    ) -> Self {
        Call {
            session,
            service,
            repeat: Repeat::of(&method),
            method,
            path: path.to_vec(),
            query: Vec::new(),
            body: Body::None,
            microversion: None,
            header: None,
            speaker: CallToken::Session,
        }
    }

    pub(crate) fn body(mut self, body: Body) -> Self {
        self.body = body;
        self
    }

    pub(crate) fn query(mut self, name: &str, value: impl Into<String>) -> Self {
        self.query.push((name.to_owned(), value.into()));
        self
    }

    pub(crate) fn queries(mut self, query: &[(&str, String)]) -> Self {
        self.query.extend(query.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        self
    }

    pub(crate) fn microversion(mut self, version: &'static str) -> Self {
        self.microversion = Some(version);
        self
    }

    /// Adds a header with a secret value.
    pub(crate) fn secret_header(mut self, name: HeaderName, value: SecretString) -> Self {
        self.header = Some((name, value));
        self
    }

    /// Sends the call without a token.
    pub(super) fn anonymous(mut self) -> Self {
        self.speaker = CallToken::Anonymous;
        self
    }

    /// Sends the call with this token and no other.
    pub(super) fn bearing(mut self, token: SecretString) -> Self {
        self.speaker = CallToken::Bearer(token);
        self
    }

    /// Sends the call with the token of another user, whose rights then apply.
    pub(crate) fn with_token_of_another(mut self, token: SecretString) -> Self {
        self.speaker = CallToken::Another(token);
        self
    }

    /// Permits retries although the method is not idempotent.
    pub(crate) fn repeatable(mut self) -> Self {
        self.repeat = Repeat::Safe;
        self
    }

    /// Sends the call and parses the value under `key`.
    pub(crate) async fn under<T: DeserializeOwned>(self, key: &str) -> Result<T> {
        self.send().await?.under(key)
    }

    /// Sends the call and parses the value under `key`; `None` if the object does not exist.
    pub(crate) async fn find_under<T: DeserializeOwned>(self, key: &str) -> Result<Option<T>> {
        if_found(self.under(key).await)
    }

    /// Sends the call and ignores the body of the answer.
    pub(crate) async fn done(self) -> Result<()> {
        self.send().await.map(drop)
    }

    /// Sends a delete; an object that is gone already is no error.
    pub(crate) async fn done_or_gone(self) -> Result<()> {
        ignore_not_found(self.done().await)
    }

    /// Returns the same call with another query, for another page. Only calls without a body have pages.
    pub(crate) fn page(&self, query: Vec<(String, String)>) -> Call<'c> {
        let mut page = Call::new(self.session, self.service, self.method.clone(), &self.path);
        (page.query, page.microversion) = (query, self.microversion);
        page
    }

    pub(crate) fn asked(&self) -> Vec<(String, String)> {
        self.query.clone()
    }
}
