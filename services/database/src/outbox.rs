//! The table `outbox`, which both services have: notifications that wait to be sent. A letter is written in the transaction of the event it
//! reports, and stays until it was sent or given up.
//!
//! Each schema creates the table like this:
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

use crate::WriteKind::OneStatement;
use crate::{Connection, Database, Query, Result, Row, Tripwire, reading, values, writing};

/// The most letters that may wait; further letters are dropped.
pub const MAX_LETTERS: i64 = 10_000;
/// The most letters that may wait for one receiver, so that an unreachable receiver leaves room for the others.
pub const MAX_LETTERS_PER_RECEIVER: i64 = MAX_LETTERS / 2;
/// The most letters that may wait for one project, whatever the number of addresses it names, so that a project with many events leaves
/// room for the others.
pub const MAX_LETTERS_PER_PROJECT: i64 = MAX_LETTERS / 4;

/// A notification to one receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    /// The id of the notice: the same for all receivers and all attempts, so that a receiver can recognise duplicates.
    pub notice: Uuid,
    /// The receiver, in a format of the sending crate.
    pub receiver: String,
    /// The content, in a format of the sending crate.
    pub body: String,
    /// The project that the notice is about; `None` if it is about no project.
    pub project: Option<String>,
}

/// A letter in the outbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingLetter {
    /// The primary key of the row.
    pub seq: i64,
    pub letter: Letter,
    /// How many attempts to send it have failed.
    pub tries: u32,
}

/// Adds letters, in the transaction of the event they report. Returns how many letters were dropped because the outbox is full.
pub async fn append(
    connection: &mut Connection,
    letters: &[Letter],
    now: Timestamp,
) -> Result<usize> {
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
            // The limit of a project does not apply to letters without a project.
            (Entry::Vacant(new), None) => new.insert(i64::MIN),
        };
        if waiting >= MAX_LETTERS
            || *for_one >= MAX_LETTERS_PER_RECEIVER
            || *of_one >= MAX_LETTERS_PER_PROJECT
        {
            lost += 1;
            continue;
        }
        let values = values![*notice, receiver.as_str(), body.as_str(), now, project];
        connection.execute(INSERT, values).await?;
        (waiting, *for_one, *of_one) = (waiting + 1, *for_one + 1, *of_one + 1);
    }
    Ok(lost)
}

/// Deletes a letter, in the transaction that records why. Returns whether the letter was still there.
pub async fn delete(connection: &mut Connection, seq: i64) -> Result<bool> {
    const DELETE: &str = "DELETE FROM outbox WHERE seq = $1";
    Ok(connection.execute(DELETE, values![seq]).await? > 0)
}

/// Counts the waiting letters that meet a condition, or all. The `?` in the condition stands for the value beside it.
async fn count(connection: &mut Connection, only: Option<(&str, &str)>) -> Result<i64> {
    let mut query = Query::new("SELECT count(*) FROM outbox");
    if let Some((condition, value)) = only {
        query.and_value(condition, value);
    }
    Ok(query.row(connection).await?.map_or(Ok(0), |row| row.int(0))?)
}

/// The outbox of one database. Clones share the database.
#[derive(Clone)]
pub struct Outbox {
    database: Database,
}

impl Outbox {
    /// The outbox of `database`, whose schema must have the table.
    pub fn new(database: Database) -> Outbox {
        Outbox { database }
    }

    /// The tripwire of the database, for the effects of the sender of letters.
    pub fn tripwire(&self) -> &Tripwire {
        self.database.tripwire()
    }

    /// Returns the letters that are due, the longest due first. A letter that is due later than `longest_wait` from now was postponed under
    /// a wrong clock, and counts as due.
    pub async fn due(
        &self,
        now: Timestamp,
        longest_wait: SignedDuration,
        limit: u32,
    ) -> Result<Vec<WaitingLetter>> {
        self.due_to_others(now, longest_wait, &[], limit).await
    }

    /// Like [`Outbox::due`], without letters to the `busy` receivers.
    pub async fn due_to_others(
        &self,
        now: Timestamp,
        longest_wait: SignedDuration,
        busy: &[String],
        limit: u32,
    ) -> Result<Vec<WaitingLetter>> {
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
        reading!(self.database, |c| {
            // The SQL is built from constants only; receivers are passed as values.
            let rows = c.rows(AssertSqlSafe(sql), given).await?;
            rows.iter().map(read).collect()
        })
    }

    /// Deletes a letter that was sent.
    pub async fn remove(&self, seq: i64) -> Result<()> {
        writing!(self.database, OneStatement, |c| delete(c, seq).await.map(drop))
    }

    /// Records a failed attempt and the time of the next.
    pub async fn failed(&self, seq: i64, tries: u32, due_at: Timestamp) -> Result<()> {
        const UPDATE: &str = "UPDATE outbox SET tries = $2, due_at = $3 WHERE seq = $1";
        writing!(self.database, OneStatement, |c| Ok(c
            .execute(UPDATE, values![seq, tries, due_at])
            .await
            .map(drop)?))
    }

    /// Postpones all letters to `receiver` until `due_at`.
    pub async fn postpone(&self, receiver: &str, due_at: Timestamp) -> Result<()> {
        const UPDATE: &str = "UPDATE outbox SET due_at = $2 WHERE receiver = $1 AND due_at < $2";
        let receiver = receiver.to_owned();
        writing!(self.database, OneStatement, |c| Ok(c
            .execute(UPDATE, values![receiver.as_str(), due_at])
            .await
            .map(drop)?))
    }
}

fn read(row: &Row) -> Result<WaitingLetter> {
    let tries = u32::try_from(row.int(4)?).unwrap_or(u32::MAX);
    let letter = Letter {
        notice: row.parse("outbox", 1)?,
        receiver: row.text(2)?.to_owned(),
        body: row.text(3)?.to_owned(),
        project: row.optional_text(5)?.map(str::to_owned),
    };
    Ok(WaitingLetter { seq: row.int(0)?, letter, tries })
}
