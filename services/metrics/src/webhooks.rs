//! The notifications to webhooks.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

/// Counts the events that are sent to webhooks, and those that wait. Clones count the same events.
#[derive(Clone, Debug, Default)]
pub struct WebhookMetrics {
    attempts: Family<OutcomeLabels, Counter>,
    waiting: Family<WebhookLabels, Gauge>,
    oldest_wait: Family<WebhookLabels, Gauge>,
    dead: Family<WebhookLabels, Gauge>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    webhook: String,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WebhookLabels {
    webhook: String,
}

/// The result of an attempt to send an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventOutcome {
    Delivered,
    /// The event is sent again later.
    Failed,
    /// The event was given up.
    Dead,
}

impl WebhookMetrics {
    /// Counts events. The configuration bounds the names of webhooks.
    pub fn ended(&self, webhook: &str, outcome: EventOutcome, count: u64) {
        let outcome = match outcome {
            EventOutcome::Delivered => "delivered",
            EventOutcome::Failed => "failed",
            EventOutcome::Dead => "dead",
        };
        let labels = OutcomeLabels { webhook: webhook.to_owned(), outcome };
        self.attempts.get_or_create(&labels).inc_by(count);
    }

    /// Shows the events of a webhook that wait, for how many seconds the oldest waits, and how many dead ones are kept.
    pub fn set_backlog(&self, webhook: &str, waiting: u64, oldest_wait: u64, dead: u64) {
        let labels = WebhookLabels { webhook: webhook.to_owned() };
        let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        self.waiting.get_or_create(&labels).set(number(waiting));
        self.oldest_wait.get_or_create(&labels).set(number(oldest_wait));
        self.dead.get_or_create(&labels).set(number(dead));
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "bedplate_webhook_events",
            "Attempts to send events to webhooks, by webhook and outcome",
            self.attempts.clone(),
        );
        registry.register(
            "bedplate_webhook_events_waiting",
            "Events that wait for a webhook",
            self.waiting.clone(),
        );
        registry.register_with_unit(
            "bedplate_webhook_oldest_wait",
            "Time that the oldest event waits for a webhook",
            Unit::Seconds,
            self.oldest_wait.clone(),
        );
        registry.register(
            "bedplate_webhook_events_dead",
            "Events that were given up and are kept",
            self.dead.clone(),
        );
    }
}
