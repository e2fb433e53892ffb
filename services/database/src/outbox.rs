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
//!     UNIQUE (notice, receiver)
//! );
//! CREATE INDEX outbox_due ON outbox (due_at, seq);
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

/// What one receiver is to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    /// The id of what is told; the same for all receivers, and however often it is sent.
    pub notice: Uuid,
    /// Who is told, in the words of who sends it.
    pub receiver: String,
    /// What, in the words of who sends it.
    pub body: String,
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
    const INSERT: &str = "INSERT INTO outbox (notice, receiver, body, due_at, tries) \
        VALUES ($1, $2, $3, $4, 0) ON CONFLICT (notice, receiver) DO NOTHING";
    if letters.is_empty() {
        return Ok(0);
    }
    let mut waiting = count(connection, None).await?;
    let mut waiting_for: BTreeMap<&str, i64> = BTreeMap::new();
    let mut lost = 0;
    for letter in letters {
        let Letter { notice, receiver, body } = letter;
        let for_one = match waiting_for.entry(receiver) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(count(connection, Some(receiver)).await?),
        };
        if waiting >= MOST || *for_one >= MOST_FOR_ONE {
            lost += 1;
            continue;
        }
        let values = values![*notice, receiver.as_str(), body.as_str(), now];
        connection.execute(INSERT, values).await?;
        (waiting, *for_one) = (waiting + 1, *for_one + 1);
    }
    Ok(lost)
}

/// Strikes a letter out, in the transaction of what is written down of that; whether it was still there.
pub async fn strike(connection: &mut Connection, seq: i64) -> Result<bool, StoreError> {
    const DELETE: &str = "DELETE FROM outbox WHERE seq = $1";
    Ok(connection.execute(DELETE, values![seq]).await? > 0)
}

/// How many letters wait, for one receiver or for all.
async fn count(connection: &mut Connection, receiver: Option<&str>) -> Result<i64, StoreError> {
    let mut query = Query::new("SELECT count(*) FROM outbox");
    query.and_if_set("receiver = ?", receiver);
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
        let mut sql = "SELECT seq, notice, receiver, body, tries FROM outbox \
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
    };
    Ok(Waiting { seq: row.int(0)?, letter, tries })
}
