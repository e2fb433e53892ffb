//! One request to the collector, and the meaning of its answer.

use std::time::Duration;

use prost::Message;
use reqwest::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use reqwest::{Client, StatusCode};
use url::Url;

use crate::message::ExportAnswer;

/// The longest pause that a collector may ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// The longest answer that is read.
const LONGEST_ANSWER: u64 = 64 * 1024;

/// The address of the collector, and the client for it.
pub(crate) struct Collector {
    pub(crate) client: Client,
    pub(crate) endpoint: Url,
}

/// The result of one attempt to send a batch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// The collector took all spans but this number.
    Taken { rejected: u64 },
    /// The same batch may be taken later; the collector may have said when.
    Later { after: Option<Duration>, why: String },
    /// The collector will never take the batch.
    Refused { why: String },
}

impl Collector {
    /// Sends an encoded batch once.
    pub(crate) async fn send(&self, body: Vec<u8>) -> Delivery {
        let call = self.client.post(self.endpoint.clone());
        let call = call.header(CONTENT_TYPE, "application/x-protobuf").body(body);
        let answer = match call.send().await {
            Ok(answer) => answer,
            Err(error) => return Delivery::Later { after: None, why: innermost(&error) },
        };
        let status = answer.status();
        let why = format!("the collector answered {status}");
        match status {
            status if status.is_success() => {
                let is_short = answer.content_length().is_some_and(|it| it <= LONGEST_ANSWER);
                let bytes = if is_short { answer.bytes().await.ok() } else { None };
                Delivery::Taken { rejected: bytes.map_or(0, |bytes| rejected(&bytes)) }
            }
            // OpenTelemetry protocol 1.x, "OTLP/HTTP response": these are the retryable statuses.
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => {
                Delivery::Later { after: retry_after(answer.headers()), why }
            }
            _ => Delivery::Refused { why },
        }
    }
}

/// The number of spans that the collector rejected, according to its answer.
fn rejected(answer: &[u8]) -> u64 {
    let answer = ExportAnswer::decode(answer).unwrap_or_default();
    let rejected = answer.partial_success.map_or(0, |partial| partial.rejected_spans);
    u64::try_from(rejected).unwrap_or(0)
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(LONGEST_PAUSE))
}

/// The innermost cause, without the URL.
fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
