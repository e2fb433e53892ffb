//! Stops a conductor between two writes to its store. Triggers in the database record each write, and a process that holds the lock of the
//! file keeps all others from writing.

use std::collections::BTreeSet;

use database::{AssertSqlSafe, Database, StoreError, WriteKind, values};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, yield_now};

/// Empty schema scripts, for a database whose tables another process manages.
const EMPTY: [&str; 32] = [""; 32];

/// Triggers that record each write in words, without anything that differs between runs.
const TRIGGERS: &str = "
CREATE TABLE written (seq INTEGER PRIMARY KEY AUTOINCREMENT, what TEXT NOT NULL);
CREATE TRIGGER ledger_new AFTER INSERT ON ledger BEGIN INSERT INTO written (what)
  VALUES ('ledger ' || NEW.kind || ' ' || NEW.state || iif(NEW.cloud_id IS NULL, '', ' with its id')); END;
CREATE TRIGGER ledger_news AFTER UPDATE ON ledger BEGIN INSERT INTO written (what)
  VALUES ('ledger ' || NEW.kind || ' ' || NEW.state || iif(NEW.cloud_id IS NULL, '', ' with its id')); END;
CREATE TRIGGER ledger_removed AFTER DELETE ON ledger BEGIN INSERT INTO written (what)
  VALUES ('ledger ' || OLD.kind || ' removed'); END;
CREATE TRIGGER secrets_new AFTER INSERT ON secrets BEGIN INSERT INTO written (what) VALUES ('secret ' || NEW.name); END;
CREATE TRIGGER secrets_news AFTER UPDATE ON secrets BEGIN INSERT INTO written (what) VALUES ('secret ' || NEW.name); END;
CREATE TRIGGER groups_news AFTER UPDATE ON node_groups BEGIN INSERT INTO written (what) VALUES ('group ' || NEW.name); END;
CREATE TRIGGER clusters_news AFTER UPDATE ON clusters BEGIN INSERT INTO written (what)
  VALUES ('cluster of ' || json_array_length(NEW.document, '$.nodes') || ' nodes ' || coalesce((SELECT group_concat(
    json_extract(value, '$.type') || ' ' || json_extract(value, '$.reason')) FROM json_each(NEW.document, '$.conditions')), 'placed')); END;
CREATE TRIGGER clusters_gone AFTER DELETE ON clusters BEGIN INSERT INTO written (what) VALUES ('cluster gone'); END;
";

/// The lock of a store's file, and the writes recorded so far.
pub(crate) struct Gate {
    database: Database,
    known: BTreeSet<String>,
    seen: i64,
}

/// The held lock: no other process writes until this is dropped.
pub(crate) struct Shut {
    _opens: oneshot::Sender<()>,
    _writing: JoinHandle<Result<(), StoreError>>,
    /// The last write.
    pub(crate) last: String,
}

impl Gate {
    /// Watches the store in the database at this URL.
    pub(crate) async fn of(url: &str) -> Gate {
        let version = match Database::open(url, &[]).await {
            Err(StoreError::NewerSchema { found, .. }) => usize::try_from(found).unwrap(),
            Err(error) => panic!("{error}"),
            Ok(_) => 0,
        };
        let database = Database::open(url, &EMPTY[..version]).await.unwrap();
        let script = TRIGGERS.to_owned();
        let write = database.write(WriteKind::OnlyFirstStatementCanFail, |c| {
            Box::pin(async move { Ok(c.script(script).await?) })
        });
        write.await.unwrap();
        Gate { database, known: BTreeSet::new(), seen: 0 }
    }

    /// Forgets all writes so far, so that a repeated one counts as new.
    pub(crate) async fn forget(&mut self) {
        self.news().await;
        self.known.clear();
    }

    /// Takes the lock as soon as something new is written.
    pub(crate) async fn shut(&mut self) -> Shut {
        let mut written = Vec::new();
        while written.iter().all(|what| self.known.contains(what)) {
            yield_now().await;
            written = self.news().await;
        }
        let (opens, opened) = oneshot::channel();
        let (shuts, shut) = oneshot::channel();
        let database = self.database.clone();
        let writing = tokio::spawn(async move {
            let hold = async move || {
                let _ = shuts.send(());
                let _ = opened.await;
                Ok(())
            };
            database.write(WriteKind::OnlyFirstStatementCanFail, |_| Box::pin(hold())).await
        });
        shut.await.unwrap();
        // Writes that happened before the lock was taken.
        written.extend(self.news().await);
        let last = written.last().cloned().unwrap_or_default();
        self.known.extend(written);
        Shut { _opens: opens, _writing: writing, last }
    }

    async fn news(&mut self) -> Vec<String> {
        const NEWS: &str = "SELECT seq, what FROM written WHERE seq > $1 ORDER BY seq";
        let after = self.seen;
        let rows = self
            .database
            .read(move |c| {
                Box::pin(async move { Ok(c.rows(AssertSqlSafe(NEWS), values![after]).await?) })
            })
            .await
            .unwrap();
        let news = rows.iter().map(|row| (row.int(0).unwrap(), row.text(1).unwrap().to_owned()));
        let news: Vec<(i64, String)> = news.collect();
        self.seen = news.last().map_or(self.seen, |(seq, _)| *seq);
        news.into_iter().map(|(_, what)| what).collect()
    }
}
