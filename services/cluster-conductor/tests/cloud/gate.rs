//! Stops a conductor between two writes to its store. Triggers in the database record each write in words, and a tripwire stops the
//! conductor after a write that is new, and before each write after that.

use std::collections::BTreeSet;
use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use database::{AssertSqlSafe, Database, Point, Side, StoreError, Tripwire, WriteKind, values};
use tokio::sync::Notify;

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

/// The writes recorded so far, and whether further writes have to wait.
#[derive(Clone)]
pub(crate) struct Gate(Arc<State>);

struct State {
    database: Database,
    written: Mutex<Written>,
    is_shut: AtomicBool,
    shuts: Notify,
}

#[derive(Default)]
struct Written {
    known: BTreeSet<String>,
    /// The number of the last record that was read.
    seen: i64,
    last: String,
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
        let shuts = Notify::new();
        let (written, is_shut) = (Mutex::default(), AtomicBool::new(false));
        Gate(Arc::new(State { database, written, is_shut, shuts }))
    }

    /// Forgets all writes so far, so that a repeated one counts as new.
    pub(crate) async fn forget(&self) {
        self.note().await;
        self.0.written.lock().unwrap().known.clear();
    }

    /// The tripwire of a conductor that this gate stops. The conductor before it must have been killed.
    pub(crate) fn tripwire(&self) -> Tripwire {
        self.0.is_shut.store(false, Ordering::SeqCst);
        let gate = self.clone();
        Tripwire::new(move |point| {
            let gate = gate.clone();
            Box::pin(async move { gate.pass(point).await })
        })
    }

    async fn pass(&self, point: Point) {
        let is_new = point.side == Side::After && self.note().await;
        if is_new {
            self.0.is_shut.store(true, Ordering::SeqCst);
            self.0.shuts.notify_one();
        }
        if is_new || self.0.is_shut.load(Ordering::SeqCst) {
            pending::<()>().await;
        }
    }

    /// Waits until a conductor is stopped, and returns its last write.
    pub(crate) async fn shut(&self) -> String {
        while !self.0.is_shut.load(Ordering::SeqCst) {
            self.0.shuts.notified().await;
        }
        self.0.written.lock().unwrap().last.clone()
    }

    /// Reads the new records, and returns whether one of them is of a new kind.
    async fn note(&self) -> bool {
        const NEWS: &str = "SELECT seq, what FROM written WHERE seq > $1 ORDER BY seq";
        let after = self.0.written.lock().unwrap().seen;
        let rows = self
            .0
            .database
            .read(move |c| {
                Box::pin(async move { Ok(c.rows(AssertSqlSafe(NEWS), values![after]).await?) })
            })
            .await
            .unwrap();
        let mut written = self.0.written.lock().unwrap();
        let mut is_new = false;
        for row in rows {
            written.seen = row.int(0).unwrap();
            written.last = row.text(1).unwrap().to_owned();
            let last = written.last.clone();
            is_new |= written.known.insert(last);
        }
        is_new
    }
}
