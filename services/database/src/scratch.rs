//! Empty SQLite and PostgreSQL databases for tests.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

use std::path::PathBuf;

use sqlx::{AssertSqlSafe, Connection, PgConnection, Row};
use uuid::Uuid;

use crate::table::{PagePart, PageRows};
use crate::{Database, Result, Schema, WriteKind};

/// An empty database for one test. On drop the SQLite file is deleted; a PostgreSQL schema stays, because the server belongs to the tests
/// too.
pub struct Scratch {
    pub url: String,
    folder: Option<PathBuf>,
}

impl Scratch {
    /// An empty folder, with the URL of a file in it that does not exist yet.
    pub fn sqlite() -> Scratch {
        let folder = std::env::temp_dir().join(format!("scratch-{}", Uuid::new_v4()));
        std::fs::create_dir(&folder).unwrap();
        Scratch { url: format!("sqlite://{}/test.db", folder.display()), folder: Some(folder) }
    }

    /// An empty schema on the server that `BEDPLATE_TEST_POSTGRES` names; `None` if no server is given.
    pub async fn postgres() -> Option<Scratch> {
        let Ok(server) = std::env::var("BEDPLATE_TEST_POSTGRES") else {
            // The same rule as in `tests/peers`, repeated here because a service must not depend on a crate in `tests/`.
            let required = std::env::var("BEDPLATE_PEERS").is_ok_and(|word| word == "required");
            assert!(!required, "BEDPLATE_TEST_POSTGRES is not set");
            eprintln!("SKIPPED on PostgreSQL: BEDPLATE_TEST_POSTGRES is not set");
            return None;
        };
        let schema = format!("test_{}", Uuid::new_v4().simple());
        let mut connection = PgConnection::connect(&server).await.unwrap();
        let create = AssertSqlSafe(format!("CREATE SCHEMA {schema}"));
        sqlx::query(create).execute(&mut connection).await.unwrap();
        let joint = if server.contains('?') { '&' } else { '?' };
        Some(Scratch { url: format!("{server}{joint}options[search_path]={schema}"), folder: None })
    }

    /// Makes the tables of this schema, and writes rows into them, as a program of its last version did.
    pub async fn fill(&self, schema: Schema, rows: &str) {
        let database = Database::open(&self.url, schema).await.unwrap();
        run_script(&database, rows.to_owned()).await;
    }
}

/// Runs a script of SQL, as another program would that writes to the database.
pub async fn run_script(database: &Database, sql: String) {
    let done = database.write(WriteKind::AnyStatementCanFail, |c| {
        Box::pin(async move { Ok(c.script(sql).await?) })
    });
    let version = database.schema_known();
    done.await.unwrap_or_else(|error| panic!("schema version {version}: {error:?}"));
}

/// Returns the number that a query finds; 0 if it finds no row.
pub async fn count(database: &Database, sql: String) -> i64 {
    let counted = database.read(|c| {
        Box::pin(async move {
            let row = c.row(AssertSqlSafe(sql), vec![]).await?;
            Ok(row.map_or(Ok(0), |row| row.int(0))?)
        })
    });
    counted.await.unwrap()
}

/// A transaction on PostgreSQL that holds the locks of one statement, so that a test can stop other transactions where it wants.
pub struct HeldLocks {
    connection: PgConnection,
}

impl HeldLocks {
    /// Begins a transaction with `statement`.
    pub async fn take(url: &str, statement: String) -> HeldLocks {
        let mut connection = PgConnection::connect(url).await.unwrap();
        for sql in ["BEGIN".to_owned(), statement] {
            sqlx::query(AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
        }
        HeldLocks { connection }
    }

    /// Waits until so many connections wait for these locks, or for another connection that does.
    pub async fn wait_for_waiting(&mut self, connections: i64) {
        const WAITING: &str = "WITH RECURSIVE waiting (pid) AS (\
                SELECT pg_backend_pid() \
                UNION \
                SELECT it.pid FROM pg_locks it JOIN waiting ON waiting.pid = ANY (pg_blocking_pids(it.pid)) WHERE NOT it.granted\
            ) SELECT count(*) - 1, pg_sleep(0.01)::text FROM waiting";
        loop {
            let row = sqlx::query(WAITING).fetch_one(&mut self.connection).await.unwrap();
            if row.get::<i64, _>(0) >= connections {
                return;
            }
        }
    }

    /// Ends the transaction.
    pub async fn release(mut self) {
        sqlx::query("COMMIT").execute(&mut self.connection).await.unwrap();
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            std::fs::remove_dir_all(folder).unwrap();
        }
    }
}

/// Reads a list in parts of at most so many bytes; returns its rows and the lengths of the parts.
pub async fn read_in_parts<T, P>(
    bytes: usize,
    read: impl AsyncFn(PagePart<P>) -> Result<PageRows<T, P>>,
) -> (Vec<T>, Vec<usize>) {
    let (mut all, mut lengths, mut after) = (Vec::new(), Vec::new(), None);
    loop {
        let PageRows { found, more } = read(PagePart { after, bytes }).await.unwrap();
        lengths.push(found.len());
        all.extend(found);
        after = more;
        if after.is_none() {
            return (all, lengths);
        }
    }
}

/// Turns each function, which takes an empty store, into a test on SQLite and a test on PostgreSQL. `$Store` needs a function `open` that
/// takes a URL.
#[macro_export]
macro_rules! on_both {
    ($Store:ident: $($name:ident)*) => { $(
        mod $name {
            use $crate::scratch::Scratch;

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_sqlite() {
                let scratch = Scratch::sqlite();
                super::$name(super::$Store::open(&scratch.url).await.unwrap()).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_postgres() {
                let Some(scratch) = Scratch::postgres().await else { return };
                super::$name(super::$Store::open(&scratch.url).await.unwrap()).await;
            }
        }
    )* };
}
