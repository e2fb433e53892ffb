//! One call, as the functions of a service build it up.

use reqwest::Method;
use reqwest::header::HeaderName;
use secrecy::SecretString;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Session;
use super::patience::Repeat;
use crate::error::{CloudError, gone_is_fine, if_found};
use crate::service::Service;

/// A call that is not yet sent.
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
    pub(super) speaker: Speaker,
    pub(super) repeat: Repeat,
}

/// Whose token is sent along.
pub(super) enum Speaker {
    /// The session's, and a new one of its own where that is refused.
    Session,
    /// This one, come what may.
    Bearer(SecretString),
    /// None: for getting one.
    Nobody,
}

/// What is sent.
pub(crate) enum Body {
    None,
    Json(Value),
    /// A JSON document of another type than `application/json`.
    Typed(&'static str, Value),
    /// Bytes as they come. They come once, so such a call has one attempt.
    Stream(reqwest::Body),
    /// What a stream leaves behind.
    Spent,
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
            speaker: Speaker::Session,
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

    /// A header whose value is secret.
    pub(crate) fn secret_header(mut self, name: HeaderName, value: SecretString) -> Self {
        self.header = Some((name, value));
        self
    }

    /// Sent without a token.
    pub(super) fn anonymous(mut self) -> Self {
        self.speaker = Speaker::Nobody;
        self
    }

    /// Sent with this token and no other.
    pub(super) fn bearing(mut self, token: SecretString) -> Self {
        self.speaker = Speaker::Bearer(token);
        self
    }

    /// May be sent twice although its method does not say so.
    pub(crate) fn repeatable(mut self) -> Self {
        self.repeat = Repeat::Safe;
        self
    }

    /// Sends it, and gives what the answer has under `key`.
    pub(crate) async fn under<T: DeserializeOwned>(self, key: &str) -> Result<T, CloudError> {
        self.send().await?.under(key)
    }

    /// The same; `None` if there is no such thing.
    pub(crate) async fn find_under<T: DeserializeOwned>(
        self,
        key: &str,
    ) -> Result<Option<T>, CloudError> {
        if_found(self.under(key).await)
    }

    /// Sends it; what the answer says beside its status is of no interest.
    pub(crate) async fn done(self) -> Result<(), CloudError> {
        self.send().await.map(drop)
    }

    /// The same, for a delete: that the thing is gone already is what was wanted.
    pub(crate) async fn done_or_gone(self) -> Result<(), CloudError> {
        gone_is_fine(self.done().await)
    }

    /// The same call with another query: another page. Only calls without a body have pages.
    pub(crate) fn page(&self, query: Vec<(String, String)>) -> Call<'c> {
        let mut page = Call::new(self.session, self.service, self.method.clone(), &self.path);
        (page.query, page.microversion) = (query, self.microversion);
        page
    }

    /// What is asked for after the `?`.
    pub(crate) fn asked(&self) -> Vec<(String, String)> {
        self.query.clone()
    }
}
