//! What keeps a trail, as those see it who have something recorded.

use std::error::Error;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use serde::Serialize;

use crate::{Broken, Entry, Head, Refusal, Row};

/// Keeps a trail.
#[async_trait]
pub trait Trail: Send + Sync {
    /// Adds a row; it is there to stay on return.
    ///
    /// # Errors
    ///
    /// That it could not be written: then nothing may be done that has to be recorded.
    async fn record(&self, entry: Entry) -> Result<(), TrailError>;

    /// Adds a row soon, with nobody waiting. Where it cannot be written, the log says so.
    fn record_later(&self, entry: Entry);

    /// Counts who was not let in. Rows that say how many there were are written every now and then.
    fn refused(&self, refusal: Refusal);

    /// The last row.
    ///
    /// # Errors
    ///
    /// That nobody can tell.
    async fn head(&self) -> Result<Head, TrailError>;

    /// One page of the rows that `filter` wants.
    ///
    /// # Errors
    ///
    /// That they cannot be read.
    async fn list(&self, filter: &Filter) -> Result<Vec<Listed>, TrailError>;
}

/// Why a trail did not do as asked.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TrailError {
    /// What is kept is not what was written.
    #[error("the audit trail is broken")]
    Broken(#[from] Broken),
    /// Whatever keeps it failed.
    #[error("the audit trail cannot be reached")]
    Unavailable(#[source] Arc<dyn Error + Send + Sync>),
}

/// Which rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Of users of this id or name.
    pub user: Option<String>,
    /// Of who asked in this project.
    pub project: Option<String>,
    /// Of the request of this id, its own or the one it came with.
    pub request_id: Option<String>,
    /// Written then or later.
    pub since: Option<Timestamp>,
    /// Written before.
    pub until: Option<Timestamp>,
    /// In which order.
    pub order: Order,
    /// Those that come after the row of this number.
    pub marker: Option<i64>,
    /// At most so many.
    pub limit: u32,
}

/// In which order rows are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// As they were written.
    OldestFirst,
    /// The other way round.
    NewestFirst,
}

impl Filter {
    /// All rows after that of this number, in their order.
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

/// A row, and what became of the request that it says was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// The row.
    #[serde(flatten)]
    pub row: Row,
    /// What became of it. `None` where no row says so: it is under way, or the service ended before it did.
    pub result: Option<TrailResult>,
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TrailResult {
    /// The row that says so.
    pub number: i64,
    /// In a word.
    pub outcome: String,
    /// The status of the answer; 0 where there was none.
    pub status: i64,
}
