//! The client of clusterd's drains of compute hosts.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use api_client::clusterd::{Drain, DrainCheck};
use api_client::{Client, ClientError, Credentials, Refusal, Service, element_path};
use baremetal_core::DrainSeen;
use openstack::CloudError;
use reqwest::StatusCode;
use serde_json::json;
use url::Url;
use url::form_urlencoded::Serializer;

/// The timeout of a call to clusterd, which asks the cloud before it answers.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// The path of drains in clusterd's API.
const DRAINS: &str = "/bedplate/v1/drains";

/// The address of clusterd, and the identity for calls to it.
#[derive(Clone, Debug)]
pub struct ClusterdClient {
    url: Option<Url>,
    caller: Credentials,
    /// The HTTP client of a caller without Keystone, made for the first call: making one reads all CAs of the computer.
    http: Arc<OnceLock<reqwest::Client>>,
}

/// Why a call of clusterd has no answer.
#[derive(Debug, thiserror::Error)]
enum CallError {
    #[error("no URL of clusterd is configured")]
    NoUrl,
    #[error("no HTTP client ({0})")]
    NoHttpClient(reqwest::Error),
    #[error(transparent)]
    NotFound(#[from] CloudError),
    #[error(transparent)]
    Call(#[from] ClientError),
}

impl ClusterdClient {
    /// A client of clusterd at this base URL; `None` takes the URL from the service catalogue.
    pub fn new(url: Option<Url>, caller: Credentials) -> Self {
        ClusterdClient { url, caller, http: Arc::default() }
    }

    /// Starts the drain of a host. The request may be repeated without harm.
    pub(crate) async fn drain(&self, host: &str, forced: &[String]) -> DrainSeen {
        let drain = async {
            let path = element_path(DRAINS, host, "")?;
            Ok(self.client().await?.put(&path, &json!({"force": forced})).await?)
        };
        drain.await.map_or_else(|why| unseen(host, why), seen)
    }

    /// Returns the progress of a host's drain.
    pub(crate) async fn show(&self, host: &str) -> DrainSeen {
        let drain = async {
            let path = element_path(DRAINS, host, "")?;
            Ok(self.client().await?.get(&path).await?)
        };
        drain.await.map_or_else(|why| unseen(host, why), seen)
    }

    /// Returns whether a host may be drained, and the progress of its drain if it has one. Nothing changes.
    pub(crate) async fn check(&self, host: &str, forced: &[String]) -> DrainSeen {
        let check = async {
            let mut path = element_path(DRAINS, host, "/check")?;
            if !forced.is_empty() {
                let mut query = Serializer::new(String::new());
                let query = query.append_pair("force", &forced.join(",")).finish();
                path = format!("{path}?{query}");
            }
            Ok(self.client().await?.get(&path).await?)
        };
        let reported = |DrainCheck { drain }| drain.map_or(DrainSeen::NotDrained, seen);
        check.await.map_or_else(|why| unseen(host, why), reported)
    }

    pub(crate) async fn undrain(&self, host: &str) -> DrainSeen {
        let drain = async {
            let path = element_path(DRAINS, host, "")?;
            Ok(self.client().await?.delete(&path).await?)
        };
        drain.await.map_or_else(|why| unseen(host, why), seen)
    }

    async fn client(&self) -> Result<Client, CallError> {
        let client = match (&self.caller, &self.url) {
            (Credentials::Keystone(session), url) => {
                Client::by_keystone(session.clone(), Service::Clusterd, url.clone()).await?
            }
            (caller, Some(url)) => {
                Client::new(self.http()?, Service::Clusterd, url.clone(), caller.clone())
            }
            (_, None) => return Err(CallError::NoUrl),
        };
        Ok(client.with_timeout(ANSWER_TIMEOUT))
    }

    fn http(&self) -> Result<reqwest::Client, CallError> {
        if let Some(http) = self.http.get() {
            return Ok(http.clone());
        }
        let made = reqwest::Client::builder().no_proxy().build();
        let made = made.map_err(CallError::NoHttpClient)?;
        Ok(self.http.get_or_init(|| made).clone())
    }
}

/// Converts clusterd's answer into the state of a host's drain.
fn seen(drain: Drain) -> DrainSeen {
    let left = drain.left.len() + usize::try_from(drain.foreign).unwrap_or(usize::MAX);
    match drain.state.as_str() {
        "draining" => DrainSeen::Draining(left),
        "drained" => DrainSeen::Drained,
        "stuck" => DrainSeen::Stuck(left, drain.problem),
        "ending" => DrainSeen::Ending,
        other => DrainSeen::Unknown(format!("unknown drain state {other:?}")),
    }
}

/// Converts a refusal or a failed call into the state of a host's drain.
fn unseen(host: &str, why: CallError) -> DrainSeen {
    let why = match why {
        CallError::Call(why) => why,
        other @ (CallError::NoUrl | CallError::NoHttpClient(_) | CallError::NotFound(_)) => {
            return DrainSeen::Unknown(other.to_string());
        }
    };
    match why {
        ClientError::Refused(refusal) => refused(host, &refusal),
        // The reason becomes part of the node's record, which must not show the address of clusterd.
        ClientError::Unreachable { source, .. } => {
            DrainSeen::Unknown(format!("no answer ({})", source.without_url()))
        }
        ClientError::NoToken { source } => DrainSeen::Unknown(source.to_string()),
        ClientError::NotJson { .. } | ClientError::Unreadable { .. } => {
            DrainSeen::Unknown("cannot read its answer".to_owned())
        }
        other @ (ClientError::InvalidPath { .. }
        | ClientError::InvalidToken
        | ClientError::TooLarge
        | ClientError::NotText { .. }
        | ClientError::InvalidPage
        | ClientError::NoSocket(_)) => DrainSeen::Unknown(other.to_string()),
    }
}

fn refused(host: &str, refusal: &Refusal) -> DrainSeen {
    let said = refusal.message.as_deref().unwrap_or("no readable error");
    match refusal.status {
        StatusCode::NOT_FOUND if said == format!("Host {host} could not be found.") => {
            DrainSeen::NoHost
        }
        StatusCode::NOT_FOUND if said == format!("Drain {host} could not be found.") => {
            DrainSeen::NotDrained
        }
        StatusCode::CONFLICT => DrainSeen::Refused(said.to_owned()),
        // Any other 404 says nothing about the host.
        status => DrainSeen::Unknown(format!("answered {}: {said}", status.as_u16())),
    }
}
