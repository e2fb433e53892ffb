//! The client through which every call goes.

mod answer;
mod call;
mod send;
mod tls;

use std::fmt;
use std::sync::Arc;

use reqwest::Method;
use url::Url;

use crate::access::{Access, AccessError, Endpoint, Timeouts};
use crate::apply::Kinds;

pub(crate) use call::{Body, Call};

/// A client of a cluster's API with one identity.
///
/// Cheap to clone; clones share connections and the cached discovery.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

struct Shared {
    http: reqwest::Client,
    endpoint: Endpoint,
    base: Url,
    timeouts: Timeouts,
    kinds: Kinds,
}

impl Client {
    /// Makes a client for the API of `access` without sending a request.
    pub fn new(access: &Access) -> Result<Client, AccessError> {
        let endpoint = access.endpoint.clone();
        let base = tls::base(access)?;
        let http = tls::http(access)?;
        let (timeouts, kinds) = (access.timeouts, Kinds::default());
        Ok(Client { shared: Arc::new(Shared { http, endpoint, base, timeouts, kinds }) })
    }

    /// The host name and port of the API.
    pub fn endpoint(&self) -> &Endpoint {
        &self.shared.endpoint
    }

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

    pub(crate) fn kinds(&self) -> &Kinds {
        &self.shared.kinds
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({})", self.shared.endpoint)
    }
}
