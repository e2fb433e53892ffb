//! The senders of a daemon: one of notices, and one of notifications.

use jiff::Timestamp;
use metrics::WebhookMetrics;

use crate::config::{NoticesConfig, SetupError};
use crate::events::{EventSender, EventsConfig};
use crate::sender::OutboxSender;

/// A sender cannot send with its configuration. The word in parentheses is the table of the configuration.
#[derive(Debug, thiserror::Error)]
pub enum SendersError {
    #[error("cannot send notices as configured (notices)")]
    Notices(#[source] SetupError),
    #[error("cannot send notifications as configured (events)")]
    Notifications(#[source] SetupError),
}

/// Makes both senders, which send nothing yet. Reads the files that hold secrets.
///
/// # Errors
///
/// A file cannot be read or used, or a URL leads to a local address.
pub fn senders(
    notices: &NoticesConfig,
    events: &EventsConfig,
    metrics: WebhookMetrics,
    clock: fn() -> Timestamp,
) -> Result<(OutboxSender, EventSender), SendersError> {
    let notices = OutboxSender::new(notices, clock).map_err(SendersError::Notices)?;
    let events = EventSender::new(events, metrics, clock).map_err(SendersError::Notifications)?;
    Ok((notices, events))
}
