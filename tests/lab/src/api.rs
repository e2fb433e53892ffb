//! A client of either API.

use std::time::Duration;

use api_client::{Client, ClientError, Credentials, Service};
use reqwest::Method;
use serde_json::Value;
use tokio::time::{Instant, sleep};
use url::Url;
use websocket::Socket;

/// The polling interval of the waiting functions.
const LOOK_EVERY: Duration = Duration::from_millis(20);
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
    /// The header `Retry-After`.
    pub retry_after: Option<String>,
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
        let retry_after = response.headers().get("retry-after");
        let retry_after = retry_after.and_then(|value| value.to_str().ok()).map(str::to_owned);
        let body = self.client.body(response).await?;
        let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
        Ok(Answer { status, retry_after, body })
    }

    /// Sends a request; panics if the service does not answer.
    pub async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Answer {
        let sent = self.try_send(method, path, body).await;
        sent.unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Gets a document; panics if the status is not a success.
    pub async fn get(&self, path: &str) -> Value {
        self.send(Method::GET, path, None).await.expect(path)
    }

    /// Opens a WebSocket; panics if the service refuses.
    pub async fn socket(&self, path: &str) -> Socket {
        self.client.socket(path).await.unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Gets a document repeatedly until `look` returns a value. Also waits for a service that is restarting.
    pub async fn until<T>(
        &self,
        path: &str,
        what: &str,
        mut look: impl FnMut(&Value) -> Option<T>,
    ) -> T {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let answer = self.try_send(Method::GET, path, None).await;
            if let Ok(answer) = &answer
                && answer.status == 200
                && let Some(found) = look(&answer.body)
            {
                return found;
            }
            assert!(Instant::now() < deadline, "{what} did not come to pass: {answer:?}");
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
