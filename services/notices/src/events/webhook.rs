//! One webhook that gets notifications.

use cloud_event::SigningSecrets;
use jiff::Timestamp;
use reqwest::{Client, StatusCode};
use secrecy::ExposeSecret;
use url::Url;
use uuid::Uuid;

use super::config::EventWebhookConfig;
use crate::config::{SetupError, secret};
use crate::unsent::SendError;
use crate::webhook::{client, why};

/// A webhook, and how events are sent to it.
pub(crate) struct EventWebhook {
    pub(crate) name: String,
    client: Client,
    url: Url,
    secrets: SigningSecrets,
}

impl EventWebhook {
    pub(crate) fn new(config: &EventWebhookConfig) -> Result<EventWebhook, SetupError> {
        let file = &config.secret_file;
        let secrets = SigningSecrets::parse(secret(file)?.expose_secret());
        Ok(EventWebhook {
            name: config.name.as_str().to_owned(),
            client: client(&config.target)?,
            url: config.target.url.clone(),
            secrets: secrets
                .map_err(|source| SetupError::Unusable { path: file.clone(), source })?,
        })
    }

    /// Posts one event. Only the status of the answer counts; the body is not read.
    pub(crate) async fn send(
        &self,
        id: Uuid,
        body: String,
        now: Timestamp,
    ) -> Result<(), SendError> {
        let id = id.to_string();
        let call = self
            .client
            .post(self.url.clone())
            .header("content-type", cloud_event::CONTENT_TYPE)
            .header("webhook-timestamp", now.as_second().to_string())
            .header("webhook-signature", self.secrets.sign(&id, now, &body))
            .header("webhook-id", id)
            .body(body);
        let answer = call.send().await.map_err(|error| SendError::Unreachable(why(&error)))?;
        match answer.status() {
            status if status.is_success() => Ok(()),
            status @ (StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT) => {
                Err(SendError::Unreachable(format!("the webhook answered {status}")))
            }
            status => Err(SendError::Refused(format!("the webhook answered {status}"))),
        }
    }
}
