//! One call, as the functions of a resource build it up.

use reqwest::Method;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Client;
use crate::error::{KubernetesError, gone_is_fine, if_found};

/// A call that is not yet sent.
#[must_use]
pub(crate) struct Call<'c> {
    pub(super) client: &'c Client,
    pub(super) method: Method,
    pub(super) path: Vec<&'c str>,
    pub(super) query: Vec<(&'static str, String)>,
    pub(super) body: Body,
}

/// What is sent.
pub(crate) enum Body {
    None,
    Json(Value),
    /// RFC 7386: what is named is set, null removes.
    Merge(Value),
    /// Server-side apply. JSON is YAML.
    Apply(Value),
}

impl<'c> Call<'c> {
    pub(super) fn new(client: &'c Client, method: Method, path: &[&'c str]) -> Self {
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

    /// Sends it, and gives the answer.
    pub(crate) async fn json<T: DeserializeOwned>(self) -> Result<T, KubernetesError> {
        self.send().await?.json()
    }

    /// The same; `None` if there is no such thing.
    pub(crate) async fn find<T: DeserializeOwned>(self) -> Result<Option<T>, KubernetesError> {
        if_found(self.json().await)
    }

    /// Sends it; what the answer says beside its status is of no interest.
    pub(crate) async fn done(self) -> Result<(), KubernetesError> {
        self.send().await.map(drop)
    }

    /// The same, for a delete: that the thing is gone already is what was wanted.
    pub(crate) async fn done_or_gone(self) -> Result<(), KubernetesError> {
        gone_is_fine(self.done().await)
    }
}
