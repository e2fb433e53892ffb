//! The client through which every call goes.

mod answer;
mod call;
mod kinds;
mod send;
mod tls;

use std::fmt;
use std::sync::Arc;

use url::Url;

use crate::access::{Access, AccessError, Endpoint, Timeouts};

pub(crate) use call::{Body, Call};
use kinds::DiscoveryCache;
pub(crate) use kinds::Resource;

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
    kinds: DiscoveryCache,
}

impl Client {
    /// Makes a client for the API of `access` without sending a request.
    pub fn new(access: &Access) -> Result<Client, AccessError> {
        let endpoint = access.endpoint.clone();
        let base = tls::base(access)?;
        let http = tls::http(access)?;
        let (timeouts, kinds) = (access.timeouts, DiscoveryCache::default());
        Ok(Client { shared: Arc::new(Shared { http, endpoint, base, timeouts, kinds }) })
    }

    /// The host name and port of the API.
    pub fn endpoint(&self) -> &Endpoint {
        &self.shared.endpoint
    }

    pub(crate) fn kinds(&self) -> &DiscoveryCache {
        &self.shared.kinds
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({})", self.shared.endpoint)
    }
}
