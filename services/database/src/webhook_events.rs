//! The table `webhook_events`, which both services have: notifications that wait to be sent to webhooks. An event is written in the
//! transaction of the change that it reports, and stays until the webhook took it. An event that was given up stays for a while as dead.

use std::sync::Arc;

use cloud_event::{CloudEvent, EventPattern, Notification};
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use crate::WriteKind::{AnyStatementCanFail, OneStatement};
use crate::{Connection, Database, Result, Row, Tripwire, reading, values, writing};

/// The script that creates the table, as a version of the schema of each service.
pub const SCHEMA: &str = include_str!("webhook_events.sql");

/// The most events that wait for one webhook. The oldest die first, so that the webhook gets the newest states once it answers again.
pub const MOST_WAITING: u32 = 20_000;
/// The most dead events that are kept for one webhook.
pub const MOST_DEAD: u32 = 1_000;

const TABLE: &str = "webhook_events";

/// The webhooks that get notifications. Without any, nothing is written. Clones share the list.
#[derive(Clone, Debug, Default)]
pub struct Subscriptions(Arc<SubscriptionList>);

#[derive(Debug, Default)]
struct SubscriptionList {
    source: String,
    webhooks: Vec<Subscription>,
}

/// A webhook, and the events that it gets.
#[derive(Clone, Debug)]
pub struct Subscription {
    /// The name of the webhook.
    pub webhook: String,
    /// The types of its events; all if there are none.
    pub kinds: Vec<EventPattern>,
}

impl Subscription {
    fn takes(&self, kind: &str) -> bool {
        self.kinds.is_empty() || self.kinds.iter().any(|pattern| pattern.matches(kind))
    }
}

impl Subscriptions {
    /// The webhooks of a program, which is the `source` of its events.
    pub fn new(source: String, webhooks: Vec<Subscription>) -> Subscriptions {
        Subscriptions(Arc::new(SubscriptionList { source, webhooks }))
    }

    /// Whether no webhook gets anything.
    pub fn is_empty(&self) -> bool {
        self.0.webhooks.is_empty()
    }

    /// The names of the webhooks.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.webhooks.iter().map(|it| it.webhook.as_str())
    }

    /// Returns the events that carry a notification: one for each webhook that gets its type.
    fn events(
        &self,
        notification: &Notification,
        traceparent: Option<&str>,
        at: Timestamp,
    ) -> Vec<NewEvent> {
        let kind = &notification.kind;
        let takers: Vec<&Subscription> =
            self.0.webhooks.iter().filter(|it| it.takes(kind)).collect();
        if takers.is_empty() {
            return Vec::new();
        }
        let (id, source) = (Uuid::new_v4(), self.0.source.as_str());
        let body = CloudEvent { id, source, at, traceparent, notification }.json();
        let event = |taker: &Subscription| NewEvent {
            webhook: taker.webhook.clone(),
            event: id,
            kind: kind.clone(),
            object: notification.object.clone(),
            body: body.clone(),
        };
        takers.into_iter().map(event).collect()
    }
}

/// Writes the notifications about one change, in the transaction of the change.
#[derive(Clone, Debug)]
pub struct NotificationWriter {
    subscriptions: Subscriptions,
    /// The trace of the request or turn that makes the change.
    traceparent: Option<String>,
    now: Timestamp,
}

impl NotificationWriter {
    /// Makes a writer for the change that the current task makes: the transaction may run on another thread, which does not know the trace.
    pub fn of_task(subscriptions: &Subscriptions, now: Timestamp) -> NotificationWriter {
        let traceparent = spans::current().map(|context| context.traceparent());
        NotificationWriter { subscriptions: subscriptions.clone(), traceparent, now }
    }

    /// Whether anything is written, so that the change has to be known.
    pub fn is_on(&self) -> bool {
        !self.subscriptions.is_empty()
    }

    /// The time of the change.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Writes the notifications.
    pub async fn write(
        &self,
        connection: &mut Connection,
        notifications: &[Notification],
    ) -> Result<()> {
        for notification in notifications {
            let traceparent = self.traceparent.as_deref();
            let events = self.subscriptions.events(notification, traceparent, self.now);
            append(connection, &events, self.now).await?;
        }
        Ok(())
    }
}

/// An event for one webhook.
struct NewEvent {
    webhook: String,
    /// The id of the event: the same for all webhooks and all attempts.
    event: Uuid,
    kind: String,
    object: String,
    /// The event as it is sent, but for its sequence number.
    body: String,
}

/// An event in the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingEvent {
    /// The primary key of the row. Events of one object are in its order.
    pub seq: i64,
    pub event: Uuid,
    pub kind: String,
    pub body: String,
    pub created_at: Timestamp,
    /// How many attempts to send it have failed.
    pub tries: u32,
}

/// An event that was given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadEvent {
    pub event: Uuid,
    pub kind: String,
    pub object: String,
    pub created_at: Timestamp,
    pub dead_at: Timestamp,
    /// Why the last attempt failed.
    pub problem: String,
}

/// The events of one webhook, counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookBacklog {
    pub webhook: String,
    pub waiting: u64,
    /// When the oldest event was written that waits.
    pub waiting_since: Option<Timestamp>,
    pub dead: u64,
}

impl WebhookBacklog {
    /// For how many seconds the oldest event waits.
    pub fn age(&self, now: Timestamp) -> u64 {
        let waits = self.waiting_since.map_or(SignedDuration::ZERO, |it| now.duration_since(it));
        u64::try_from(waits.as_secs()).unwrap_or(0)
    }
}

/// Adds events, in the transaction of the change that they report.
async fn append(connection: &mut Connection, events: &[NewEvent], now: Timestamp) -> Result<()> {
    const INSERT: &str = "INSERT INTO webhook_events \
        (webhook, object, event, kind, body, created_at, due_at, tries) VALUES ($1, $2, $3, $4, $5, $6, $6, 0)";
    for event in events {
        let NewEvent { webhook, event, kind, object, body } = event;
        let values =
            values![webhook.as_str(), object.as_str(), *event, kind.as_str(), body.as_str(), now];
        connection.execute(INSERT, values).await?;
    }
    Ok(())
}

/// The events of one database. Clones share the database.
#[derive(Clone)]
pub struct EventOutbox {
    database: Database,
}

impl EventOutbox {
    /// The events of `database`, whose schema must have the table.
    pub fn new(database: Database) -> EventOutbox {
        EventOutbox { database }
    }

    /// The tripwire of the database, for the effects of the sender.
    pub fn tripwire(&self) -> &Tripwire {
        self.database.tripwire()
    }

    /// Returns the events that may be sent to a webhook now: the first waiting event of each object, if it is due. An event that is due later
    /// than `longest_wait` from now was postponed under a wrong clock, and counts as due.
    pub async fn due(
        &self,
        webhook: &str,
        now: Timestamp,
        longest_wait: SignedDuration,
        limit: u32,
    ) -> Result<Vec<WaitingEvent>> {
        const DUE: &str = "SELECT seq, event, kind, body, created_at, tries FROM webhook_events AS one \
            WHERE webhook = $1 AND dead_at IS NULL AND (due_at <= $2 OR due_at > $3) AND NOT EXISTS ( \
                SELECT 1 FROM webhook_events AS earlier WHERE earlier.webhook = one.webhook \
                AND earlier.object = one.object AND earlier.dead_at IS NULL AND earlier.seq < one.seq) \
            ORDER BY seq LIMIT $4";
        let beyond = now.saturating_add(longest_wait).unwrap_or(Timestamp::MAX);
        let webhook = webhook.to_owned();
        reading!(self.database, |c| {
            let rows = c.rows(DUE, values![webhook.as_str(), now, beyond, limit]).await?;
            rows.iter().map(read).collect()
        })
    }

    /// Deletes an event that the webhook took.
    pub async fn remove(&self, seq: i64) -> Result<()> {
        const DELETE: &str = "DELETE FROM webhook_events WHERE seq = $1";
        writing!(self.database, OneStatement, |c| Ok(c
            .execute(DELETE, values![seq])
            .await
            .map(drop)?))
    }

    /// Records a failed attempt and the time of the next.
    pub async fn failed(&self, seq: i64, tries: u32, due_at: Timestamp) -> Result<()> {
        const UPDATE: &str = "UPDATE webhook_events SET tries = $2, due_at = $3 WHERE seq = $1";
        writing!(self.database, OneStatement, |c| Ok(c
            .execute(UPDATE, values![seq, tries, due_at])
            .await
            .map(drop)?))
    }

    /// Gives an event up. The next events of its object are sent.
    pub async fn give_up(&self, seq: i64, problem: &str, now: Timestamp) -> Result<()> {
        const UPDATE: &str = "UPDATE webhook_events SET dead_at = $2, problem = $3 WHERE seq = $1 AND dead_at IS NULL";
        let problem = problem.to_owned();
        writing!(self.database, OneStatement, |c| Ok(c
            .execute(UPDATE, values![seq, now, problem])
            .await
            .map(drop)?))
    }

    /// Gives up the oldest events of a webhook beyond [`MOST_WAITING`], and forgets its oldest dead events beyond [`MOST_DEAD`]. Returns how
    /// many events were given up.
    pub async fn bound(&self, webhook: &str, problem: &str, now: Timestamp) -> Result<u64> {
        const GIVE_UP: &str = "UPDATE webhook_events SET dead_at = $2, problem = $3 \
            WHERE webhook = $1 AND dead_at IS NULL AND seq <= ( \
                SELECT seq FROM webhook_events WHERE webhook = $1 AND dead_at IS NULL \
                ORDER BY seq DESC LIMIT 1 OFFSET $4)";
        const FORGET: &str = "DELETE FROM webhook_events \
            WHERE webhook = $1 AND dead_at IS NOT NULL AND seq <= ( \
                SELECT seq FROM webhook_events WHERE webhook = $1 AND dead_at IS NOT NULL \
                ORDER BY seq DESC LIMIT 1 OFFSET $2)";
        let is_within = |it: &WebhookBacklog| {
            it.waiting <= u64::from(MOST_WAITING) && it.dead <= u64::from(MOST_DEAD)
        };
        if self.backlogs_of(vec![webhook]).await?.iter().all(is_within) {
            return Ok(0);
        }
        let (webhook, problem) = (webhook.to_owned(), problem.to_owned());
        writing!(self.database, AnyStatementCanFail, |c| {
            let values = values![webhook.as_str(), now, problem, MOST_WAITING];
            let given_up = c.execute(GIVE_UP, values).await?;
            c.execute(FORGET, values![webhook.as_str(), MOST_DEAD]).await?;
            Ok(given_up)
        })
    }

    /// Returns the names of the webhooks that have events, with their numbers.
    pub async fn backlogs(&self) -> Result<Vec<WebhookBacklog>> {
        const COUNT: &str = "SELECT webhook, \
            count(*) - count(dead_at), min(CASE WHEN dead_at IS NULL THEN created_at END), count(dead_at) \
            FROM webhook_events GROUP BY webhook ORDER BY webhook";
        reading!(self.database, |c| {
            c.rows(COUNT, values![]).await?.iter().map(read_backlog).collect()
        })
    }

    /// Returns the numbers of these webhooks, which are zeros for one without events.
    pub async fn backlogs_of(&self, names: Vec<&str>) -> Result<Vec<WebhookBacklog>> {
        let mut found = self.backlogs().await?;
        let numbers = names.into_iter().map(|name| {
            let at = found.iter().position(|it| it.webhook == name);
            let none = || WebhookBacklog {
                webhook: name.to_owned(),
                waiting: 0,
                waiting_since: None,
                dead: 0,
            };
            at.map_or_else(none, |at| found.swap_remove(at))
        });
        Ok(numbers.collect())
    }

    /// Returns the dead events of a webhook that were given up last, the newest first.
    pub async fn dead(&self, webhook: &str, limit: u32) -> Result<Vec<DeadEvent>> {
        const DEAD: &str = "SELECT event, kind, object, created_at, dead_at, problem FROM webhook_events \
            WHERE webhook = $1 AND dead_at IS NOT NULL ORDER BY dead_at DESC, seq DESC LIMIT $2";
        let webhook = webhook.to_owned();
        reading!(self.database, |c| {
            let rows = c.rows(DEAD, values![webhook.as_str(), limit]).await?;
            rows.iter().map(read_dead).collect()
        })
    }

    /// Deletes the events of a webhook that were written before this time. Returns how many they were.
    pub async fn forget(&self, webhook: &str, before: Timestamp) -> Result<u64> {
        const DELETE: &str = "DELETE FROM webhook_events WHERE webhook = $1 AND created_at < $2";
        let webhook = webhook.to_owned();
        writing!(self.database, OneStatement, |c| Ok(c
            .execute(DELETE, values![webhook.as_str(), before])
            .await?))
    }
}

fn read(row: &Row) -> Result<WaitingEvent> {
    Ok(WaitingEvent {
        seq: row.int(0)?,
        event: row.parse(TABLE, 1)?,
        kind: row.text(2)?.to_owned(),
        body: row.text(3)?.to_owned(),
        created_at: row.time(TABLE, 4)?,
        tries: u32::try_from(row.int(5)?).unwrap_or(u32::MAX),
    })
}

fn read_backlog(row: &Row) -> Result<WebhookBacklog> {
    Ok(WebhookBacklog {
        webhook: row.text(0)?.to_owned(),
        waiting: row.int(1)?.unsigned_abs(),
        waiting_since: row.optional_time(TABLE, 2)?,
        dead: row.int(3)?.unsigned_abs(),
    })
}

fn read_dead(row: &Row) -> Result<DeadEvent> {
    Ok(DeadEvent {
        event: row.parse(TABLE, 0)?,
        kind: row.text(1)?.to_owned(),
        object: row.text(2)?.to_owned(),
        created_at: row.time(TABLE, 3)?,
        dead_at: row.time(TABLE, 4)?,
        problem: row.optional_text(5)?.unwrap_or_default().to_owned(),
    })
}
