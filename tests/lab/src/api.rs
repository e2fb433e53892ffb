//! The Bare Metal API as a client sees it.

use std::time::Duration;

use reqwest::{Client, Method};
use serde_json::Value;
use tokio::time::{Instant, sleep};
use url::Url;

/// The microversion that is asked for: new enough for every field the tests look at.
const VERSION: &str = "1.90";
/// How often a thing that is awaited is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long anything may take on a busy computer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A client of one service.
#[derive(Clone, Debug)]
pub struct Api {
    client: Client,
    base: Url,
}

/// What the service answered.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The body; null where there is none.
    pub body: Value,
}

impl Answer {
    /// The body, where the status says that all is well.
    #[track_caller]
    pub fn expect(self, what: &str) -> Value {
        assert!(self.status < 300, "{what}: {} {}", self.status, self.body);
        self.body
    }
}

impl Api {
    pub(crate) fn new(base: Url) -> Api {
        let client = Client::builder().no_proxy().tls_certs_only([]).build();
        Api { client: client.expect("a client for plain HTTP can be made"), base }
    }

    /// Where the service is.
    pub fn url(&self) -> &Url {
        &self.base
    }

    /// Sends a request; fails only where nobody answers.
    pub async fn try_send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> reqwest::Result<Answer> {
        let url = self.base.join(path).expect("a path makes a URL");
        let mut request = self.client.request(method, url);
        request = request.header("X-OpenStack-Ironic-API-Version", VERSION);
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request.send().await?;
        let status = response.status().as_u16();
        let body = response.bytes().await?;
        Ok(Answer { status, body: serde_json::from_slice(&body).unwrap_or(Value::Null) })
    }

    /// Sends a request to a service that is there.
    pub async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Answer {
        let sent = self.try_send(method, path, body).await;
        sent.unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Gets a document that is there.
    pub async fn get(&self, path: &str) -> Value {
        self.send(Method::GET, path, None).await.expect(path)
    }

    /// Gets a document again and again until `look` makes something of it. Waits also for the service to come back.
    pub async fn until<T>(
        &self,
        path: &str,
        what: &str,
        mut look: impl FnMut(&Value) -> Option<T>,
    ) -> T {
        let deadline = Instant::now() + PATIENCE;
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

/// Waits until `seen` is true of something outside the service.
pub async fn until(what: &str, seen: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !seen() {
        assert!(Instant::now() < deadline, "{what} did not come to pass");
        sleep(LOOK_EVERY).await;
    }
}
