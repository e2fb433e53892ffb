//! A trail in an empty database, for the tests.

use audit::{Broken, Chain, Entry, Filter, Head, ListedRow, Outcome, Trail, TrailError};
use audit_store::Recorder;
use database::WriteKind::OneStatement;
use database::{AssertSqlSafe, Database, StoreError, values};

/// A database with a trail, and the recorder that writes the trail.
#[derive(Clone)]
pub(crate) struct TrailFixture {
    pub(crate) database: Database,
    pub(crate) recorder: Recorder,
    pub(crate) url: String,
}

impl TrailFixture {
    pub(crate) async fn open(url: &str) -> Result<TrailFixture, StoreError> {
        let database = Database::open(url, &[audit_store::SCHEMA]).await?;
        let recorder = Recorder::new(database.clone(), "clusterd");
        Ok(TrailFixture { database, recorder, url: url.to_owned() })
    }

    /// Records this many requests and their answers: two rows for each request.
    pub(crate) async fn fill(&self, requests: usize) {
        for n in 1..=requests {
            self.recorder.record(asked(&format!("req-{n}"))).await.unwrap();
            let answered = Entry { status: 202, ..entry(Outcome::Answered, &format!("req-{n}")) };
            self.recorder.record(answered).await.unwrap();
        }
    }

    /// Runs any SQL statement and returns how many rows it changed.
    pub(crate) async fn sql(&self, sql: &str) -> Result<u64, StoreError> {
        let sql = AssertSqlSafe(sql.to_owned());
        self.database
            .write(OneStatement, move |c| {
                Box::pin(async move { Ok(c.execute(sql, values![]).await?) })
            })
            .await
    }

    pub(crate) fn is_sqlite(&self) -> bool {
        self.url.starts_with("sqlite")
    }

    /// Drops or disables the triggers that protect the tables.
    pub(crate) async fn unguard(&self) {
        let statements: &[&str] = match self.is_sqlite() {
            true => &[
                "DROP TRIGGER audit_grows_at_its_end",
                "DROP TRIGGER audit_has_grown",
                "DROP TRIGGER audit_is_not_changed",
                "DROP TRIGGER audit_is_not_cut",
                "DROP TRIGGER audit_head_follows",
                "DROP TRIGGER audit_head_stays",
            ],
            false => &[
                "ALTER TABLE audit DISABLE TRIGGER USER",
                "ALTER TABLE audit_head DISABLE TRIGGER USER",
            ],
        };
        for statement in statements {
            self.sql(statement).await.unwrap();
        }
    }

    pub(crate) async fn all(&self) -> Vec<ListedRow> {
        self.recorder.list(&Filter::after(0, 1000)).await.unwrap()
    }

    /// Verifies the trail up to the stored head.
    pub(crate) async fn verify(&self) -> Result<Head, Broken> {
        let head = self.recorder.head().await.map_err(broken)?;
        self.verify_knowing(head).await
    }

    /// Verifies the trail against a head that is known from elsewhere.
    pub(crate) async fn verify_knowing(&self, known: Head) -> Result<Head, Broken> {
        let mut chain = Chain::default().expecting(known);
        loop {
            let page = Filter::after(chain.head().number, 7);
            let page = self.recorder.list(&page).await.map_err(broken)?;
            if page.is_empty() {
                return chain.end();
            }
            page.iter().try_for_each(|listed| chain.follow(&listed.row))?;
        }
    }
}

fn broken(why: TrailError) -> Broken {
    match why {
        TrailError::Broken(broken) => broken,
        TrailError::Unavailable(why) => panic!("{why:?}"),
    }
}

pub(crate) fn asked(request: &str) -> Entry {
    entry(Outcome::Asked, request)
}

pub(crate) fn entry(outcome: Outcome, request: &str) -> Entry {
    Entry {
        request_id: request.to_owned(),
        user_id: "u1".to_owned(),
        user_name: "ann".to_owned(),
        project_id: "p1".to_owned(),
        method: "DELETE".to_owned(),
        route: "/v1/clusters/{cluster}".to_owned(),
        target: "cluster=c".to_owned(),
        ..Entry::new(outcome)
    }
}
