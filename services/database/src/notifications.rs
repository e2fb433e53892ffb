//! Notifications between the programs that share a PostgreSQL database (LISTEN and NOTIFY). The server keeps none for a program that is not
//! connected, so nothing may depend on a notification: it only saves the time until the next look.

use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use tokio::time::timeout;

use crate::Result;
use crate::session::late;

/// The most bytes of a notification: PostgreSQL refuses 8000.
pub const MAX_NOTIFICATION: usize = 7900;

/// A connection that receives the notifications of one channel.
pub enum Notifications {
    Postgres(PgListener),
    #[cfg(any(test, feature = "shared-sqlite"))]
    Shared(crate::shared::SharedNotifications),
}

impl Notifications {
    /// Connects to the server, which may take until the timeout.
    pub(crate) async fn open(
        options: PgConnectOptions,
        limit: Duration,
        channel: &str,
    ) -> Result<Notifications> {
        let connect = async {
            let one = PgPoolOptions::new().max_connections(1).acquire_timeout(limit);
            let mut listener = PgListener::connect_with(&one.connect_with(options).await?).await?;
            listener.listen(channel).await?;
            Ok(Notifications::Postgres(listener))
        };
        let connected: Result<Notifications, sqlx::Error> =
            timeout(limit, connect).await.unwrap_or_else(|_| Err(late("listen", limit)));
        Ok(connected?)
    }

    /// Waits for the next notification. Returns `None` if some may have been lost, because the connection was lost.
    pub async fn next(&mut self) -> Result<Option<String>> {
        match self {
            Notifications::Postgres(listener) => {
                let received = listener.try_recv().await?;
                Ok(received.map(|it| it.payload().to_owned()))
            }
            #[cfg(any(test, feature = "shared-sqlite"))]
            Notifications::Shared(shared) => Ok(shared.next().await),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Database;
    use crate::scratch::Scratch;

    const CHANNEL: &str = "database_tests";

    #[tokio::test]
    async fn a_notification_reaches_every_program_on_the_database() {
        let Some(scratch) = Scratch::postgres().await else { return };
        let [one, other] =
            [Database::open(&scratch.url, &[]).await, Database::open(&scratch.url, &[]).await];
        let (one, other) = (one.unwrap(), other.unwrap());
        assert!(one.is_shared());
        let mut heard = Vec::new();
        for database in [&one, &other] {
            heard.push(database.notifications(CHANNEL).await.unwrap().unwrap());
        }
        // Other tests on this server use the channel too.
        let said = format!("{} {}", scratch.url, "x".repeat(1000));
        one.notify(CHANNEL, said.clone()).await.unwrap();
        for notifications in &mut heard {
            while notifications.next().await.unwrap().as_ref() != Some(&said) {}
        }
        let longest = "x".repeat(MAX_NOTIFICATION);
        one.notify(CHANNEL, longest.clone()).await.unwrap();
        while heard[0].next().await.unwrap().as_ref() != Some(&longest) {}
    }

    #[tokio::test]
    async fn a_sqlite_database_has_no_notifications() {
        let database = Database::open("sqlite::memory:", &[]).await.unwrap();
        assert!(!database.is_shared());
        database.notify(CHANNEL, "unheard".to_owned()).await.unwrap();
        assert!(database.notifications(CHANNEL).await.unwrap().is_none());
    }
}
