//! An empty database for one test.

use std::path::PathBuf;

use baremetal_core::{Driver, Node, NodeUuid};
use baremetal_store::Store;
use jiff::Timestamp;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use uuid::Uuid;

/// A database of a test's own. The file goes with it; a schema stays, for the server is a test's own too.
pub(crate) struct Scratch {
    pub(crate) url: String,
    folder: Option<PathBuf>,
}

impl Scratch {
    pub(crate) fn sqlite() -> Scratch {
        let folder = std::env::temp_dir().join(format!("baremetal-store-{}", Uuid::new_v4()));
        std::fs::create_dir(&folder).unwrap();
        Scratch { url: format!("sqlite://{}/test.db", folder.display()), folder: Some(folder) }
    }

    /// `None` where no server was given.
    pub(crate) async fn postgres() -> Option<Scratch> {
        let Ok(server) = std::env::var("BEDPLATE_TEST_POSTGRES") else {
            peers::skip("the store on PostgreSQL", "BEDPLATE_TEST_POSTGRES is not set");
            return None;
        };
        let schema = format!("test_{}", Uuid::new_v4().simple());
        let mut connection = PgConnection::connect(&server).await.unwrap();
        let create = AssertSqlSafe(format!("CREATE SCHEMA {schema}"));
        sqlx::query(create).execute(&mut connection).await.unwrap();
        let joint = if server.contains('?') { '&' } else { '?' };
        Some(Scratch { url: format!("{server}{joint}options[search_path]={schema}"), folder: None })
    }

    pub(crate) async fn open(&self) -> Store {
        Store::open(&self.url).await.unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            std::fs::remove_dir_all(folder).unwrap();
        }
    }
}

/// Makes of each function, which takes an empty store, a test on either database.
macro_rules! on_both {
    ($($name:ident)*) => { $(
        mod $name {
            use crate::scratch::Scratch;

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_sqlite() {
                let scratch = Scratch::sqlite();
                super::$name(scratch.open().await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_postgres() {
                let Some(scratch) = Scratch::postgres().await else { return };
                super::$name(scratch.open().await).await;
            }
        }
    )* };
}
pub(crate) use on_both;

/// A moment, `seconds` after another.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + seconds).unwrap()
}

/// A node with nothing said of it.
pub(crate) fn bare_node() -> Node {
    Node::new(NodeUuid::new_v4(), Driver::FakeHardware, at(0))
}

/// A node with this name.
pub(crate) fn named(name: &str) -> Node {
    Node { name: Some(name.parse().unwrap()), ..bare_node() }
}
