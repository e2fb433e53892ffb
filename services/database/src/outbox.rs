//! The one table that both services have alike: letters that are to be sent. They are written in the transaction of what they tell
//! of, and stay until they were sent or given up.
//!
//! ```sql
//! CREATE TABLE outbox (
//!     seq      SERIAL,
//!     notice   TEXT   NOT NULL,
//!     receiver TEXT   NOT NULL,
//!     body     TEXT   NOT NULL,
//!     due_at   BIGINT NOT NULL,
//!     tries    BIGINT NOT NULL,
//!     project  TEXT,
//!     UNIQUE (notice, receiver)
//! );
//! CREATE INDEX outbox_due ON outbox (due_at, seq);
//! CREATE INDEX outbox_project ON outbox (project);
//! ```

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use jiff::{SignedDuration, Timestamp};
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use crate::Extent::OneStatement;
use crate::{Connection, Database, Query, Row, StoreError, values};

/// So many letters wait at most; what comes beyond is not kept.
pub const MOST: i64 = 10_000;
/// So many of them are for one receiver at most: one that takes none leaves places to the others.
pub const MOST_FOR_ONE: i64 = MOST / 2;
/// So many of them are of one project at most, however many addresses it names: one whose things end all the time leaves places to others.
pub const MOST_OF_ONE: i64 = MOST / 4;

/// What one receiver is to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    /// The id of what is told; the same for all receivers, and however often it is sent.
    pub notice: Uuid,
    /// Who is told, in the words of who sends it.
    pub receiver: String,
    /// What, in the words of who sends it.
    pub body: String,
    /// The project of which it tells, if it is of one.
    pub project: Option<String>,
}

/// A letter that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Its place in the table.
    pub seq: i64,
    /// The letter.
    pub letter: Letter,
    /// How often it was tried.
    pub tries: u32,
}

/// Adds letters, in the transaction of what they tell of; the answer is how many there was no place for.
pub async fn append(
    connection: &mut Connection,
    letters: &[Letter],
    now: Timestamp,
) -> Result<usize, StoreError> {
    const INSERT: &str = "INSERT INTO outbox (notice, receiver, body, due_at, tries, project) \
        VALUES ($1, $2, $3, $4, 0, $5) ON CONFLICT (notice, receiver) DO NOTHING";
    if letters.is_empty() {
        return Ok(0);
    }
    let mut waiting = count(connection, None).await?;
    let mut waiting_for: BTreeMap<&str, i64> = BTreeMap::new();
    let mut waiting_of: BTreeMap<Option<&str>, i64> = BTreeMap::new();
    let mut lost = 0;
    for letter in letters {
        let Letter { notice, receiver, body, project } = letter;
        let project = project.as_deref();
        let for_one = match waiting_for.entry(receiver) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                new.insert(count(connection, Some(("receiver = ?", receiver))).await?)
            }
        };
        let of_one = match (waiting_of.entry(project), project) {
            (Entry::Occupied(known), _) => known.into_mut(),
            (Entry::Vacant(new), Some(project)) => {
                new.insert(count(connection, Some(("project = ?", project))).await?)
            }
            // What is of nobody is not counted so.
            (Entry::Vacant(new), None) => new.insert(i64::MIN),
        };
        if waiting >= MOST || *for_one >= MOST_FOR_ONE || *of_one >= MOST_OF_ONE {
            lost += 1;
            continue;
        }
        let values = values![*notice, receiver.as_str(), body.as_str(), now, project];
        connection.execute(INSERT, values).await?;
        (waiting, *for_one, *of_one) = (waiting + 1, *for_one + 1, *of_one + 1);
    }
    Ok(lost)
}

/// Strikes a letter out, in the transaction of what is written down of that; whether it was still there.
pub async fn strike(connection: &mut Connection, seq: i64) -> Result<bool, StoreError> {
    const DELETE: &str = "DELETE FROM outbox WHERE seq = $1";
    Ok(connection.execute(DELETE, values![seq]).await? > 0)
}

/// How many letters wait, of those that meet a condition in which `?` stands for the value beside it, or of all.
async fn count(connection: &mut Connection, only: Option<(&str, &str)>) -> Result<i64, StoreError> {
    let mut query = Query::new("SELECT count(*) FROM outbox");
    if let Some((condition, value)) = only {
        query.and_value(condition, value);
    }
    let (sql, values) = query.into_parts();
    Ok(connection.row(sql, values).await?.map_or(Ok(0), |row| row.int(0))?)
}

/// The letters of one database. Clones share it.
#[derive(Clone)]
pub struct Outbox {
    database: Database,
}

impl Outbox {
    /// Those of this database, whose schema has the table.
    pub fn new(database: Database) -> Outbox {
        Outbox { database }
    }

    /// The next letters that are due, the longest due first. What is due later than after `longest_wait` was put off by a clock
    /// that was wrong.
    pub async fn due(
        &self,
        now: Timestamp,
        longest_wait: SignedDuration,
        limit: u32,
    ) -> Result<Vec<Waiting>, StoreError> {
        self.due_to_others(now, longest_wait, &[], limit).await
    }

    /// As [`Outbox::due`], without the letters to `busy` receivers.
    pub async fn due_to_others(
        &self,
        now: Timestamp,
        longest_wait: SignedDuration,
        busy: &[String],
        limit: u32,
    ) -> Result<Vec<Waiting>, StoreError> {
        let beyond = now.saturating_add(longest_wait).unwrap_or(Timestamp::MAX);
        let mut sql = "SELECT seq, notice, receiver, body, tries, project FROM outbox \
            WHERE (due_at <= $1 OR due_at > $2)"
            .to_owned();
        let mut given = values![now, beyond];
        for receiver in busy {
            given.push(receiver.as_str().into());
            sql.push_str(&format!(" AND receiver <> ${}", given.len()));
        }
        given.push(limit.into());
        sql.push_str(&format!(" ORDER BY due_at, seq LIMIT ${}", given.len()));
        self.database
            .read(move |c| {
                Box::pin(async move {
                    // Its text is ours alone: receivers are values.
                    let rows = c.rows(AssertSqlSafe(sql), given).await?;
                    rows.iter().map(read).collect()
                })
            })
            .await
    }

    /// Forgets a letter that was sent.
    pub async fn remove(&self, seq: i64) -> Result<(), StoreError> {
        self.database
            .write(OneStatement, move |c| Box::pin(async move { strike(c, seq).await.map(drop) }))
            .await
    }

    /// A letter was tried in vain, and is due again.
    pub async fn failed(&self, seq: i64, tries: u32, due_at: Timestamp) -> Result<(), StoreError> {
        const UPDATE: &str = "UPDATE outbox SET tries = $2, due_at = $3 WHERE seq = $1";
        self.database
            .write(OneStatement, move |c| {
                Box::pin(async move {
                    Ok(c.execute(UPDATE, values![seq, tries, due_at]).await.map(drop)?)
                })
            })
            .await
    }

    /// Nothing is sent to `receiver` before then.
    pub async fn put_off(&self, receiver: &str, due_at: Timestamp) -> Result<(), StoreError> {
        const UPDATE: &str = "UPDATE outbox SET due_at = $2 WHERE receiver = $1 AND due_at < $2";
        let receiver = receiver.to_owned();
        self.database
            .write(OneStatement, move |c| {
                Box::pin(async move {
                    Ok(c.execute(UPDATE, values![receiver.as_str(), due_at]).await.map(drop)?)
                })
            })
            .await
    }
}

fn read(row: &Row) -> Result<Waiting, StoreError> {
    let tries = u32::try_from(row.int(4)?).unwrap_or(u32::MAX);
    let letter = Letter {
        notice: row.parse("outbox", 1)?,
        receiver: row.text(2)?.to_owned(),
        body: row.text(3)?.to_owned(),
        project: row.optional_text(5)?.map(str::to_owned),
    };
    Ok(Waiting { seq: row.int(0)?, letter, tries })
}
