//! Empty databases, one for each test, of either kind.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

use std::path::PathBuf;

use sqlx::{AssertSqlSafe, Connection, PgConnection};
use uuid::Uuid;

/// A database of a test's own. The file goes with it; a schema stays, for the server is a test's own too.
pub struct Scratch {
    /// What opens it.
    pub url: String,
    folder: Option<PathBuf>,
}

impl Scratch {
    /// A file that is not there yet.
    pub fn sqlite() -> Scratch {
        let folder = std::env::temp_dir().join(format!("scratch-{}", Uuid::new_v4()));
        std::fs::create_dir(&folder).unwrap();
        Scratch { url: format!("sqlite://{}/test.db", folder.display()), folder: Some(folder) }
    }

    /// An empty schema on the server that `BEDPLATE_TEST_POSTGRES` names; `None` where no server was given.
    pub async fn postgres() -> Option<Scratch> {
        let Ok(server) = std::env::var("BEDPLATE_TEST_POSTGRES") else {
            // As `tests/peers` has it, which nothing that is run may depend on.
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
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            std::fs::remove_dir_all(folder).unwrap();
        }
    }
}

/// Makes of each function, which takes an empty store, a test on either database. `$Store` has a function `open` from a
/// URL.
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
