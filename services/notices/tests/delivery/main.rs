//! Sends notices to foreign receivers.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod events;
mod mailbox;
mod outbox;
mod receiver;
mod smtp;
mod webhook;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use database::outbox::Outbox;
use database::scratch::Scratch;
use database::{Database, StoreError, WriteKind};
use jiff::{SignedDuration, Timestamp};
use lease::MailAddress;
use notices::{Notice, NoticeSubject, NoticesConfig, OutboxSender, RecordGivenUp, RetryConfig};
use serde_json::Map;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// The same table as in both services.
const TABLES: &[&str] = &["CREATE TABLE outbox (
    seq      SERIAL,
    notice   TEXT   NOT NULL,
    receiver TEXT   NOT NULL,
    body     TEXT   NOT NULL,
    due_at   BIGINT NOT NULL,
    tries    BIGINT NOT NULL,
    project  TEXT,
    UNIQUE (notice, receiver)
);
CREATE INDEX outbox_due ON outbox (due_at, seq);
CREATE INDEX outbox_project ON outbox (project);"];

/// The longest time that anything in these tests may take.
const PATIENCE: Duration = Duration::from_secs(30);

struct Store(Database);

impl Store {
    async fn open(url: &str) -> Result<Store, StoreError> {
        Database::open(url, TABLES).await.map(Store)
    }

    fn outbox(&self) -> Outbox {
        Outbox::new(self.0.clone())
    }

    /// Adds letters like a service does; returns how many letters were dropped.
    async fn append(&self, letters: Vec<database::outbox::Letter>, now: Timestamp) -> usize {
        let write = self.0.write(WriteKind::AnyStatementCanFail, move |c| {
            Box::pin(async move { database::outbox::append(c, &letters, now).await })
        });
        write.await.unwrap()
    }

    /// Waits until the outbox is empty.
    async fn emptied(&self) {
        let all = || async { self.outbox().due(Timestamp::MAX, SignedDuration::ZERO, 9).await };
        until(async || all().await.unwrap().is_empty()).await;
    }
}

/// Waits until the condition holds.
async fn until(mut is_so: impl AsyncFnMut() -> bool) {
    let waited = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waited).await.unwrap();
}

/// A notice about a cluster of this name.
fn notice(name: &str) -> Notice {
    Notice {
        id: Uuid::new_v4(),
        at: Timestamp::UNIX_EPOCH,
        event: "lease.ends".to_owned(),
        subject: format!("cluster {name} ends"),
        text: format!("The lease of {name} ends tomorrow."),
        project_id: Some("p".to_owned()),
        about: NoticeSubject {
            kind: "cluster".to_owned(),
            id: "7".to_owned(),
            name: name.to_owned(),
        },
        details: Map::new(),
    }
}

/// Retries almost at once, and gives up after three attempts.
fn hasty() -> RetryConfig {
    RetryConfig {
        first: SignedDuration::from_millis(20),
        tries: 3.try_into().unwrap(),
        look_every: SignedDuration::from_millis(10),
    }
}

/// Records the notices that were given up.
#[derive(Clone)]
struct Lost {
    said: Arc<Mutex<Vec<String>>>,
    outbox: Outbox,
}

impl RecordGivenUp for Lost {
    async fn given_up(&self, letter: i64, notice: &Notice, why: &str) -> Result<(), StoreError> {
        self.said.lock().unwrap().push(format!("{}: {why}", notice.about.name));
        self.outbox.remove(letter).await
    }
}

/// A service that sends notices from a database of its own.
struct Service {
    store: Store,
    addressees: notices::ReceiverKinds,
    lost: Lost,
    stop: CancellationToken,
    scratch: Scratch,
}

impl Service {
    async fn start(config: &NoticesConfig) -> Service {
        left::keep_logs();
        let scratch = Scratch::sqlite();
        let store = Store::open(&scratch.url).await.unwrap();
        let pump = OutboxSender::new(config, Timestamp::now).unwrap();
        let lost = Lost { said: Arc::default(), outbox: store.outbox() };
        let (addressees, stop) = (pump.addressees(), CancellationToken::new());
        tokio::spawn(pump.run(store.outbox(), lost.clone(), stop.clone()));
        Service { store, addressees, lost, stop, scratch }
    }

    async fn tell(&self, notice: &Notice, contact: Option<&str>) {
        let contact: Option<MailAddress> = contact.map(|raw| raw.parse().unwrap());
        let letters = self.addressees.letters(notice, contact.as_ref());
        assert_eq!(self.store.append(letters, Timestamp::now()).await, 0);
    }

    fn lost(&self) -> Vec<String> {
        self.lost.said.lock().unwrap().clone()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        left::keep_database(&self.scratch.url, "notices");
        self.stop.cancel();
    }
}
