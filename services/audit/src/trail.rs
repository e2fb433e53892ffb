//! The interface to the store of the trail, for code that records requests.

use std::error::Error;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use serde::Serialize;

use crate::{Broken, Entry, Head, Refusal, Row};

/// A store of the trail.
#[async_trait]
pub trait Trail: Send + Sync {
    /// Adds a row, and returns once the row is durable.
    ///
    /// # Errors
    ///
    /// The row could not be written. The caller must then refuse the request that the row announces.
    async fn record(&self, entry: Entry) -> Result<(), TrailError>;

    /// Whether the next write of a request carries the row that the request's [`crate::NextWrite`] holds, in the same transaction. If not,
    /// the row has to be recorded before.
    fn joins_next_write(&self) -> bool;

    /// Adds a row soon, without anybody waiting. A failure is only logged.
    fn record_later(&self, entry: Entry);

    /// Counts a refused request. The store writes rows with the counts from time to time.
    fn refused(&self, refusal: Refusal);

    /// Returns number and hash of the last row.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    async fn head(&self) -> Result<Head, TrailError>;

    /// Returns one page of the rows that match `filter`.
    ///
    /// # Errors
    ///
    /// The store cannot be read, or a row in the store is unreadable.
    async fn list(&self, filter: &Filter) -> Result<Vec<ListedRow>, TrailError>;
}

/// Why the trail could not be read or extended.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TrailError {
    /// The stored trail is not the trail that was written.
    #[error("the audit trail is broken")]
    Broken(#[from] Broken),
    #[error("the audit trail is unavailable")]
    Unavailable(#[source] Arc<dyn Error + Send + Sync>),
}

/// Selects rows of the trail. Every field that is set narrows the selection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// The id or the name of the user.
    pub user: Option<String>,
    pub project: Option<String>,
    /// The id of the request: its own, or the id given by the sender.
    pub request_id: Option<String>,
    /// Rows written at this time or later.
    pub since: Option<Timestamp>,
    /// Rows written before this time.
    pub until: Option<Timestamp>,
    pub order: Order,
    /// Rows that follow the row of this number in the given order.
    pub marker: Option<i64>,
    /// The most rows to return.
    pub limit: u32,
}

/// The order in which rows are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    OldestFirst,
    NewestFirst,
}

impl Filter {
    /// All rows after row `number`, oldest first.
    pub fn after(number: i64, limit: u32) -> Self {
        Filter {
            user: None,
            project: None,
            request_id: None,
            since: None,
            until: None,
            order: Order::OldestFirst,
            marker: Some(number),
            limit,
        }
    }
}

/// A row, and for a row that announces a request also the result of that request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ListedRow {
    #[serde(flatten)]
    pub row: Row,
    /// `None` if no row holds a result: the request is still in progress, or the service ended before the request did.
    pub result: Option<RequestResult>,
}

/// The result of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RequestResult {
    /// Number of the row that holds the result.
    pub number: i64,
    /// The word for an [`Outcome`](crate::Outcome).
    pub outcome: String,
    /// HTTP status of the answer; 0 if there was none.
    pub status: i64,
}
