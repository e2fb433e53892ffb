//! Sends the events that are due, and retries failed ones. Each webhook has a task of its own, so a slow one delays no other.

use std::sync::Arc;
use std::time::Duration;

use database::StoreError;
use database::webhook_events::{EventOutbox, WaitingEvent};
use jiff::{SignedDuration, Timestamp};
use metrics::{EventOutcome, WebhookMetrics};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use super::config::{EventPace, EventsConfig};
use super::webhook::EventWebhook;
use crate::config::SetupError;
use crate::unsent::SendError;

/// How many events are read at a time. They are of different objects, so they are sent in parallel.
const BATCH: u32 = 8;
/// The longest wait between two attempts.
const LONGEST_WAIT: SignedDuration = SignedDuration::from_hours(1);
/// The longest pause of a webhook that does not answer. Its events wait that long at most after it answers again.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// How often the number of events is bounded.
const BOUND_EVERY: Duration = Duration::from_secs(30);
/// Why an event was given up that many newer ones followed.
const TOO_MANY: &str = "too many events wait for the webhook";

/// Sends the events of one database to all webhooks.
pub struct EventSender {
    webhooks: Vec<EventWebhook>,
    pace: EventPace,
    metrics: WebhookMetrics,
    clock: fn() -> Timestamp,
}

/// The result of a look at the events of one webhook.
enum Round {
    Idle,
    Sent,
    /// The webhook did not answer, or asks for a pause.
    Unreachable,
}

impl EventSender {
    /// Makes a sender. Reads the files that hold secrets.
    ///
    /// # Errors
    ///
    /// A file cannot be read or used, or a URL leads to a local address.
    pub fn new(
        config: &EventsConfig,
        metrics: WebhookMetrics,
        clock: fn() -> Timestamp,
    ) -> Result<EventSender, SetupError> {
        let webhooks = config.webhooks.iter().map(EventWebhook::new).collect::<Result<_, _>>()?;
        Ok(EventSender { webhooks, pace: config.pace, metrics, clock })
    }

    /// Sends events until `stop` is cancelled. `may_send` tells whether this process sends the events of the database now, and no other one.
    /// Events in progress when the sender stops may be sent again.
    pub async fn run(
        self,
        outbox: EventOutbox,
        may_send: impl Fn() -> bool + Clone + Send + Sync + 'static,
        stop: CancellationToken,
    ) {
        let EventSender { webhooks, pace, metrics, clock } = self;
        let names: Vec<String> = webhooks.iter().map(|it| it.name.clone()).collect();
        let mut tasks = JoinSet::new();
        for webhook in webhooks {
            let (outbox, metrics) = (outbox.clone(), metrics.clone());
            let sending = Sending { webhook, outbox, pace, metrics, clock };
            tasks.spawn(Arc::new(sending).run(may_send.clone(), stop.clone()));
        }
        tasks.spawn(forget_others(outbox, names, pace.give_up_after, clock, stop));
        while let Some(ended) = tasks.join_next().await {
            if let Err(error) = ended
                && let Ok(panic) = error.try_into_panic()
            {
                std::panic::resume_unwind(panic);
            }
        }
    }
}

/// Deletes the events of webhooks that are not configured any more, once they are old. Another process may know these webhooks already.
async fn forget_others(
    outbox: EventOutbox,
    names: Vec<String>,
    give_up_after: SignedDuration,
    clock: fn() -> Timestamp,
    stop: CancellationToken,
) {
    loop {
        let before = clock().saturating_sub(give_up_after).unwrap_or(Timestamp::MIN);
        let backlogs = outbox.backlogs().await.unwrap_or_default();
        for other in backlogs.iter().filter(|it| !names.contains(&it.webhook)) {
            match outbox.forget(&other.webhook, before).await {
                Ok(0) => {}
                Ok(count) => warn!(
                    "deleted {count} events of the webhook {}, which is not configured",
                    other.webhook
                ),
                Err(error) => debug!("cannot delete the events of {}: {error}", other.webhook),
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(Duration::from_secs(600)) => {}
        }
    }
}

/// A webhook with everything that its task needs.
struct Sending {
    webhook: EventWebhook,
    outbox: EventOutbox,
    pace: EventPace,
    metrics: WebhookMetrics,
    clock: fn() -> Timestamp,
}

impl Sending {
    async fn run(
        self: Arc<Self>,
        may_send: impl Fn() -> bool + Send + Sync,
        stop: CancellationToken,
    ) {
        let look_every = self.pace.look_every.unsigned_abs();
        let first = self.pace.retry_first.unsigned_abs();
        let (mut pause, mut bounded_at) = (first, None::<Instant>);
        while !stop.is_cancelled() {
            let mut wait = look_every;
            if may_send() {
                if bounded_at.is_none_or(|at| at.elapsed() >= BOUND_EVERY) {
                    self.bound().await;
                    bounded_at = Some(Instant::now());
                }
                match self.clone().round(&may_send).await {
                    Ok(Round::Idle) => {}
                    Ok(Round::Sent) => (wait, pause) = (Duration::ZERO, first),
                    Ok(Round::Unreachable) => {
                        (wait, pause) = (pause, (pause * 2).min(LONGEST_PAUSE));
                    }
                    Err(error) => warn!("cannot send the events of {}: {error}", self.webhook.name),
                }
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Keeps the number of events bounded.
    async fn bound(&self) {
        let name = &self.webhook.name;
        match self.outbox.bound(name, TOO_MANY, (self.clock)()).await {
            Ok(0) => {}
            Ok(count) => {
                self.metrics.ended(name, EventOutcome::Dead, count);
                warn!("gave up the {count} oldest events of the webhook {name}: {TOO_MANY}");
            }
            Err(error) => warn!("cannot bound the events of the webhook {name}: {error}"),
        }
    }

    /// Sends the events that are due, the first of each object, in parallel.
    async fn round(
        self: Arc<Self>,
        may_send: &(impl Fn() -> bool + Sync),
    ) -> Result<Round, StoreError> {
        let now = (self.clock)();
        let due = self.outbox.due(&self.webhook.name, now, LONGEST_WAIT, BATCH).await?;
        // Another process may have taken over while the database answered.
        if due.is_empty() || !may_send() {
            return Ok(Round::Idle);
        }
        let mut attempts = JoinSet::new();
        for event in due {
            attempts.spawn(self.clone().attempt(event));
        }
        let mut round = Round::Sent;
        while let Some(ended) = attempts.join_next().await {
            match ended.map_err(tokio::task::JoinError::try_into_panic) {
                Ok(Ok(Round::Unreachable)) => round = Round::Unreachable,
                Ok(Ok(Round::Sent | Round::Idle)) => {}
                Ok(Err(error)) => return Err(error),
                Err(Ok(panic)) => std::panic::resume_unwind(panic),
                // Only a cancelled task ends like this, and nobody cancels these tasks.
                Err(Err(_)) => {}
            }
        }
        Ok(round)
    }

    /// Sends one event, and records the result.
    async fn attempt(self: Arc<Self>, event: WaitingEvent) -> Result<Round, StoreError> {
        let WaitingEvent { seq, event: id, kind, body, created_at, tries } = event;
        let (name, now) = (&self.webhook.name, (self.clock)());
        let body = cloud_event::with_sequence(&body, seq);
        let sending = self.webhook.send(id, body, now);
        let unsent = match self.outbox.tripwire().around("event: send", sending).await {
            Ok(()) => {
                info!(event.id = %id, "sent the event {kind} to the webhook {name}");
                self.outbox.remove(seq).await?;
                self.metrics.ended(name, EventOutcome::Delivered, 1);
                return Ok(Round::Sent);
            }
            Err(unsent) => unsent,
        };
        let tries = tries.saturating_add(1);
        warn!(event.id = %id, tries, "cannot send the event {kind} to the webhook {name}: {unsent}");
        let now = (self.clock)();
        if now.duration_since(created_at) >= self.pace.give_up_after {
            self.outbox.give_up(seq, &unsent.to_string(), now).await?;
            self.metrics.ended(name, EventOutcome::Dead, 1);
        } else {
            self.outbox.failed(seq, tries, self.next_attempt(tries, now)).await?;
            self.metrics.ended(name, EventOutcome::Failed, 1);
        }
        match unsent {
            SendError::Unreachable(_) => Ok(Round::Unreachable),
            SendError::Refused(_) => Ok(Round::Sent),
        }
    }

    /// The time of the next attempt after `tries` attempts.
    fn next_attempt(&self, tries: u32, now: Timestamp) -> Timestamp {
        let doubled = 1_i32.checked_shl(tries.saturating_sub(1).min(30)).unwrap_or(i32::MAX);
        let wait = self.pace.retry_first.checked_mul(doubled).unwrap_or(LONGEST_WAIT);
        now.saturating_add(wait.min(LONGEST_WAIT)).unwrap_or(Timestamp::MAX)
    }
}
