//! An Ironic from which nodes are imported, or to which nodes are exported.

use std::time::Duration;

use anyhow::Context;
use api_client::{Client, ClientError, Listed, Pages, Refusal, Service};
use clap::Args;
use reqwest::StatusCode;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio::time::sleep;
use url::Url;

use crate::api::{Api, nearby};
use crate::connection::Connection;
use crate::exit::{Exit, Failure};
use crate::output::plain;

/// A JSON object, as the API shows a resource.
pub(crate) type Object = Map<String, Value>;

/// The microversion of requests to Ironic: the newest one that Ironic 39 and baremetald know.
const MICROVERSION: &str = "1.115";
/// How often a request is sent while Ironic's conductor holds the lock of the node.
const ATTEMPTS: usize = 10;
/// The time between two of these requests.
const RETRY_EVERY: Duration = Duration::from_secs(1);

/// Ironic, and the baremetald on the other side. `--os-cloud` selects the cloud of Ironic, and `--url` is the URL of baremetald.
#[derive(Args)]
pub(crate) struct BothServices {
    /// URL of Ironic; default: the catalogue of the cloud that --os-cloud selects.
    #[arg(long, value_name = "URL", env = "BEDPLATE_IRONIC_URL")]
    ironic_url: Option<Url>,
    /// Cloud of clouds.yaml with the credentials for baremetald; default: --user, or the cloud of Ironic.
    #[arg(long, value_name = "NAME")]
    bedplate_cloud: Option<String>,
}

impl BothServices {
    pub(crate) async fn connect(&self, connection: &Connection) -> anyhow::Result<(Ironic, Api)> {
        let ironic = Ironic { client: self.ironic(connection).await? };
        let mut connection = connection.of_bedplate(self.bedplate_cloud.as_deref());
        if connection.url.is_none() && self.bedplate_cloud.is_none() {
            // The catalogue of Ironic's cloud names Ironic.
            connection.url = Some(nearby(Service::Baremetald)?);
        }
        let ours = Api::of_machines(&connection).await?.with_microversion(MICROVERSION);
        if ironic.client.url("")? == ours.url("")? {
            let sentence = format!(
                "Ironic and baremetald are the same service at {}. Hint: set the URL of Ironic with --ironic-url, and the URL of baremetald with --url",
                ours.base()
            );
            return Err(Failure::usage(sentence).into());
        }
        Ok((ironic, ours))
    }

    async fn ironic(&self, connection: &Connection) -> anyhow::Result<Client> {
        let client = match (connection.session()?, &self.ironic_url) {
            (Some(session), url) => {
                let client = Client::by_keystone(session, Service::Baremetald, url.clone()).await;
                client.context("cannot find Ironic in the cloud of --os-cloud")?
            }
            (None, Some(url)) => {
                let http = api_client::http_client(connection.authorities())?.build();
                let http = http.context("cannot set up an HTTP client")?;
                Client::new(http, Service::Baremetald, url.clone(), connection.caller()?)
            }
            (None, None) => {
                let sentence = "no Ironic is selected. Hint: set --os-cloud or OS_CLOUD to the cloud of Ironic, or --ironic-url";
                return Err(Failure::usage(sentence).into());
            }
        };
        Ok(client.with_microversion(Some(MICROVERSION)))
    }
}

pub(crate) struct Ironic {
    client: Client,
}

impl Ironic {
    pub(crate) fn base(&self) -> &Url {
        self.client.base()
    }

    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<T> {
        self.client.get(path).await.map_err(|why| self.explain(why))
    }

    /// Sends a `GET`. Returns `None` if the resource does not exist.
    pub(crate) async fn find<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<Option<T>> {
        self.client.find(path).await.map_err(|why| self.explain(why))
    }

    /// Reads all pages of the list at `path`.
    pub(crate) async fn all<T: Listed>(&self, path: &str) -> anyhow::Result<Vec<T>> {
        Pages::of(&self.client, path).all().await.map_err(|why| self.explain(why))
    }

    pub(crate) async fn post(&self, path: &str, body: &impl Serialize) -> anyhow::Result<Value> {
        self.client.post(path, body).await.map_err(|why| self.explain(why))
    }

    pub(crate) async fn put(&self, path: &str, body: &impl Serialize) -> anyhow::Result<Value> {
        self.repeated(async || self.client.put(path, body).await).await
    }

    pub(crate) async fn patch(&self, path: &str, body: &impl Serialize) -> anyhow::Result<Value> {
        self.repeated(async || self.client.patch(path, body).await).await
    }

    pub(crate) async fn delete(&self, path: &str) -> anyhow::Result<Value> {
        self.repeated(async || self.client.delete(path).await).await
    }

    /// Repeats a request while a conductor holds the lock of the node.
    async fn repeated(
        &self,
        send: impl AsyncFn() -> Result<Value, ClientError>,
    ) -> anyhow::Result<Value> {
        for _ in 1..ATTEMPTS {
            match send().await {
                Err(why) if why.status() == Some(StatusCode::CONFLICT) => sleep(RETRY_EVERY).await,
                done => return done.map_err(|why| self.explain(why)),
            }
        }
        send().await.map_err(|why| self.explain(why))
    }

    fn explain(&self, why: ClientError) -> anyhow::Error {
        match why {
            ClientError::Refused(refusal) => self.refused(&refusal).into(),
            ClientError::Unreachable { source, .. } => {
                let sentence = format!("cannot reach Ironic at {}", self.client.base());
                Failure::unreachable(sentence, source).into()
            }
            other @ (ClientError::InvalidPath { .. }
            | ClientError::NoToken { .. }
            | ClientError::InvalidToken
            | ClientError::TooLarge
            | ClientError::NotJson { .. }
            | ClientError::NotText { .. }
            | ClientError::Unreadable { .. }
            | ClientError::InvalidPage
            | ClientError::NoSocket(_)) => {
                anyhow::Error::new(other).context(format!("Ironic at {}", self.client.base()))
            }
        }
    }

    fn refused(&self, refusal: &Refusal) -> Failure {
        let hint = match refusal.status {
            StatusCode::NOT_ACCEPTABLE => {
                format!(". Hint: Ironic has to know API version {MICROVERSION}, as release 39 does")
            }
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                ". Hint: use the cloud entry of an administrator of Ironic".to_owned()
            }
            _ => String::new(),
        };
        let sentence = plain(&refusal.sentence());
        let sentence = format!("Ironic: {}{hint}", sentence.trim_end_matches('.'));
        Failure::new(Exit::of_status(refusal.status), sentence)
    }
}

pub(crate) fn is_set(object: &Object, field: &str) -> bool {
    object.get(field) == Some(&Value::Bool(true))
}

/// The text of a field; empty if the field has no text.
pub(crate) fn word<'a>(object: &'a Object, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// The reason of a refused request that concerns one resource only; an error of any other kind ends the command.
pub(crate) fn reason(why: anyhow::Error) -> anyhow::Result<String> {
    match why.downcast_ref::<Failure>() {
        Some(failure) if failure.exit == Exit::Failed => Ok(failure.to_string()),
        Some(_) | None => Err(why),
    }
}

/// Declares the lists of resources that both services have, with their objects as they are.
macro_rules! lists {
    ($($kind:ident $list:literal)*) => {
        $(
            #[derive(serde::Deserialize)]
            #[serde(transparent)]
            pub(crate) struct $kind(pub(crate) Object);

            impl Listed for $kind {
                const LIST: &'static str = $list;
            }

            impl From<$kind> for Object {
                fn from(it: $kind) -> Object {
                    it.0
                }
            }
        )*
    };
}

pub(crate) use lists;

lists! {
    Nodes "nodes"
    Ports "ports"
    PortGroups "portgroups"
    Connectors "connectors"
    Targets "targets"
    Allocations "allocations"
    ChassisList "chassis"
    Templates "deploy_templates"
    Runbooks "runbooks"
    InspectionRules "inspection_rules"
    Conductors "conductors"
}
