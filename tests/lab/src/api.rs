//! A client of either API.

use std::fmt::Debug;
use std::time::Duration;

use api_client::{Client, ClientError, Credentials, Listed, Pages, Refusal, Service};
use reqwest::Method;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::{Instant, sleep};
use url::Url;
use websocket::Socket;

/// The polling interval of the waiting functions.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The longest time that anything may take on a busy computer.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(120);

/// A client of one service.
#[derive(Clone, Debug)]
pub struct Api {
    client: Client,
}

/// An answer of the service.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    /// Null if the answer has no JSON body.
    pub body: Value,
}

impl Answer {
    /// Returns the body; panics if the status is not a success.
    #[track_caller]
    pub fn expect(self, what: &str) -> Value {
        assert!(self.status < 300, "{what}: {} {}", self.status, self.body);
        self.body
    }

    /// Returns the body as a type of the client; panics if the status is not a success.
    #[track_caller]
    pub fn read<T: DeserializeOwned>(self, what: &str) -> T {
        serde_json::from_value(self.expect(what)).unwrap_or_else(|why| panic!("{what}: {why}"))
    }
}

/// The part that all answers to the creation of a resource have.
#[derive(Deserialize)]
struct Created {
    uuid: String,
}

impl Api {
    /// A client of the service at this URL.
    pub fn new(service: Service, base: Url) -> Api {
        let http = reqwest::Client::builder().no_proxy().tls_certs_only([]).build();
        let http = http.expect("a client for plain HTTP can be made");
        let client = Client::new(http, service, base, Credentials::Anonymous);
        Api { client: client.with_timeout(TIMEOUT) }
    }

    /// The base URL of the service.
    pub fn url(&self) -> &Url {
        self.client.base()
    }

    /// Sends a request; returns an error only if the service does not answer.
    pub async fn try_send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Answer, ClientError> {
        let request = self.client.request(method, path).await?;
        let request = body.into_iter().fold(request, |request, body| request.json(body));
        let response = self.client.exchange(request).await?;
        let status = response.status().as_u16();
        let body = self.client.body(response).await?;
        let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
        Ok(Answer { status, body })
    }

    /// Sends a request; panics if the service does not answer.
    pub async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Answer {
        let sent = self.try_send(method, path, body).await;
        sent.unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Gets a document; panics if the service refuses.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> T {
        self.client.get(path).await.unwrap_or_else(|error| panic!("{path}: {error:?}"))
    }

    /// Gets a document, unless the resource does not exist.
    pub async fn find<T: DeserializeOwned>(&self, path: &str) -> Option<T> {
        self.client.find(path).await.unwrap_or_else(|error| panic!("{path}: {error:?}"))
    }

    /// Gets all pages of a list.
    pub async fn list<T: Listed>(&self, path: &str) -> Vec<T> {
        let all = Pages::of(&self.client, path).all().await;
        all.unwrap_or_else(|error| panic!("{path}: {error:?}"))
    }

    /// Creates a resource, and returns its UUID.
    pub async fn create(&self, path: &str, body: &Value) -> String {
        self.send(Method::POST, path, Some(body)).await.read::<Created>(path).uuid
    }

    /// Sends a request that the service has to refuse.
    pub async fn refused(&self, method: Method, path: &str, body: Option<&Value>) -> Refusal {
        let request = self.client.request(method, path).await.expect("a request");
        let request = body.into_iter().fold(request, |request, body| request.json(body));
        match self.client.send::<Value>(request).await {
            Err(ClientError::Refused(refusal)) => *refusal,
            other => panic!("{path} is not refused: {other:?}"),
        }
    }

    /// Opens a WebSocket; panics if the service refuses.
    pub async fn socket(&self, path: &str) -> Socket {
        self.client.socket(path).await.unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Gets a document repeatedly until `look` returns a value. Also waits for a service that is restarting.
    pub async fn until<A: DeserializeOwned + Debug, T>(
        &self,
        path: &str,
        what: &str,
        mut look: impl FnMut(&A) -> Option<T>,
    ) -> T {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let answer = self.client.get::<A>(path).await;
            if let Ok(answer) = &answer
                && let Some(found) = look(answer)
            {
                return found;
            }
            let unreadable = matches!(answer, Err(ClientError::Unreadable { .. }));
            let over = unreadable || Instant::now() >= deadline;
            assert!(!over, "{what} did not come to pass: {answer:?}");
            sleep(LOOK_EVERY).await;
        }
    }
}

/// Waits until the condition `seen` on something outside the service holds.
pub async fn until(what: &str, seen: impl Fn() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !seen() {
        assert!(Instant::now() < deadline, "{what} did not come to pass");
        sleep(LOOK_EVERY).await;
    }
}
