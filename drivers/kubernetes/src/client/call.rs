//! A call under construction.

use reqwest::Method;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Client;
use crate::error::{Result, if_found, ignore_not_found};

/// A call that is not sent yet.
#[must_use]
pub(crate) struct Call<'c> {
    pub(super) client: &'c Client,
    pub(super) method: Method,
    pub(super) path: Vec<&'c str>,
    pub(super) query: Vec<(&'static str, String)>,
    pub(super) body: Body,
}

pub(crate) enum Body {
    None,
    Json(Value),
    /// RFC 7386: sets the named fields; null removes a field.
    Merge(Value),
    /// Server-side apply, which takes YAML; JSON is valid YAML.
    Apply(Value),
}

impl Client {
    pub(crate) fn get<'c>(&'c self, path: &[&'c str]) -> Call<'c> {
        Call::new(self, Method::GET, path)
    }

    pub(crate) fn post<'c>(&'c self, path: &[&'c str]) -> Call<'c> {
        Call::new(self, Method::POST, path)
    }

    pub(crate) fn put<'c>(&'c self, path: &[&'c str]) -> Call<'c> {
        Call::new(self, Method::PUT, path)
    }

    pub(crate) fn patch<'c>(&'c self, path: &[&'c str]) -> Call<'c> {
        Call::new(self, Method::PATCH, path)
    }

    pub(crate) fn delete<'c>(&'c self, path: &[&'c str]) -> Call<'c> {
        Call::new(self, Method::DELETE, path)
    }
}

impl<'c> Call<'c> {
    fn new(client: &'c Client, method: Method, path: &[&'c str]) -> Self {
        Call { client, method, path: path.to_vec(), query: Vec::new(), body: Body::None }
    }

    pub(crate) fn body(mut self, body: Body) -> Self {
        self.body = body;
        self
    }

    pub(crate) fn query(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.query.push((name, value.into()));
        self
    }

    /// Sends the call and parses the answer.
    pub(crate) async fn json<T: DeserializeOwned>(self) -> Result<T> {
        self.send().await?.json()
    }

    /// Sends the call and parses the answer; `None` if the object does not exist.
    pub(crate) async fn find<T: DeserializeOwned>(self) -> Result<Option<T>> {
        if_found(self.json().await)
    }

    /// Sends the call and ignores the body of the answer.
    pub(crate) async fn done(self) -> Result<()> {
        self.send().await.map(drop)
    }

    /// Sends a delete; an object that is gone already is no error.
    pub(crate) async fn done_or_gone(self) -> Result<()> {
        ignore_not_found(self.done().await)
    }
}
