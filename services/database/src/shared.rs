//! One SQLite file for several programs that run in one process, as a simulation does. It takes the place of the PostgreSQL that several programs
//! share: they have one clock and notify each other, each statement takes a while, and the way to the database can fail.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use jiff::Timestamp;
use tokio::sync::broadcast;

use crate::session::late;
use crate::{BoxFuture, Result, SqlError, SqliteConnection, StoreError};

/// The notifications that a program may be behind before it loses some.
const BEHIND: usize = 1024;

/// The fate of a piece of work on its way to the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The work is done.
    Done,
    /// The work does not reach the database.
    NeverArrives,
    /// The work is done, and the answer is lost.
    AnswerIsLost,
}

/// Lets a piece of work take its time, and returns its fate.
pub type Way = dyn Fn() -> BoxFuture<'static, Fate> + Send + Sync;

/// The shared files of this process by their URLs.
static ALL: Mutex<BTreeMap<String, Arc<SharedFile>>> = Mutex::new(BTreeMap::new());

/// A file that several programs share.
pub(crate) struct SharedFile {
    said: broadcast::Sender<(String, String)>,
    way: Mutex<Option<Arc<Way>>>,
}

/// The notifications of one channel.
pub struct SharedNotifications {
    channel: String,
    said: broadcast::Receiver<(String, String)>,
}

/// Sets the way to the database `url`, `shared-sqlite:///path/file.db`, for all programs of this process.
pub fn set_way(url: &str, way: Box<Way>) {
    *locked(&SharedFile::of(url).way) = Some(way.into());
}

impl SharedFile {
    /// Returns the file that this URL names.
    pub(crate) fn of(url: &str) -> Arc<SharedFile> {
        let new = || SharedFile { said: broadcast::channel(BEHIND).0, way: Mutex::default() };
        locked(&ALL).entry(url.to_owned()).or_insert_with(|| Arc::new(new())).clone()
    }

    pub(crate) fn notify(&self, channel: &str, text: String) {
        // Nobody listens if this fails.
        let _ = self.said.send((channel.to_owned(), text));
    }

    pub(crate) fn notifications(&self, channel: &str) -> SharedNotifications {
        SharedNotifications { channel: channel.to_owned(), said: self.said.subscribe() }
    }

    /// Runs work that reads.
    pub(crate) async fn read<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        match self.fate().await {
            Fate::Done => work.await,
            Fate::NeverArrives | Fate::AnswerIsLost => Err(no_answer()),
        }
    }

    /// Runs work that writes.
    pub(crate) async fn write<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        match self.fate().await {
            Fate::Done => work.await,
            Fate::NeverArrives => Err(no_answer()),
            Fate::AnswerIsLost => {
                work.await?;
                let source = Arc::new(SqlError::from(late("answer", std::time::Duration::ZERO)));
                Err(StoreError::Unconfirmed { source })
            }
        }
    }

    async fn fate(&self) -> Fate {
        let way = locked(&self.way).clone();
        match way {
            Some(way) => way().await,
            None => Fate::Done,
        }
    }
}

impl SharedNotifications {
    pub(crate) async fn next(&mut self) -> Option<String> {
        loop {
            match self.said.recv().await {
                Ok((channel, text)) if channel == self.channel => return Some(text),
                Ok(_) => {}
                Err(_) => return None,
            }
        }
    }
}

/// Returns the time by the clock of all shared files, if the connection is to one of them.
pub(crate) fn clock(connection: &SqliteConnection) -> Option<Timestamp> {
    static BEGUN: OnceLock<(Instant, Timestamp)> = OnceLock::new();
    let url = format!("shared-sqlite://{}", connection.0.path()?);
    if !locked(&ALL).contains_key(&url) {
        return None;
    }
    let (since, at) = BEGUN.get_or_init(|| (Instant::now(), Timestamp::now()));
    Some(*at + since.elapsed())
}

fn no_answer() -> StoreError {
    StoreError::from(late("answer", std::time::Duration::ZERO))
}

fn locked<T>(part: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic while the lock is held leaves the value intact, so the poisoned lock can be used.
    part.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WriteKind::OneStatement;
    use crate::scratch::Scratch;
    use crate::{Database, values};

    const SCHEMA: &[&str] = &["CREATE TABLE words (word TEXT NOT NULL)"];

    async fn add(database: &Database) -> Result<u64> {
        let add = "INSERT INTO words (word) VALUES ($1)";
        database
            .write(OneStatement, move |c| {
                Box::pin(async move { Ok(c.execute(add, values!["a"]).await?) })
            })
            .await
    }

    async fn count(database: &Database) -> Result<i64> {
        let read = database.read(|c| {
            Box::pin(async move {
                let row = c.row("SELECT COUNT(*) FROM words", values![]).await?;
                Ok(row.map_or(Ok(0), |row| row.int(0))?)
            })
        });
        read.await
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn programs_share_a_file_and_notify_each_other() {
        let scratch = Scratch::sqlite();
        let url = format!("shared-{}", scratch.url);
        let one = Database::open(&url, SCHEMA).await.unwrap();
        let other = Database::open(&url, SCHEMA).await.unwrap();
        assert!(one.is_shared());
        let mut heard = other.notifications("words").await.unwrap().unwrap();
        add(&one).await.unwrap();
        assert_eq!(count(&other).await.unwrap(), 1);
        one.notify("other", "no".to_owned()).await.unwrap();
        one.notify("words", "yes".to_owned()).await.unwrap();
        assert_eq!(heard.next().await.unwrap().as_deref(), Some("yes"));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_way_to_the_database_fails() {
        let scratch = Scratch::sqlite();
        let url = format!("shared-{}", scratch.url);
        let database = Database::open(&url, SCHEMA).await.unwrap();
        set_way(&url, Box::new(|| Box::pin(async { Fate::AnswerIsLost })));
        assert!(matches!(add(&database).await, Err(StoreError::Unconfirmed { .. })));
        set_way(&url, Box::new(|| Box::pin(async { Fate::NeverArrives })));
        assert!(add(&database).await.is_err_and(|error| error.is_transient()));
        set_way(&url, Box::new(|| Box::pin(async { Fate::Done })));
        assert_eq!(count(&database).await.unwrap(), 1);
    }
}
